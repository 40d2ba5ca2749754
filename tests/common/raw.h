/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer without weft's code, for tests of peers that break the rules: it uses
 * the Unix socket and writes rings by itself, and shares only the layouts with
 * weft.
 */
#ifndef WEFT_TESTS_COMMON_RAW_H
#define WEFT_TESTS_COMMON_RAW_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/conn_defs.h"
#include "shm/ring_defs.h"

#define WEFT_TEST_RAW_SLOTS 5
#define WEFT_TEST_RAW_LINES 8

struct weft_test_raw {
	int sock;
	int memfd;
	size_t bytes;
	uint8_t *base; /* the ring, mapped */
};

/* Connects to 127.0.0.1 with @port, or listens there. Returns a socket. */
int weft_test_raw_connect(uint16_t port);
int weft_test_raw_listen(uint16_t port);

/* A memfd as a correct sender makes it, and a correct hello for it. */
int weft_test_raw_memfd(size_t bytes, int seals);
struct wf_shm_hello weft_test_raw_hello(uint16_t own_port);

/* Sends with @count copies of @fd. */
void weft_test_raw_send(int sock, const void *buf, size_t len, int fd,
			int count);

/* Receives, and closes a descriptor that arrives with the message. Returns the
 * number of bytes, 0 at the end, -1 if nothing came within @ms. */
int weft_test_raw_recv(int sock, void *buf, size_t len, int ms);

/* Opens a channel correctly. False if it is refused. */
bool weft_test_raw_open(struct weft_test_raw *raw, uint16_t port,
			const struct wf_shm_hello *hello,
			struct wf_shm_welcome *welcome);
void weft_test_raw_close(struct weft_test_raw *raw);

struct wf_shm_slot *weft_test_raw_slot(struct weft_test_raw *raw,
				       uint32_t number);
/* Makes the slot visible. */
void weft_test_raw_publish(struct wf_shm_slot *slot, uint32_t number,
			   size_t len, uint8_t kind, uint8_t flags);

#endif
