/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of devices, contexts, and what they say about the device, its port
 * and its GID.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "efa/efa.h"

#define GUID 0x776566740000efa1ull

struct context {
	/* Behind it nothing: ibv_context is its last field. */
	struct verbs_context verbs;
};

/* Private to libibverbs, and used by its ibv_devinfo. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port,
		       unsigned int index, int *type);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size);
const char *ibv_get_sysfs_path(void);
int ibv_query_port_speed(struct ibv_context *context, uint32_t port,
			 uint64_t *speed);

static struct ibv_device device = {
	.node_type = IBV_NODE_UNSPECIFIED,
	.transport_type = IBV_TRANSPORT_UNSPECIFIED,
	.name = WF_EFA_NAME,
	.dev_name = "uverbs0",
};

/* -- the list --------------------------------------------------------------- */

struct ibv_device **ibv_get_device_list(int *count)
{
	const char *dir = wf_efa_sysfs();
	struct ibv_device **list;

	if (count)
		*count = 0;
	if (!dir)
		return NULL;
	list = calloc(2, sizeof(*list));
	if (!list) {
		errno = ENOMEM;
		return NULL;
	}
	snprintf(device.dev_path, sizeof(device.dev_path),
		 "%s/class/infiniband_verbs/uverbs0", dir);
	snprintf(device.ibdev_path, sizeof(device.ibdev_path),
		 "%s/class/infiniband/" WF_EFA_NAME, dir);
	list[0] = &device;
	if (count)
		*count = 1;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *dev)
{
	return dev->name;
}

int ibv_get_device_index(struct ibv_device *dev)
{
	(void)dev;
	return 0;
}

__be64 ibv_get_device_guid(struct ibv_device *dev)
{
	(void)dev;
	return htobe64(GUID);
}

const char *ibv_get_sysfs_path(void)
{
	const char *dir = wf_efa_sysfs();

	return dir ? dir : "/sys";
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size)
{
	char path[1024];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	got = read(fd, buf, size);
	close(fd);
	if (got > 0) {
		if (buf[got - 1] == '\n')
			buf[--got] = '\0';
		else if ((size_t)got < size)
			buf[got] = '\0';
		else
			return -1;
	}
	return (int)got;
}

/* -- what it says ----------------------------------------------------------- */

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct wf_nic *nic = wf_efa_device_nic();
	const struct wf_nic_caps *caps;

	(void)context;
	if (!nic)
		return errno;
	caps = wf_nic_caps(nic);
	*attr = (struct ibv_device_attr){
		.fw_ver = "0.1.0.0",
		.node_guid = htobe64(GUID),
		.sys_image_guid = htobe64(GUID),
		.max_mr_size = 1ull << 46,
		.page_size_cap = 0xfffffffffffff000ull,
		.vendor_id = WF_EFA_VENDOR,
		.vendor_part_id = WF_EFA_PART,
		.hw_ver = WF_EFA_PART,
		.max_qp = (int)caps->max_qp,
		.max_qp_wr = WF_EFA_QUEUE_MAX,
		.max_sge = WF_NIC_SGE_MAX,
		.max_sge_rd = 1,
		.max_cq = (int)caps->max_qp * 2,
		.max_cqe = WF_EFA_CQE_MAX,
		.max_mr = (int)caps->max_mr,
		.max_pd = 65536,
		.max_ah = (int)caps->max_ah,
		.max_pkeys = 1,
		.phys_port_cnt = 1,
	};
	return 0;
}

static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr plain;
	int ret;

	if (input && input->comp_mask)
		return EINVAL;
	if (size < sizeof(plain))
		return EINVAL;
	ret = ibv_query_device(context, &plain);
	if (ret)
		return ret;
	memset(attr, 0, size);
	memcpy(attr, &plain, sizeof(plain));
	if (size >= offsetof(struct ibv_device_attr_ex, phys_port_cnt_ex) +
			    sizeof(attr->phys_port_cnt_ex))
		attr->phys_port_cnt_ex = 1;
	return 0;
}

static int query_port(struct ibv_context *context, uint8_t port,
		      struct ibv_port_attr *attr, size_t size)
{
	const struct ibv_port_attr all = {
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = 1,
		.max_msg_sz = WF_EFA_MSG_MAX,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = 2,  /* 4X of ... */
		.active_speed = 32, /* ... 25 Gbit/s */
		.phys_state = 5,    /* LinkUp */
		.link_layer = IBV_LINK_LAYER_UNSPECIFIED,
	};

	(void)context;
	if (port != WF_EFA_PORT)
		return EINVAL;
	memset(attr, 0, size);
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

/* The oldest: without the fields behind link_layer. */
int ibv_query_port(struct ibv_context *context, uint8_t port,
		   struct _compat_ibv_port_attr *attr)
{
	return query_port(context, port, (struct ibv_port_attr *)attr,
			  offsetof(struct ibv_port_attr, flags));
}

int ibv_query_port_speed(struct ibv_context *context, uint32_t port,
			 uint64_t *speed)
{
	(void)context;
	if (port != WF_EFA_PORT)
		return EINVAL;
	*speed = 1000; /* in 100 Mbit/s: as width and speed say it */
	return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index,
		  union ibv_gid *gid)
{
	int ret = EINVAL;

