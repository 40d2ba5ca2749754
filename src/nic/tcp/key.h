/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A job's secret: a file that only its owner can read. Its contents are not
 * used directly; the protocol uses a key derived from them.
 */
#ifndef WF_NIC_TCP_KEY_H
#define WF_NIC_TCP_KEY_H

#include <stddef.h>
#include <stdint.h>

#define WF_TCP_KEY_MIN 32u   /* bytes of a secret */
#define WF_TCP_KEY_MAX 4096u /* and of its file */
#define WF_TCP_KEY_PSK 32u
#define WF_TCP_KEY_ID 48u

struct wf_tcp_key {
	uint8_t psk[WF_TCP_KEY_PSK];
	/* Names it to peers in the clear: says whether two keys are the same,
	 * and nothing else of them. */
	char id[WF_TCP_KEY_ID];
};

/* 0, or -errno and in @why what is wrong and what to do. */
int wf_tcp_key_read(const char *path, struct wf_tcp_key *key, char *why,
		    size_t room);
void wf_tcp_key_wipe(struct wf_tcp_key *key);

#endif
