/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: from the wide entries of op/compq.h to the format that
 * the application asked for.
 */
#include "prov/cq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/domain.h"
#include "prov/ep.h"
#include "prov/fabric.h"
#include "prov/nosys.h"
#include "prov/provider.h"

#define DEFAULT_SIZE 1024

/* A reader that always finds something still drives progress this often. */
#define READS_PER_PROGRESS 16

/* One for each format, with and without locks. */
static struct fi_ops_cq *ops_for(enum fi_cq_format format, bool locked);

static struct wf_prov_cq *cq_of(struct fid_cq *fid)
{
	return wf_container_of(fid, struct wf_prov_cq, fid);
}

/* -- reading --------------------------------------------------------------- */

static inline size_t entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	default:
		return sizeof(struct fi_cq_tagged_entry);
	}
}

/* The formats are prefixes of one another. */
static_assert(offsetof(struct fi_cq_msg_entry, len) ==
			      offsetof(struct fi_cq_tagged_entry, len) &&
		      offsetof(struct fi_cq_data_entry, data) ==
			      offsetof(struct fi_cq_tagged_entry, data),
	      "each format begins with the smaller one");

static inline void write_entry(enum fi_cq_format format, void *to,
			       const struct wf_comp *comp)
{
	struct fi_cq_tagged_entry *entry = to;

	entry->op_context = comp->context;
	if (format == FI_CQ_FORMAT_CONTEXT)
		return;
	entry->flags = comp->flags;
	entry->len = comp->len;
	if (format == FI_CQ_FORMAT_MSG)
		return;
	entry->buf = comp->buf;
	entry->data = comp->data;
	if (format == FI_CQ_FORMAT_TAGGED)
		entry->tag = comp->tag;
}

/* The available entries, up to @count or the first error. */
static inline ssize_t drain(struct wf_prov_cq *cq, enum fi_cq_format format,
			    void *buf, size_t count, fi_addr_t *src,
			    bool locked)
{
	struct wf_compq *q = &cq->q;
	char *to = buf;
	size_t done = 0;

	if (!wf_op_compq_count(q))
		return 0;
	if (locked)
		wf_base_lock_take(&q->lock);
	while (done < count && wf_op_compq_count(q)) {
		const struct wf_comp *comp = &q->ring[q->tail & q->mask];

		if (wf_unlikely(comp->failure))
			break;
		if (src)
			src[done] = comp->src;
		write_entry(format, to, comp);
		to += entry_size(format);
		done++;
		wf_op_compq_take_locked(q);
	}
	if (wf_unlikely(!done) && count && wf_op_compq_count(q))
		done = (size_t)-FI_EAVAIL;
	if (locked)
		wf_base_lock_drop(&q->lock);
	return (ssize_t)done;
}

/* Without locks and with one endpoint, as is the rule, no call is made for an
 * empty ring. */
static inline void progress(struct wf_prov_cq *cq, bool locked)
{
	if (locked || !cq->eps.only)
		wf_prov_eps_progress(&cq->eps);
	else
		wf_core_ep_progress(cq->eps.only);
}

/* Relaxed: threads may count past each other, it only has to go on. */
static inline uint32_t count_read(struct wf_prov_cq *cq)
{
	uint32_t reads = __atomic_load_n(&cq->reads, __ATOMIC_RELAXED) + 1;

	__atomic_store_n(&cq->reads, reads, __ATOMIC_RELAXED);
	return reads;
}

static_assert(sizeof(struct fi_cq_tagged_entry) ==
		      offsetof(struct wf_comp, src),
	      "what is written directly is an entry");

/* Without locks, the first receive goes straight into the caller's entry
 * instead of through the queue. */
static inline ssize_t read_direct(struct wf_prov_cq *cq, void *buf,
				  size_t count)
{
	struct fi_cq_tagged_entry *entries = buf;
	ssize_t more;

	cq->q.direct = buf;
	progress(cq, false);
	cq->q.direct = NULL;
	if (!cq->q.direct_used) {
		more = drain(cq, FI_CQ_FORMAT_TAGGED, buf, count, NULL, false);
		return more ? more : -FI_EAGAIN;
	}
	cq->q.direct_used = false;
	if (wf_likely(count == 1))
		return 1;
	more = drain(cq, FI_CQ_FORMAT_TAGGED, entries + 1, count - 1, NULL,
		     false);
	return more > 0 ? 1 + more : 1;
}

