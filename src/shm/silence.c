/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Warns the user about a peer that does not answer, and of too few descriptors.
 */
#include "shm/silence.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "os/process.h"
#include "shm/ep.h"
#include "shm/out.h"
#include "shm/user.h"

/* Peers that are named, of those that are waited for at the same time. */
#define LINES 4u

/* We speak of descriptors after they were short for this time, and no longer than
 * that without a failure in between: peers are tried again each 32 ms. */
#define SHORT_FOR (2 * WF_NS_PER_S)
#define SHORT_PAUSE WF_NS_PER_S

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

static bool is_short(int err)
{
	return err == EMFILE || err == ENFILE;
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

bool wf_shm_silence_is_ours(const struct wf_shm_out *out)
{
	return out->state != WF_SHM_OUT_GREETED && is_short(out->err) &&
	       !out->err_is_theirs;
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
	else if (is_short(out->err))
		wf_tell("no answer from %s through shared memory for %llu s: "
			"its process has no descriptor left (RLIMIT_NOFILE); "
			"trying for another %llu s (FI_WEFT_CONNECT_TIMEOUT)",
			peer, in_seconds(after), in_seconds(left));
	else
		wf_tell("no answer from %s through shared memory for %llu s: "
			"%s; trying for another %llu s "
			"(FI_WEFT_CONNECT_TIMEOUT). Check that the process is "
			"there and that FI_WEFT_SHM is the same for both",
			peer, in_seconds(after), strerror(out->err),
			in_seconds(left));
}

static void tell_short(struct wf_shm_ep *ep, int err, uint64_t after)
{
	struct wf_os_fd_limit limit = { 0 };

	if (ep->short_told)
		return;
	ep->short_told = true;
	if (err == ENFILE) {
		wf_tell("no file for peers on this node for %llu s: the system "
			"has as many open as it may (sysctl fs.file-max)",
			in_seconds(after));
		return;
	}
	wf_os_fd_limit(&limit);
	wf_tell("no descriptor for peers on this node for %llu s: process %d "
		"may have %llu open (RLIMIT_NOFILE), and each peer takes one. "
		"Raise the limit (`ulimit -n`), or close files. Operations to "
		"peers that cannot be reached fail "
		"(FI_WEFT_CONNECT_TIMEOUT); peers that connect to us wait",
		in_seconds(after), (int)wf_os_getpid(),
		(unsigned long long)limit.now);
}

void wf_shm_silence_short(struct wf_shm_ep *ep, int err, uint64_t now)
{
	if (!is_short(err))
		return;
	/* Times are of the look or of the call: not all in order. */
	if (!ep->short_since || now > ep->short_last + SHORT_PAUSE)
		ep->short_since = now;
	if (now < ep->short_last)
		return;
	ep->short_last = now;
	if (now - ep->short_since >= SHORT_FOR)
		tell_short(ep, err, now - ep->short_since);
}

void wf_shm_silence_failed(struct wf_shm_ep *ep, int err, uint64_t waited)
{
	if (is_short(err))
		tell_short(ep, err, waited);
}

void wf_shm_silence_enough(struct wf_shm_ep *ep)
{
	ep->short_since = 0;
}