	(void)context;
	if (port == WF_EFA_PORT && index == 0)
		ret = wf_efa_device_gid(gid);
	if (!ret)
		return 0;
	errno = ret;
	return -1;
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port,
		       unsigned int index, int *type)
{
	(void)context;
	(void)port;
	(void)index;
	*type = IBV_GID_TYPE_IB;
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port,
		      uint32_t index, struct ibv_gid_entry *entry,
		      uint32_t flags, size_t size)
{
	struct ibv_gid_entry all = { .gid_index = index,
				     .port_num = port,
				     .gid_type = IBV_GID_TYPE_IB };
	int ret;

	(void)context;
	if (flags)
		return EOPNOTSUPP;
	if (port != WF_EFA_PORT)
		return EINVAL;
	if (index)
		return ENODATA;
	ret = wf_efa_device_gid(&all.gid);
	if (!ret) {
		memset(entry, 0, size);
		memcpy(entry, &all, size < sizeof(all) ? size : sizeof(all));
	}
	return ret;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context,
			     struct ibv_gid_entry *entries, size_t max,
			     uint32_t flags, size_t size)
{
	int ret;

	if (!max)
		return 0;
	ret = _ibv_query_gid_ex(context, WF_EFA_PORT, 0, entries, flags, size);
	return ret ? -ret : 1;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index,
		   __be16 *pkey)
{
	(void)context;
	if (port == WF_EFA_PORT && index == 0) {
		*pkey = htobe16(0xffff);
		return 0;
	}
	errno = EINVAL;
	return -1;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	(void)context;
	if (port == WF_EFA_PORT && pkey == htobe16(0xffff))
		return 0;
	errno = EINVAL;
	return -1;
}

int efadv_query_device(struct ibv_context *context,
		       struct wf_efadv_device_attr *attr, uint32_t inlen)
{
	struct wf_nic *nic = wf_efa_device_nic();
	struct wf_efadv_device_attr all = {
		.max_sq_wr = WF_EFA_QUEUE_MAX,
		.max_rq_wr = WF_EFA_QUEUE_MAX,
		.max_sq_sge = WF_NIC_SGE_MAX,
		.max_rq_sge = 1,
		.inline_buf_size = WF_NIC_INLINE_MAX,
		.inline_buf_size_ex = WF_NIC_INLINE_MAX,
		.device_caps = WF_EFADV_CAP_READ | WF_EFADV_CAP_RNR_RETRY |
			       WF_EFADV_CAP_CQ_SGID | WF_EFADV_CAP_WRITE |
			       WF_EFADV_CAP_UNSOLICITED,
	};

	(void)context;
	if (!nic)
		return errno;
	if (inlen < offsetof(struct wf_efadv_device_attr, inline_buf_size_ex))
		return EINVAL;
	all.max_rdma_size = wf_nic_caps(nic)->max_rdma;
	memset(attr, 0, inlen);
	memcpy(attr, &all, inlen < sizeof(all) ? inlen : sizeof(all));
	return 0;
}

int efadv_get_max_sq_depth(struct ibv_context *context,
			   struct wf_efadv_sq_depth_attr *attr, uint32_t inlen)
{
	(void)context;
	if (inlen < sizeof(*attr) || attr->flags ||
	    attr->max_inline_data > WF_NIC_INLINE_MAX ||
	    attr->max_send_sge > WF_NIC_SGE_MAX || attr->max_rdma_sge > 1)
		return -EINVAL;
	return WF_EFA_QUEUE_MAX;
}

int efadv_get_max_rq_depth(struct ibv_context *context,
			   struct wf_efadv_rq_depth_attr *attr, uint32_t inlen)
{
	(void)context;
	if (inlen < offsetof(struct wf_efadv_rq_depth_attr, max_recv_sge) +
			    sizeof(attr->max_recv_sge) ||
	    attr->max_recv_sge > 1)
		return -EINVAL;
	return WF_EFA_QUEUE_MAX;
}

/* -- contexts --------------------------------------------------------------- */

struct ibv_context *ibv_open_device(struct ibv_device *dev)
{
	struct context *mine;
	struct ibv_context *context;

	if (!wf_efa_device_nic())
		return NULL;
	mine = calloc(1, sizeof(*mine));
	if (!mine) {
		errno = ENOMEM;
		return NULL;
	}
	context = &mine->verbs.context;
	context->async_fd = eventfd(0, EFD_CLOEXEC);
	if (context->async_fd < 0) {
		free(mine);
		return NULL;
	}
	context->device = dev;
	context->cmd_fd = -1;
	context->num_comp_vectors = 2;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&context->mutex, NULL);
	mine->verbs.sz = sizeof(mine->verbs);
	mine->verbs.query_device_ex = query_device_ex;
	mine->verbs.query_port = query_port;
	wf_efa_cq_table(&mine->verbs);
	wf_efa_qp_table(&mine->verbs);
	wf_efa_post_table(&mine->verbs);
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	struct context *mine = (struct context *)verbs_get_ctx(context);

	close(context->async_fd);
	pthread_mutex_destroy(&context->mutex);
	free(mine);
	return 0;
}

int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

/* The device has no asynchronous events; a thread that waits for one waits for
 * ever. */
int ibv_get_async_event(struct ibv_context *context,
			struct ibv_async_event *event)
{
	uint64_t value;

	(void)event;
	while (read(context->async_fd, &value, sizeof(value)) >= 0)
		;
	return -1;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}
