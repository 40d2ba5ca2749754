/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer by hand, for tests of what happens when a peer does not keep to the
 * rules: it speaks on the Unix socket and writes rings, and nothing of weft's
 * code is in it but the layouts.
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

/* Connects to, or listens as, 127.0.0.1 with @port. Returns a socket. */
int weft_test_raw_connect(uint16_t port);
int weft_test_raw_listen(uint16_t port);

/* A memfd as a proper sender makes it, and a proper hello for it. */
int weft_test_raw_memfd(size_t bytes, int seals);
struct wf_shm_hello weft_test_raw_hello(uint16_t own_port);

/* Sends with @count copies of @fd. */
void weft_test_raw_send(int sock, const void *buf, size_t len, int fd,
			int count);

/* Receives; a descriptor that comes along is closed. Returns the bytes, 0 at
 * the end, -1 when nothing came within @ms. */
int weft_test_raw_recv(int sock, void *buf, size_t len, int ms);

/* Opens a channel properly. False when refused. */
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
