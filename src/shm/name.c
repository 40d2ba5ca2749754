/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Unix names of endpoints.
 */
#include "shm/name.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/place.h"
#include "os/file.h"
#include "os/inline.h"
#include "os/shared.h"
#include "os/socket.h"
#include "shm/user.h"

static socklen_t make_name(struct sockaddr_un *un, const struct wf_addr *addr,
			   bool any)
{
	char text[WF_ADDR_STR_LEN];
	int len;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	if (any)
		snprintf(text, sizeof(text), "*%d:%u",
			 addr->sa.sa_family == AF_INET ? 4 : 6,
			 wf_base_addr_port(addr));
	else
		wf_base_addr_str(addr, text, sizeof(text));
	/* sun_path[0] stays 0: an abstract name. */
	len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "weft/%s",
		       text);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)len);
}

/* A socket on which @call, wf_os_bind() or wf_os_connect(), succeeded. */
static int open_with(int (*call)(int, const struct sockaddr *, socklen_t),
		     const struct wf_addr *addr, bool any)
{
	struct sockaddr_un un;
	socklen_t len = make_name(&un, addr, any);
	int fd, err;

	fd = wf_os_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	err = call(fd, (struct sockaddr *)&un, len);
	if (!err)
		return fd;
	wf_os_close(fd);
	return err;
}

int wf_shm_name_bind(const struct wf_addr *addr, bool any)
{
	return open_with(wf_os_bind, addr, any);
}

/* Most addresses state no place, and nothing is asked for them. */
static uint64_t own_place(const struct wf_shm_home *home)
{
	return home->place ? home->place : wf_base_place_own();
}

bool wf_shm_name_is_elsewhere(const struct wf_shm_home *home,
			      const struct wf_addr *addr)
{
	uint64_t place = wf_base_place_of(addr);

	return place && place != own_place(home);
}

/* To whoever is bound to all addresses of @addr's family, or of both families:
 * IPv6 endpoints are. Their ports are the same set, so that there is at most
 * one. */
static int connect_any(const struct wf_addr *addr)
{
	struct wf_addr both = { .in6 = { .sin6_family = AF_INET6 } };
	int fd = open_with(wf_os_connect, addr, true);

	if (fd != -ECONNREFUSED || addr->sa.sa_family != AF_INET)
		return fd;
	wf_base_addr_set_port(&both, wf_base_addr_port(addr));
	return open_with(wf_os_connect, &both, true);
}

int wf_shm_name_connect(const struct wf_shm_home *home,
			const struct wf_addr *addr)
{
	int fd, local;

	if (wf_shm_name_is_elsewhere(home, addr))
		return home->folder ? wf_shm_folder_connect(home, addr) :
				      -EHOSTUNREACH;
	fd = open_with(wf_os_connect, addr, false);
	if (fd != -ECONNREFUSED)
		return fd;
	/* Not known: the caller tries again. "Unreachable" would be final. */
	local = wf_base_addr_find_local(addr);
	if (local < 0)
		return local;
	if (local)
		return connect_any(addr);
	return home->folder && !wf_base_place_of(addr) ?
		       wf_shm_folder_connect(home, addr) :
		       -EHOSTUNREACH;
}

int wf_shm_name_owner(const struct wf_shm_home *home,
		      const struct wf_addr *addr, uid_t *uid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int fd = wf_shm_name_connect(home, addr), err;

	if (fd < 0)
		return fd;
	err = wf_os_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	if (!err)
		*uid = cred.uid;
	wf_os_close(fd);
	return err;
}

/* -- which way ------------------------------------------------------------- */

/* Peers that can never be met in the folder are reached by packets. */
static bool is_final(int err)
{
	switch (err) {
	case -ECONNREFUSED:
	case -ENOTUNIQ:
	case -EACCES:
	case -EPERM:
	case -ENOENT:
	case -ENAMETOOLONG:
		return true;
	default:
		return false;
	}
}

/* Whether the process of @addr is in the folder, and of a user that we may talk
 * to. */
static int is_met(const struct wf_shm_home *home, const char *allow,
		  const struct wf_addr *addr)
{
	struct ucred cred;
	int fd, err;
	bool ours;

	if (!home->folder)
		return 0;
	fd = wf_shm_folder_connect(home, addr);
	if (fd == -EAGAIN)
		return 1; /* its backlog is full: it is there */
	if (fd < 0)
		return is_final(fd) ? 0 : fd;
	err = wf_shm_user_check(allow, fd, &cred, &ours);
	wf_os_close(fd);
	return !err;
}

/* Once in a process: what would be faster. */
static void tell_elsewhere(const struct wf_shm_home *home,
			   const struct wf_addr *addr)
{
	WF_PER_PROCESS static _Atomic uint32_t told;
	char text[WF_ADDR_STR_LEN];

	if (wf_shared_load(&told, relaxed))
		return;
	wf_shared_store(&told, 1, relaxed);
	wf_base_addr_str(addr, text, sizeof(text));
	if (home->folder)
		wf_warn("%s is in another network namespace of this host and "
			"not in %s: it is reached by packets. FI_WEFT_DIR must "
			"be the same folder for both",
			text, home->folder);
	else
		wf_warn("%s is in another network namespace of this host and "
			"is reached by packets. A folder that both share, "
			"named by FI_WEFT_DIR, lets them use shared memory",
			text);
}

/* A queue pair of an EFA device: its number and key are unique, so whoever holds
 * the name in this network namespace is that endpoint. It took the name before
 * anybody knew its address. */
static int is_here(const struct wf_addr *addr)
{
	int fd = open_with(wf_os_connect, addr, false);

	if (fd == -EAGAIN)
		return 1; /* its backlog is full: it is there */
	if (fd < 0)
		return is_final(fd) ? 0 : fd;
	wf_os_close(fd);
	return 1;
}

int wf_shm_name_reaches(const struct wf_shm_home *home, const char *allow,
			const struct wf_addr *addr)
{
	uint64_t place = wf_base_place_of(addr);
	int local, met = 0;
	bool here;

	if (wf_base_addr_is_efa(addr))
		return is_here(addr);
	if (!wf_shm_name_is_elsewhere(home, addr)) {
		local = wf_base_addr_find_local(addr);
		return local || place ? local : is_met(home, allow, addr);
	}
	here = wf_base_place_host(place) == wf_base_place_host(own_place(home));
	if (here)
		met = is_met(home, allow, addr);
	if (met)
		return met;
	/* Packets to an address that we have, too, come back to this
	 * namespace: no answer is better than one of another process. */
	local = wf_base_addr_find_local(addr);
	if (here && !local)
		tell_elsewhere(home, addr);
	return local;
}
