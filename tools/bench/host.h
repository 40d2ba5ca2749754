/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection between `weft bench HOST` and `weft bench --server`.
 */
#ifndef WF_TOOLS_BENCH_HOST_H
#define WF_TOOLS_BENCH_HOST_H

#include "tools/bench/host_defs.h"

#include <stddef.h>
#include <sys/socket.h>

enum { WF_TOOLS_HOST_ADDRESS = 64, WF_TOOLS_HOST_ERROR = 256 };

/* A server, as the client found it. */
struct wf_tools_host {
	const char *name;		     /* as the user wrote it */
	char address[WF_TOOLS_HOST_ADDRESS]; /* a number */
	unsigned port;
	uint64_t session;
};

/*
 * Connects by name and fills in the address. A descriptor after both hellos, or
 * -errno with a text in @error (WF_TOOLS_HOST_ERROR) that says what to do.
 */
int wf_tools_host_find(struct wf_tools_host *host, char *error);

/* The same by the address that is known. */
int wf_tools_host_connect(const struct wf_tools_host *host, char *error);

/* The server's side of the hellos. 0, or -errno: then close it. */
int wf_tools_host_welcome(int fd, uint64_t *session);

/* Frames. 0, -ENODATA at the end of the connection, or -errno. receive: *len is
 * first the room, then the number of bytes received. */
int wf_tools_host_send(int fd, enum wf_tools_host_channel channel,
		       const void *data, size_t len);
int wf_tools_host_receive(int fd, enum wf_tools_host_channel *channel,
			  void *data, size_t *len);

/*
 * Requests a process ("hold", "worker", "ucx") and waits until it runs: @answer
 * (WF_TOOLS_HOST_ERROR) is the server's reply.
 */
int wf_tools_host_start(int fd, char *const *words, unsigned n, char *answer);

/* Carries packets between the connection and two sockets of this host until one
 * side ends. @control may also be a pipe that takes what arrives. -1: no such
 * socket. Returns 0 when our socket ended, -ENODATA when the connection did,
 * -ECHILD when the server reported how the process ended (@text, of
 * WF_TOOLS_HOST_ERROR), -EINTR when the user wants to stop. */
int wf_tools_host_relay(int fd, int control, int side, char *text);

/* The interface with the local address of the connection; "" if none. */
void wf_tools_host_interface(int fd, char *name, size_t len);

/* The other side's address as a number. */
void wf_tools_host_peer(int fd, char *address, size_t len);

#endif
