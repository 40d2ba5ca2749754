/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Warns the user about a peer that does not answer.
 */
#include "shm/silence.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "os/process.h"
#include "shm/ep.h"
#include "shm/out.h"
#include "shm/user.h"

/* Peers that are named, of those that are waited for at the same time. */
#define LINES 4u

static unsigned long long in_seconds(uint64_t ns)
{
	return (ns + WF_NS_PER_S - 1) / WF_NS_PER_S;
}

static void tell_greeted(const char *peer, int pid, uint64_t after,
			 uint64_t left)
{
	if (!pid)
		wf_tell("no answer from %s through shared memory for %llu s: "
			"its process, which is in another PID namespace, is "
			"there and makes no progress. It may be stopped, or "
			"compute without a call of fi_cq_read(). Operations "
			"fail in another %llu s (FI_WEFT_DEAD_TIMEOUT)",
			peer, in_seconds(after), in_seconds(left));
	else
		wf_tell("no answer from %s through shared memory for %llu s: "
			"process %d is there and makes no progress. It may be "
			"stopped (`kill -CONT %d` continues it), or compute "
			"without a call of fi_cq_read(). Operations fail in "
			"another %llu s (FI_WEFT_DEAD_TIMEOUT)",
			peer, in_seconds(after), pid, pid, in_seconds(left));
}

/* A node with more processes than processors has many of them at once. */
static bool is_named(struct wf_shm_ep *ep)
{
	if (ep->connecting <= 1)
		ep->silent_lines = 0;
	if (ep->silent_lines == LINES)
		wf_tell("no answer through shared memory from more peers, "
			"which are not named here: `weft why %d` lists them",
			(int)wf_os_getpid());
	if (ep->silent_lines > LINES)
		return false;
	return ep->silent_lines++ < LINES;
}

void wf_shm_silence_tell(const struct wf_shm_out *out, uint64_t after,
			 uint64_t left)
{
	char peer[WF_ADDR_STR_LEN];

	if (!is_named(out->ep))
		return;
	wf_base_addr_str(&out->addr, peer, sizeof(peer));
	if (out->state == WF_SHM_OUT_GREETED)
		tell_greeted(peer, (int)out->listener.pid, after, left);
	else
		wf_tell("no answer from %s through shared memory for %llu s: "
			"%s; trying for another %llu s "
			"(FI_WEFT_CONNECT_TIMEOUT). Check that the process is "
			"there and that FI_WEFT_SHM is the same for both",
			peer, in_seconds(after), strerror(out->err),
			in_seconds(left));
}