static inline __attribute__((always_inline)) ssize_t
read_from(struct fid_cq *fid, enum fi_cq_format format, void *buf, size_t count,
	  fi_addr_t *src, bool locked)
{
	struct wf_prov_cq *cq = cq_of(fid);
	ssize_t got = drain(cq, format, buf, count, src, locked);

	if (got) {
		if (wf_unlikely(!(count_read(cq) % READS_PER_PROGRESS)))
			wf_prov_eps_progress(&cq->eps);
		return got;
	}
	if (!locked && format == FI_CQ_FORMAT_TAGGED && !src && count)
		return read_direct(cq, buf, count);
	progress(cq, locked);
	got = drain(cq, format, buf, count, src, locked);
	return got ? got : -FI_EAGAIN;
}

static void fill_err(const struct wf_prov_cq *cq, struct fi_cq_err_entry *to,
		     const struct wf_comp *comp)
{
	uint32_t api = cq->domain->fabric->api_version;

	to->op_context = comp->context;
	to->flags = comp->flags;
	to->len = comp->len;
	to->buf = comp->buf;
	to->data = comp->data;
	to->tag = comp->tag;
	to->olen = wf_op_comp_olen(comp);
	to->err = wf_op_comp_err(comp);
	/* Programs print fi_cq_strerror() of it. */
	to->prov_errno = wf_op_comp_err(comp);
	/* We have no error data: nothing goes to the caller's buffer. */
	if (FI_VERSION_GE(api, FI_VERSION(1, 5)))
		to->err_data_size = 0;
	else
		to->err_data = NULL;
	/* 1.20 appended src_addr; these headers may not know it yet. */
	if (FI_VERSION_GE(api, FI_VERSION(1, 20)))
		memcpy((char *)to + WF_PROV_CQ_ERR_SRC_AT, &comp->src,
		       sizeof(fi_addr_t));
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf,
			  uint64_t flags)
{
	struct wf_prov_cq *cq = cq_of(fid);
	struct wf_compq *q = &cq->q;
	const struct wf_comp *comp;
	ssize_t ret = -FI_EAGAIN;

	(void)flags;
	wf_base_lock_take(&q->lock);
	comp = &q->ring[q->tail & q->mask];
	if (wf_op_compq_count(q) && comp->failure) {
		fill_err(cq, buf, comp);
		wf_op_compq_take_locked(q);
		ret = 1;
	}
	wf_base_lock_drop(&q->lock);
	return ret;
}

