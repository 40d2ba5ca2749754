/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics on one element of 8 bytes, the short way.
 */
#include "shm/word.h"

#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>

#include "op/cntr.h"
#include "shm/ep.h"
#include "shm/proto.h"
#include "shm/put.h"
#include "shm/tx.h"

#define WORD 8

static uint64_t access_of(const struct wf_shm_word *word)
{
	if (word->op == FI_ATOMIC_READ)
		return FI_REMOTE_READ;
	return word->kind == WF_OP_AMO_WRITE ? FI_REMOTE_WRITE :
					       FI_REMOTE_WRITE | FI_REMOTE_READ;
}

/* Memory that both map is for proto_direct.c. */
static bool is_known(const struct wf_shm_out *out,
		     const struct wf_shm_word *word)
{
	const struct wf_reg_access want = {
		.addr = word->addr,
		.len = WORD,
		.key = word->key,
		.access = access_of(word),
	};

	return wf_op_reg_is_known(&out->regs.view, &out->known, &want) &&
	       !(out->known.flags & WF_REG_FILE);
}

/* Keeps this until the reply: the result's place, and what its completion
 * reports. NULL at the transmit depth, or without memory. */
static struct wf_shm_tx *keep(struct wf_shm_out *out,
			      const struct wf_shm_word *word)
{
	struct wf_shm_tx *tx = wf_base_pool_get(&out->ep->tx_pool);

	if (!tx)
		return NULL;
	wf_base_list_init(&tx->link);
	tx->req = &tx->own;
	tx->proto = &wf_shm_proto_atomic;
	tx->pushed = 0;
	tx->slot_flags = WF_SHM_SLOT_ACK;
	tx->stream = false;
	tx->bounce = NULL;
	tx->fetched = word->result;
	tx->since = 0;
	tx->own.kind = WF_TX_ATOMIC;
	tx->own.tagged = false;
	tx->own.fence = false;
	tx->own.wants_comp = word->wants_comp;
	tx->own.tag = 0;
	tx->own.data = 0;
	tx->own.comp_flags = word->comp_flags;
	tx->own.context = word->context;
	tx->own.cntr = word->cntr;
	tx->own.len = WORD;
	tx->own.remote = NULL;
	if (wf_shm_out_wait(out, tx))
		return tx;
	wf_base_pool_put(&out->ep->tx_pool, tx);
	return NULL;
}

bool wf_shm_word_put(struct wf_shm_out *out, const struct wf_shm_word *word)
{
	bool fetches = word->kind != WF_OP_AMO_WRITE;
	struct wf_shm_tx *tx = NULL;
	struct wf_shm_slot *slot;

	/* If there is no room, the table may not be mapped any more. */
	if ((wf_unlikely(!out->slots_free) && !wf_shm_out_refresh(out)) ||
	    !(out->features & WF_SHM_FEATURE_WORD) || !is_known(out, word))
		return false;
	if (fetches) {
		tx = keep(out, word);
		if (!tx)
			return false;
	}
	slot = wf_shm_put_slot(out);
	slot->tag = WORD;
	slot->data = word->operand;
	slot->spare = word->compare;
	slot->rma = (struct wf_shm_rma){
		.addr = word->addr,
		.key = word->key,
		.op = tx ? tx->op : 0,
		.len = WORD,
		.flags = WF_SHM_RMA_LAST | WF_SHM_RMA_WRITE | WF_SHM_RMA_WORD,
		.amo_kind = word->kind,
		.amo_op = word->op,
		.amo_type = word->type,
	};
	wf_shm_put_publish(out, slot, 0, WF_SHM_KIND_ATOMIC,
			   fetches ? WF_SHM_SLOT_ACK : 0);
	out->amo_head = out->slot_lap.head;
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_atomics, 1);
	if (fetches)
		return true;
	if (word->wants_comp)
		wf_op_compq_push_sent(out->ep->txq, word->context,
				      word->comp_flags);
	wf_op_cntr_add(word->cntr, 1);
	return true;
}

bool wf_shm_word_reply(struct wf_shm_out *out, struct wf_shm_tx *tx,
		       const struct wf_shm_reply *reply)
{
	if (reply->kind != WF_SHM_REPLY_FINAL)
		return false;
	if (!reply->status)
		memcpy(tx->fetched, &reply->len, WORD);
	wf_shm_out_finish(out, tx, reply->status);
	return true;
}
