/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link between the two processes. This file handles namespaces and
 * interfaces and knows nothing of what is sent over them.
 */
#include "tools/bench/link.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The same at both ends, so that one variable names both. */
#define VETH "weft0"
#define VETH_RESPONDER "10.98.0.2" /* see end_up() */

static const char *const words[] = {
	[WF_TOOLS_OVER_NODE] = "node",
	[WF_TOOLS_OVER_LOOPBACK] = "loopback",
	[WF_TOOLS_OVER_VETH] = "veth",
	[WF_TOOLS_OVER_HOSTS] = "hosts",
};

int wf_tools_link_parse(const char *word, enum wf_tools_over *over)
{
	size_t i;

	for (i = 0; i < WF_TOOLS_OVER_HOSTS; i++) {
		if (strcmp(words[i], word))
			continue;
		*over = (enum wf_tools_over)i;
		return 0;
	}
	return -EINVAL;
}

const char *wf_tools_link_word(enum wf_tools_over over)
{
	return words[over];
}

const char *wf_tools_link_describe(const struct wf_tools_link *link, char *buf,
				   size_t len)
{
	switch (link->over) {
	case WF_TOOLS_OVER_LOOPBACK:
		snprintf(buf, len, "the loopback interface, no shared memory");
		break;
	case WF_TOOLS_OVER_VETH:
		snprintf(buf, len,
			 "two network namespaces joined by veth, MTU %u",
			 link->mtu);
		break;
	case WF_TOOLS_OVER_HOSTS:
		snprintf(buf, len, "this host and %.32s (%.40s), by %s%s",
			 link->host.name, link->host.address,
			 link->interface[0] ? link->interface : "?",
			 strcmp(link->interface, "lo") ?
				 "" :
				 ": one host, so providers may use shared "
				 "memory");
		break;
	default:
		snprintf(buf, len, "this node");
		break;
	}
	return buf;
}

static int fail(struct wf_tools_link *link, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct wf_tools_link *link, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(link->error, sizeof(link->error), format, args);
	va_end(args);
	return err;
}

