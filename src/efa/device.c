/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device and the NIC behind it: one for each process, opened when it is
 * first needed, closed when the process ends. A forked child releases its
 * parent's and opens one of its own, under another GID, when it needs one.
 */
#include <net/if.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "efa/efa.h"
#include "nic/open.h"
#include "os/net.h"

/* A message that has just come is acknowledged by then. */
#define ACKS_NS (200 * WF_NS_PER_US)

/* For a peer that does not answer its first packet: its port is closed, or
 * nobody has the address. */
#define CONNECT_MS 5000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_nic *_Atomic the_nic;
static int nic_fd = -1;
static bool ended;
static atomic_bool watched;
static _Atomic int objects;

static void close_socket_locked(void)
{
	if (nic_fd >= 0)
		close(nic_fd);
	nic_fd = -1;
}

static void in_child(struct wf_fork_watch *watch)
{
	(void)watch;
	pthread_mutex_init(&lock, NULL);
	close_socket_locked();
	the_nic = NULL;
	objects = 0;
	wf_efa_ah_forked();
	wf_efa_ring_forked();
	wf_efa_sysfs_forked();
	/* The child's list of watches is empty: its own children need this one
	 * in it again. */
	watched = false;
}

static struct wf_fork_watch watch = { .in_child = in_child };

void wf_efa_device_watch(void)
{
	if (!watched)
		wf_base_fork_watch_once(&watch, &watched);
}

/* How well an interface serves as the default: one that other hosts can reach
 * before loopback. 0: not at all. */
static int rank(const struct wf_os_iface *iface)
{
	if (iface->addr.sa.sa_family != AF_INET || !(iface->flags & IFF_UP))
		return 0;
	if (iface->flags & IFF_LOOPBACK)
		return 1;
	return iface->flags & IFF_RUNNING ? 3 : 2;
}

static int choose_addr(struct wf_addr *addr)
{
	const char *want = getenv("WEFT_EFA_IFACE");
	struct wf_os_iface *list = NULL;
	int count = wf_os_ifaces(&list), best = 0;

	for (int i = 0; i < count; i++) {
		int got = rank(&list[i]);

		if (want && *want && strcmp(want, list[i].name))
			continue;
		if (got <= best)
			continue;
		best = got;
		wf_base_addr_set(addr, &list[i].addr.in,
				 sizeof(list[i].addr.in));
	}
	free(list);
	if (best)
		return 0;
	wf_warn("efa: no IPv4 address on %s: WEFT_EFA_IFACE names the interface",
		want && *want ? want : "any interface that is up");
	return ENODEV;
}

static uint64_t connect_ns(void)
{
	const char *text = getenv("WEFT_EFA_TIMEOUT"), *end;
	uint64_t ms;

	if (!text || !*text)
		return CONNECT_MS * WF_NS_PER_MS;
	if (wf_base_amount_time(text, &end, 1, &ms) || *end || !ms) {
		wf_warn("efa: WEFT_EFA_TIMEOUT=%s is no time, 5s is used",
			text);
		return CONNECT_MS * WF_NS_PER_MS;
	}
	return ms * WF_NS_PER_MS;
}

/* A socket of our own: a child closes it, or the port would outlive us. */
static int open_socket_locked(const struct wf_addr *addr)
{
	int ret = 0;

	wf_base_fork_hold();
	nic_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	wf_base_fork_release();
	if (nic_fd < 0 || bind(nic_fd, &addr->sa, sizeof(addr->in)))
		ret = errno;
	return ret;
}

/* The device does not encrypt, and must not send in the clear what the user
 * wants to be encrypted. */
static int check_key_locked(void)
{
	static bool told;

	if (!getenv("FI_WEFT_KEY_FILE"))
		return 0;
	if (!told)
		wf_tell("FI_WEFT_KEY_FILE: the software EFA device does not "
			"encrypt and is not opened: unset the variable to send "
			"in the clear");
	told = true;
	return EOPNOTSUPP;
}

static void source(const struct wf_addr *addr, uint8_t raw[16])
{
	union ibv_gid gid;

	wf_efa_gid_of(addr, &gid);
	memcpy(raw, gid.raw, sizeof(gid.raw));
}

static struct wf_nic *open_locked(void)
{
	struct wf_nic_attr attr = {
		.fd = -1,
		.locked = true,
		.attend = true,
		.whole = true,
		.connect_ns = connect_ns(),
		.source = source,
	};
	struct wf_nic *nic;
	int ret = ended ? ENODEV : check_key_locked();

	if (!ret)
		ret = choose_addr(&attr.addr);
	if (ret)
		goto err;
	ret = open_socket_locked(&attr.addr);
	if (ret) {
		wf_warn("efa: no UDP socket: %s", strerror(ret));
		goto err;
	}
	attr.fd = nic_fd;
	ret = -wf_nic_open("udp", &attr, &nic);
	if (ret) {
		wf_warn("efa: cannot open the NIC: %s", strerror(ret));
		goto err;
	}
	the_nic = nic;
	return nic;

err:
	close_socket_locked();
	errno = ret;
	return NULL;
}

struct wf_nic *wf_efa_device_nic(void)
{
	struct wf_nic *nic = the_nic;

	if (nic)
		return nic;
	wf_efa_device_watch();
	pthread_mutex_lock(&lock);
	nic = the_nic;
	if (!nic)
		nic = open_locked();
	pthread_mutex_unlock(&lock);
	return nic;
}

bool wf_efa_device_has(const struct wf_nic *nic)
{
	return nic && nic == the_nic;
}

int wf_efa_device_gid(union ibv_gid *gid)
{
	struct wf_nic *nic = wf_efa_device_nic();

	if (!nic)
		return errno;
	wf_efa_gid_of(wf_nic_socket(nic), gid);
	return 0;
}

void wf_efa_device_hold(int n)
{
	objects += n;
}

int wf_efa_refuse(bool *once, const char *what)
{
	if (!*once)
		wf_warn("efa: not supported: %s", what);
	*once = true;
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

/* Peers must not wait for an acknowledgement that is never sent. If queue pairs
 * are left, other threads may still use them: their memory stays. */
__attribute__((destructor)) static void end(void)
{
	struct wf_nic *nic;
	uint64_t until;

	wf_efa_ring_stop();
	pthread_mutex_lock(&lock);
	nic = the_nic;
	ended = true;
	if (nic && !objects) {
		the_nic = NULL;
		wf_nic_close(nic);
		close_socket_locked();
		nic = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (!nic)
		return;
	until = wf_base_clock_ns() + ACKS_NS;
	do
		wf_nic_progress(nic);
	while (wf_base_clock_ns() < until);
}

/* libfabric finds the tree by this name. It is set before there are threads. */
__attribute__((constructor)) static void begin(void)
{
	const char *dir = wf_efa_sysfs();

	if (dir)
		setenv("SYSFS_PATH", dir, 1);
}
