/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The environment of a simulated process: its identity, randomness, interfaces,
 * settings, /proc, and the few functions of libfabric that allocate memory
 * which the provider frees, or the reverse.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "kernel.h"
#include "net.h"
#include "real.h"
#include "wrap.h"

pid_t __wrap_getpid(void)
{
	return sim_proc_current()->pid;
}

uid_t __wrap_geteuid(void)
{
	return 1000;
}

ssize_t __wrap_getrandom(void *buf, size_t len, unsigned int flags)
{
	(void)flags;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)sim_rng_next(&sim.random);
	return (ssize_t)len;
}

/* Of /proc only the memory of processes exists; for everything else the
 * provider has defaults. */
int __wrap_open64(const char *path, int flags, ...)
{
	struct sim_proc *proc = NULL;
	int pid, end = 0;

	(void)flags;
	sim_enter("open");
	if (sscanf(path, "/proc/%d/mem%n", &pid, &end) == 1 && end &&
	    !path[end])
		proc = sim_proc_find(sim_proc_current()->node, pid);
	if (!proc)
		return SIM_RET(-ENOENT);
	if (sim_fault(SIM_FAULT_COPY))
		return SIM_RET(-EACCES);
	return SIM_RET(sim_file_install(sim_memory_file(proc)));
}

int __wrap_openat64(int dir, const char *path, int flags, ...)
{
	(void)dir;
	(void)path;
	(void)flags;
	sim_enter("openat");
	return SIM_RET(-ENOENT);
}

DIR *__wrap_opendir(const char *path)
{
	(void)path;
	errno = ENOENT;
	return NULL;
}

char *__wrap_getenv(const char *name)
{
	(void)name;
	return NULL;
}

/* -- interfaces ------------------------------------------------------------- */

struct interfaces {
	struct ifaddrs list[3];
	struct sockaddr_in addr[3];
};

int __wrap_getifaddrs(struct ifaddrs **list)
{
	struct interfaces *all;

	sim_enter("getifaddrs");
	if (sim_fault(SIM_FAULT_DESCRIPTORS))
		return SIM_RET(-EMFILE);
	all = real_calloc(1, sizeof(*all));
	for (int i = 0; i < 3; i++) {
		all->addr[i].sin_family = AF_INET;
		all->list[i].ifa_addr = (struct sockaddr *)&all->addr[i];
		all->list[i].ifa_flags = IFF_UP | IFF_RUNNING;
	}
	all->addr[0].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	all->list[0].ifa_name = (char *)(uintptr_t) "lo";
	all->list[0].ifa_flags |= IFF_LOOPBACK;
	all->list[0].ifa_next = &all->list[1];
	all->addr[1].sin_addr = sim_net_addr(sim_proc_current()->node);
	all->list[1].ifa_name = (char *)(uintptr_t) "eth0";
	all->addr[2].sin_addr = sim_net_second(sim_proc_current()->node);
	all->list[2].ifa_name = (char *)(uintptr_t) "eth1";
	if (sim.s.any)
		all->list[1].ifa_next = &all->list[2];
	*list = all->list;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
	real_free(list);
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	struct ifreq *req;
	va_list args;

	(void)fd;
	va_start(args, request);
	req = va_arg(args, struct ifreq *);
	va_end(args);
	sim_enter("ioctl");
	if (request != SIOCGIFMTU)
		return SIM_RET(-EINVAL);
	req->ifr_mtu = strcmp(req->ifr_name, "lo") ? SIM_NET_MTU : 65536;
	return 0;
}

/* -- libfabric -------------------------------------------------------------- */

int __wrap_fi_param_define(const struct fi_provider *provider,
			   const char *param, enum fi_param_type type,
			   const char *help, ...)
{
	(void)provider;
	(void)param;
	(void)type;
	(void)help;
	return 0;
}

static const char *setting(const char *name)
{
	static char text[32];
	const struct sim_scenario *s = &sim.s;
	const struct {
		const char *name;
		unsigned int value;
	} given[] = {
		{ "cma", s->cma },
		{ "eager_max", s->eager_max },
		{ "cma_min", s->cma_min },
		{ "coop_min", s->coop_min },
		{ "tx_size", s->tx_size },
		{ "rx_size", s->rx_size },
		{ "medium_max", s->medium_max },
		{ "read_min", s->read_min },
		{ "runt_size", s->runt_size },
		{ "mtu", s->mtu },
		{ "net_thread", s->net_thread },
		{ "inject_size", s->inject_size },
		{ "shm", s->shm },
	};

	if (!strcmp(name, "nic"))
		return s->tcp ? "tcp" : "udp";
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		if (strcmp(given[i].name, name))
			continue;
		snprintf(text, sizeof(text), "%u", given[i].value);
		return text;
	}
	return NULL;
}

