/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The abstract Unix names of endpoints.
 */
#include "shm/name.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "os/file.h"
#include "os/socket.h"

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

int wf_shm_name_connect(const struct wf_addr *addr)
{
	int fd = open_with(wf_os_connect, addr, false), local;

	if (fd != -ECONNREFUSED)
		return fd;
	/* Not known: the caller tries again. "Unreachable" would be final. */
	local = wf_base_addr_find_local(addr);
	if (local < 0)
		return local;
	if (!local)
		return -EHOSTUNREACH;
	return open_with(wf_os_connect, addr, true);
}

int wf_shm_name_owner(const struct wf_addr *addr, uid_t *uid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int fd = wf_shm_name_connect(addr), err;

	if (fd < 0)
		return fd;
	err = wf_os_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	if (!err)
		*uid = cred.uid;
	wf_os_close(fd);
	return err;
}
