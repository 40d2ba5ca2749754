/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The oracle checks that a run was correct. Every message is recorded when it
 * is sent, when its sender learns how it ended, and when it is received. Memory
 * of applications may be touched only while it is posted or registered.
 */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "sim.h"

enum oracle_kind { ORACLE_TAGGED, ORACLE_PLAIN };

enum oracle_fate {
	ORACLE_UNSENT,
	ORACLE_UNDER_WAY,
	ORACLE_INJECTED, /* accepted; only a failure is reported */
	ORACLE_KEPT,	 /* the sender got a completion; a failure may follow */
	ORACLE_SENT,	 /* the sender got a completion */
	ORACLE_DELIVERED, /* the same, with FI_DELIVERY_COMPLETE */
	ORACLE_FAILED,
};

struct oracle_msg {
	enum oracle_fate fate;
	enum oracle_kind kind;
	unsigned int lane;
	uint32_t len;
	unsigned int from_life, to_life, got_life;
	unsigned int got; /* how often */
	bool got_error;
	uint64_t post; /* number of the receive that matched it */
	uint64_t sent_at;
};

/* An id contains sender, receiver and number of a message. @lane: between which
 * of their endpoints; messages of one lane keep their order. */
uint64_t oracle_sent(struct sim_proc *from, struct sim_proc *to,
		     enum oracle_kind kind, unsigned int lane, uint32_t len);
/* The call was refused: the message does not exist. */
void oracle_unsent(uint64_t id);
void oracle_fate(uint64_t id, enum oracle_fate fate, int err);
/* The error completion of a message that was injected or has completed: it has no
 * context. */
void oracle_injected_failed(struct sim_proc *from, uint64_t id,
			    enum oracle_kind kind, int err);
/* @post: number of the receive in the order of posting. @buf NULL: an error. */
void oracle_received(struct sim_proc *at, uint64_t id, enum oracle_kind kind,
		     const void *buf, size_t len, uint64_t post);
void oracle_fill(uint64_t id, void *buf, size_t len);
uint32_t oracle_len(uint64_t id);
/* As text: sender, receiver and number. Valid until the next call. */
const char *oracle_name(uint64_t id);
unsigned int oracle_sender(uint64_t id);
unsigned int oracle_receiver(uint64_t id);

/* Whether all messages between the current incarnations have arrived. */
bool oracle_all_received(void);
/* A message to @proc that was sent at least @age ago and has not arrived; 0:
 * none. */
uint64_t oracle_waiting(const struct sim_proc *proc, uint64_t age);
void oracle_check_end(void);
void oracle_print(FILE *to);
/* Whether a completion may be an error at all in this scenario. */
bool oracle_errors_allowed(void);
/* Whether an operation with that process may fail: the process has died, or a
 * fault of this scenario ends connections between living processes. */
bool oracle_may_fail(unsigned int peer);

/* A copy by the kernel to, or from, the memory of another process. */
void oracle_written(struct sim_proc *proc, const char *addr, size_t len);
void oracle_read(struct sim_proc *proc, const char *addr, size_t len);

extern uint64_t oracle_messages;

#endif