static int ip(struct wf_tools_link *link, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int ip(struct wf_tools_link *link, const char *format, ...)
{
	char command[256];
	va_list args;
	size_t len;

	len = (size_t)snprintf(command, sizeof(command), "ip ");
	va_start(args, format);
	vsnprintf(command + len, sizeof(command) - len, format, args);
	va_end(args);
	if (!system(command))
		return 0;
	return fail(link, -EIO, "`%s` failed: is iproute2 installed?", command);
}

/* Creates a namespace for this process, and a descriptor that keeps it. */
static int new_namespace(struct wf_tools_link *link, int *fd)
{
	if (unshare(CLONE_NEWNET))
		return fail(link, -errno, "no network namespace: %s",
			    strerror(errno));
	*fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return fail(link, -errno, "no network namespace: %s",
			    strerror(errno));
	return ip(link, "link set lo up");
}

static int end_up(struct wf_tools_link *link, int which)
{
	int ret = ip(link, "addr add 10.98.0.%d/24 dev " VETH, which + 1);

	return ret ? ret : ip(link, "link set " VETH " up");
}

/*
 * The kernel reports a moment later that both ends are up. Until then providers
 * find no address: libfabric's tcp then failed in one of two processes.
 */
static int wait_running(struct wf_tools_link *link)
{
	const struct timespec pause = { .tv_nsec = 2 * WF_NS_PER_MS };
	struct ifreq request = { .ifr_name = VETH };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int tries, ret = -EIO;

	for (tries = 0; fd >= 0 && tries < 2500 && ret; tries++) {
		if (!ioctl(fd, SIOCGIFFLAGS, &request) &&
		    request.ifr_flags & IFF_RUNNING)
			ret = 0;
		else
			nanosleep(&pause, NULL);
	}
	if (fd >= 0)
		close(fd);
	return ret ? fail(link, ret, VETH " does not come up") : 0;
}

/* In both namespaces; afterwards we are in the second. */
static int wait_both(struct wf_tools_link *link)
{
	int which, ret = 0;

	for (which = 0; which < 2 && !ret; which++) {
		if (setns(link->namespaces[which], CLONE_NEWNET))
			ret = fail(link, -errno, "setns: %s", strerror(errno));
		else
			ret = wait_running(link);
	}
	return ret;
}

/* Afterwards we are in the second namespace. */
static int join(struct wf_tools_link *link)
{
	int ret;

	ret = new_namespace(link, &link->namespaces[0]);
	if (!ret)
		ret = new_namespace(link, &link->namespaces[1]);
	if (!ret)
		ret = ip(link,
			 "link add " VETH " mtu %u type veth peer name " VETH
			 " mtu %u netns /proc/%d/fd/%d",
			 link->mtu, link->mtu, (int)getpid(),
			 link->namespaces[0]);
	if (!ret)
		ret = end_up(link, 1);
	if (!ret && setns(link->namespaces[0], CLONE_NEWNET))
		ret = fail(link, -errno, "setns: %s", strerror(errno));
	if (!ret)
		ret = end_up(link, 0);
	return ret ? ret : wait_both(link);
}

/* We hold the server until wf_tools_link_close(). */
static int open_hosts(struct wf_tools_link *link)
{
	static char *const request[] = { "hold" };
	char said[WF_TOOLS_HOST_ERROR];
	int fd, ret;

	if (getrandom(&link->host.session, sizeof(link->host.session), 0) < 0 ||
	    !link->host.session)
		link->host.session = (uint64_t)getpid();
	fd = wf_tools_host_find(&link->host, link->error);
	if (fd < 0)
		return fd;
	ret = wf_tools_host_start(fd, request, 1, said);
	if (ret) {
		close(fd);
		return fail(link, ret, "%.60s says: %.180s", link->host.name,
			    said);
	}
	wf_tools_host_interface(fd, link->interface, sizeof(link->interface));
	link->held = fd;
	return 0;
}

int wf_tools_link_open(struct wf_tools_link *link)
{
	int home, ret;

	link->namespaces[0] = -1;
	link->namespaces[1] = -1;
	link->error[0] = '\0';
	if (link->over == WF_TOOLS_OVER_HOSTS)
		return open_hosts(link);
	if (link->over != WF_TOOLS_OVER_VETH)
		return 0;
	if (geteuid())
		return fail(
			link, -EPERM,
			"only root can make network namespaces: run it with "
			"sudo; providers, not mpi, can also be measured "
			"--over loopback");
	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (home < 0)
		return fail(link, -errno, "no network namespaces here: %s",
			    strerror(errno));
	ret = join(link);
	if (setns(home, CLONE_NEWNET) && !ret)
		ret = fail(link, -errno, "setns: %s", strerror(errno));
	close(home);
	if (ret)
		wf_tools_link_close(link);
	return ret;
}

void wf_tools_link_close(struct wf_tools_link *link)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (link->namespaces[i] >= 0)
			close(link->namespaces[i]);
		link->namespaces[i] = -1;
	}
	if (link->held)
		close(link->held);
	link->held = 0;
}

void wf_tools_link_env(const struct wf_tools_link *link,
		       const char *env[WF_TOOLS_LINK_ENV])
{
	static const char *const interfaces[] = {
		"FI_WEFT_IFACE",
		"FI_TCP_IFACE",
		"FI_UDP_IFACE",
	};
	const char *name = link->over == WF_TOOLS_OVER_VETH  ? VETH :
			   link->over == WF_TOOLS_OVER_HOSTS ? link->interface :
							       "lo";
	size_t n = 0, i;

	env[n++] = "WEFT_BENCH_PEER";
	env[n++] = link->over == WF_TOOLS_OVER_VETH  ? VETH_RESPONDER :
		   link->over == WF_TOOLS_OVER_HOSTS ? link->host.address :
						       "127.0.0.1";
	if (link->over == WF_TOOLS_OVER_LOOPBACK ||
	    link->over == WF_TOOLS_OVER_VETH) {
		env[n++] = "FI_WEFT_SHM";
		env[n++] = "0";
	}
	for (i = 0; i < 3 && link->over != WF_TOOLS_OVER_NODE; i++) {
		if (link->over == WF_TOOLS_OVER_HOSTS &&
		    (!name[0] || getenv(interfaces[i])))
			continue;
		env[n++] = interfaces[i];
		env[n++] = name;
	}
	env[n] = NULL;
}