int __wrap_fi_param_get(struct fi_provider *provider, const char *name,
			void *value)
{
	const char *text = setting(name);

	(void)provider;
	if (!text)
		return -FI_ENODATA;
	memcpy(value, &text, sizeof(text));
	return 0;
}

int __wrap_fi_log_enabled(const struct fi_provider *provider,
			  enum fi_log_level level, enum fi_log_subsys subsys)
{
	(void)provider;
	(void)subsys;
	return level == FI_LOG_WARN;
}

void __wrap_fi_log(const struct fi_provider *provider, enum fi_log_level level,
		   enum fi_log_subsys subsys, const char *func, int line,
		   const char *fmt, ...)
{
	char text[256];
	va_list args;

	(void)provider;
	(void)level;
	(void)subsys;
	(void)line;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	text[strcspn(text, "\n")] = '\0';
	sim_trace("log: %s: %s", func, text);
}

static void free_attr(void *attr, char *name)
{
	if (!attr)
		return;
	__wrap_free(name);
	__wrap_free(attr);
}

void __wrap_fi_freeinfo(struct fi_info *info)
{
	while (info) {
		struct fi_info *next = info->next;

		__wrap_free(info->src_addr);
		__wrap_free(info->dest_addr);
		__wrap_free(info->tx_attr);
		__wrap_free(info->rx_attr);
		free_attr(info->ep_attr,
			  info->ep_attr ? (char *)info->ep_attr->auth_key :
					  NULL);
		free_attr(info->domain_attr,
			  info->domain_attr ? info->domain_attr->name : NULL);
		if (info->fabric_attr)
			__wrap_free(info->fabric_attr->prov_name);
		free_attr(info->fabric_attr,
			  info->fabric_attr ? info->fabric_attr->name : NULL);
		__wrap_free(info);
		info = next;
	}
}

static bool copy_part(void *to, const void *from, size_t bytes)
{
	void *part = __wrap_calloc(1, bytes);

	if (part && from)
		memcpy(part, from, bytes);
	memcpy(to, &part, sizeof(part));
	return part;
}

static bool copy_text(char **text)
{
	if (*text)
		*text = __wrap_strdup(*text);
	return true;
}

static bool copy_bytes(void **bytes, size_t len)
{
	void *copy;

	if (!*bytes)
		return true;
	copy = __wrap_malloc(len);
	if (copy)
		memcpy(copy, *bytes, len);
	*bytes = copy;
	return copy;
}

/* Like fi_allocinfo() without an argument: all parts are there. */
struct fi_info *__wrap_fi_dupinfo(const struct fi_info *from)
{
	struct fi_info *info;
	bool all = true;

	if (!copy_part(&info, from, sizeof(*info)))
		return NULL;
	info->next = NULL;
	info->nic = NULL;
	all &= copy_part(&info->tx_attr, from ? from->tx_attr : NULL,
			 sizeof(*info->tx_attr));
	all &= copy_part(&info->rx_attr, from ? from->rx_attr : NULL,
			 sizeof(*info->rx_attr));
	all &= copy_part(&info->ep_attr, from ? from->ep_attr : NULL,
			 sizeof(*info->ep_attr));
	all &= copy_part(&info->domain_attr, from ? from->domain_attr : NULL,
			 sizeof(*info->domain_attr));
	all &= copy_part(&info->fabric_attr, from ? from->fabric_attr : NULL,
			 sizeof(*info->fabric_attr));
	all &= copy_bytes(&info->src_addr, info->src_addrlen);
	all &= copy_bytes(&info->dest_addr, info->dest_addrlen);
	if (info->domain_attr)
		copy_text(&info->domain_attr->name);
	if (info->fabric_attr) {
		copy_text(&info->fabric_attr->name);
		copy_text(&info->fabric_attr->prov_name);
	}
	if (all)
		return info;
	__wrap_fi_freeinfo(info);
	return NULL;
}