/* -- waiting --------------------------------------------------------------- */

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count,
			    fi_addr_t *src, const void *cond, int timeout)
{
	struct wf_prov_cq *cq = cq_of(fid);
	struct wf_prov_waiting waiting;
	ssize_t ret;

	(void)cond;
	if (cq->wait.obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	wf_prov_wait_start(&waiting, &cq->wait, timeout);
	do {
		ret = cq->fid.ops->readfrom(fid, buf, count, src);
		if (ret != -FI_EAGAIN)
			return ret;
		if (atomic_exchange(&cq->signaled, false))
			return -FI_EAGAIN;
	} while (wf_prov_wait_more(&waiting));
	return -FI_EAGAIN;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count,
			const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct wf_prov_cq *cq = cq_of(fid);

	atomic_store(&cq->signaled, true);
	wf_op_waker_wake(&cq->q.waker);
	return 0;
}

static bool doze(struct wf_prov_wait *wait)
{
	struct wf_prov_cq *cq = wf_container_of(wait, struct wf_prov_cq, wait);

	return wf_op_compq_doze(&cq->q) && !atomic_load(&cq->signaled);
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno,
			       const void *err_data, char *buf, size_t len)
{
	const char *text = fi_strerror(prov_errno);

	(void)fid;
	(void)err_data;
	if (buf && len) {
		strncpy(buf, text, len - 1);
		buf[len - 1] = '\0';
		return buf;
	}
	return text;
}

/* -- life ------------------------------------------------------------------ */

static int cq_close(struct fid *fid)
{
	struct wf_prov_cq *cq =
		wf_container_of(fid, struct wf_prov_cq, fid.fid);

	if (atomic_load(&cq->refs))
		return -FI_EBUSY;
	wf_base_fork_unwatch(&cq->fork_watch);
	wf_prov_wait_close(&cq->wait);
	wf_op_compq_fini(&cq->q);
	atomic_fetch_sub(&cq->domain->refs, 1);
	free(cq);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	return wf_prov_wait_control(
		&wf_container_of(fid, struct wf_prov_cq, fid.fid)->wait,
		command, arg);
}

static void cq_in_child(struct wf_fork_watch *watch)
{
	struct wf_prov_cq *cq =
		wf_container_of(watch, struct wf_prov_cq, fork_watch);

	/* A thread that does not exist here may have held them. */
	wf_prov_eps_forked(&cq->eps);
	wf_base_lock_init(&cq->q.lock, cq->q.lock.real);
	wf_op_waker_forked(&cq->q.waker);
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = wf_prov_nosys_bind,
	.control = cq_control,
	.ops_open = wf_prov_nosys_ops_open,
	.tostr = wf_prov_nosys_tostr,
	.ops_set = wf_prov_nosys_ops_set,
};

static int check_attr(const struct fi_cq_attr *attr)
{
	switch (attr->format) {
	case FI_CQ_FORMAT_UNSPEC:
	case FI_CQ_FORMAT_CONTEXT:
	case FI_CQ_FORMAT_MSG:
	case FI_CQ_FORMAT_DATA:
	case FI_CQ_FORMAT_TAGGED:
		return 0;
	default:
		return -FI_EINVAL;
	}
}

int wf_prov_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		    struct fid_cq **cq_fid, void *context)
{
	static const struct fi_cq_attr defaults;
	struct wf_prov_domain *dom = wf_prov_domain_of(domain);
	struct wf_prov_cq *cq;
	int err;

	if (!attr)
		attr = (struct fi_cq_attr *)&defaults;
	err = check_attr(attr);
	if (err)
		return err;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	err = wf_op_compq_init(&cq->q, attr->size ? attr->size : DEFAULT_SIZE,
			       dom->locked);
	if (err) {
		free(cq);
		return -FI_ENOMEM;
	}
	wf_prov_eps_init(&cq->eps, dom->locked);
	cq->wait = (struct wf_prov_wait){
		.eps = &cq->eps,
		.waker = &cq->q.waker,
		.doze = doze,
	};
	err = wf_prov_wait_open(&cq->wait, attr->wait_obj);
	if (err) {
		wf_op_compq_fini(&cq->q);
		free(cq);
		return err;
	}
	cq->format = attr->format ? attr->format : FI_CQ_FORMAT_CONTEXT;
	cq->domain = dom;
	cq->fork_watch.in_child = cq_in_child;
	wf_base_fork_watch(&cq->fork_watch);
	cq->fid = (struct fid_cq){
		.fid = {
			.fclass = FI_CLASS_CQ,
			.context = context,
			.ops = &cq_fid_ops,
		},
		.ops = ops_for(cq->format, dom->locked),
	};
	atomic_fetch_add(&dom->refs, 1);
	*cq_fid = &cq->fid;
	return 0;
}

#define OPS(name, format, locked)                                              \
	static ssize_t readfrom_##name(struct fid_cq *fid, void *buf,          \
				       size_t count, fi_addr_t *src)           \
	{                                                                      \
		return read_from(fid, format, buf, count, src, locked);        \
	}                                                                      \
	static ssize_t read_##name(struct fid_cq *fid, void *buf,              \
				   size_t count)                               \
	{                                                                      \
		return read_from(fid, format, buf, count, NULL, locked);       \
	}                                                                      \
	static struct fi_ops_cq ops_##name = {                                 \
		.size = sizeof(struct fi_ops_cq),                              \
		.read = read_##name,                                           \
		.readfrom = readfrom_##name,                                   \
		.readerr = cq_readerr,                                         \
		.sread = cq_sread,                                             \
		.sreadfrom = cq_sreadfrom,                                     \
		.signal = cq_signal,                                           \
		.strerror = cq_strerror,                                       \
	}

OPS(context, FI_CQ_FORMAT_CONTEXT, false);
OPS(msg, FI_CQ_FORMAT_MSG, false);
OPS(data, FI_CQ_FORMAT_DATA, false);
OPS(tagged, FI_CQ_FORMAT_TAGGED, false);
OPS(context_locked, FI_CQ_FORMAT_CONTEXT, true);
OPS(msg_locked, FI_CQ_FORMAT_MSG, true);
OPS(data_locked, FI_CQ_FORMAT_DATA, true);
OPS(tagged_locked, FI_CQ_FORMAT_TAGGED, true);

static struct fi_ops_cq *ops_for(enum fi_cq_format format, bool locked)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT:
		return locked ? &ops_context_locked : &ops_context;
	case FI_CQ_FORMAT_MSG:
		return locked ? &ops_msg_locked : &ops_msg;
	case FI_CQ_FORMAT_DATA:
		return locked ? &ops_data_locked : &ops_data;
	default:
		return locked ? &ops_tagged_locked : &ops_tagged;
	}
}
