/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copying a large message from both sides at once.
 */
#include "shm/share.h"

#include <errno.h>

#include "base/log.h"
#include "op/iov.h"
#include "os/shared.h"

/* Bytes one call copies before other work gets a turn. */
#define BUDGET ((uint64_t)8 << 20)
#define CHUNK_MIN WF_SHM_PAGE

void wf_shm_share_open(struct wf_shm_share *share, const struct iovec *to,
		       size_t count, size_t len, size_t chunk)
{
	wf_shared_store(&share->claimed, 0, relaxed);
	wf_shared_store(&share->sender_done, 0, relaxed);
	wf_shared_store(&share->sender_failed, 0, relaxed);
	share->iov_count = (uint32_t)count;
	share->chunk = chunk;
	share->len = len;
	for (size_t i = 0; i < count; i++) {
		share->iov[i].addr = (uint64_t)(uintptr_t)to[i].iov_base;
		share->iov[i].len = to[i].iov_len;
	}
}

int wf_shm_share_copy(struct wf_shm_share *share, uint64_t chunk, uint64_t len,
		      int (*copy)(void *arg, uint64_t offset, uint64_t part),
		      void *arg, uint32_t *done)
{
	for (uint64_t used = 0; used < BUDGET; used += chunk) {
		uint32_t turn = wf_shared_add(&share->claimed, 1, relaxed);
		uint64_t offset = turn * chunk;
		uint64_t part = chunk;
		int ret;

		if (offset >= len)
			return 1;
		if (part > len - offset)
			part = len - offset;
		ret = copy(arg, offset, part);
		if (ret)
			return ret;
		++*done;
	}
	return 0;
}

bool wf_shm_share_join(const struct wf_shm_share *share, struct wf_shm_tx *tx)
{
	struct wf_shm_help *help = &tx->help;
	uint64_t room = 0;

	help->chunk = share->chunk;
	help->len = share->len;
	help->iov_count = share->iov_count;
	if (help->chunk < CHUNK_MIN || help->len > tx->req->len ||
	    help->len / help->chunk > UINT32_MAX / 2 ||
	    help->iov_count > WF_SHM_SHARE_IOV)
		return false;
	for (uint32_t i = 0; i < help->iov_count; i++) {
		help->iov[i].iov_base = (void *)(uintptr_t)share->iov[i].addr;
		help->iov[i].iov_len = share->iov[i].len;
		if (help->iov[i].iov_len > UINT64_MAX - room)
			return false;
		room += help->iov[i].iov_len;
	}
	return room >= help->len;
}

struct writer {
	struct wf_shm_mover *mover;
	const struct wf_shm_tx *tx;
};

static int write_chunk(void *arg, uint64_t offset, uint64_t part)
{
	const struct writer *w = arg;
	const struct wf_shm_help *help = &w->tx->help;
	struct iovec from[WF_OP_IOV_MAX], to[WF_SHM_SHARE_IOV];
	size_t n, m;

	n = wf_op_iov_slice(w->tx->req->iov, w->tx->req->iov_count, offset,
			    part, from);
	m = wf_op_iov_slice(help->iov, help->iov_count, offset, part, to);
	return wf_shm_mover_write(w->mover, from, n, to, m, part);
}

bool wf_shm_share_help(struct wf_shm_share *share, struct wf_shm_mover *mover,
		       struct wf_shm_tx *tx)
{
	struct writer w = { .mover = mover, .tx = tx };
	uint32_t done = 0;
	int ret;

	/* If we may not write there, the receiver copies alone. So it does in
	 * our own process, where one thread may use both ends: it would copy in
	 * the middle of its own copying. */
	if (mover->way != WF_SHM_WAY_CMA)
		return false;
	ret = wf_shm_share_copy(share, tx->help.chunk, tx->help.len,
				write_chunk, &w, &done);
	/* Release: the receiver reads the bytes after it saw the count. */
	wf_shared_add(&share->sender_done, done, release);
	if (ret >= 0)
		return !ret;
	wf_info("cannot copy the sender's part of a message: error %d", -ret);
	wf_shared_store(&share->sender_failed, (uint32_t)-ret, release);
	return false;
}
