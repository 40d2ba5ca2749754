/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a page of waits. Everything is copied once and checked in the copy: the
 * owner may write while we look. It must not trust a length or a text.
 */
#include "tools/why/page.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "tools/proc.h"

/* An owner publishes ten times a second, so the second try succeeds. */
#define TRIES 100

static int refuse(const char **why, const char *text)
{
	*why = text;
	return -EPROTO;
}

static bool check_wait(struct wf_wait *wait)
{
	return wait->kind > WF_WAIT_NONE && wait->kind < WF_WAIT_KIND_COUNT &&
	       wait->step < WF_WAIT_STEP_COUNT &&
	       wf_tools_proc_text(wait->peer, sizeof(wait->peer)) &&
	       wf_tools_proc_text(wait->protocol, sizeof(wait->protocol));
}

/* The current bank, whole. An owner that publishes twice while it is copied has
 * written to it. */
static bool copy_bank(struct wf_waits_bank *bank,
		      const struct wf_waits_page *raw)
{
	for (int i = 0; i < TRIES; i++) {
		/* Pairs with the release in wf_base_waits_publish(). */
		uint32_t current = atomic_load_explicit(&raw->current,
							memory_order_acquire);
		const struct wf_waits_bank *from;

		if (current > 1)
			return false;
		from = &raw->banks[current];
		memcpy(bank, from, sizeof(*bank));
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&raw->current, memory_order_relaxed) ==
			    current &&
		    *(const volatile uint64_t *)&from->written == bank->written)
			return true;
	}
	return false;
}

int wf_tools_waits_read(struct wf_tools_waits *waits,
			const struct wf_waits_page *raw, const char **why)
{
	struct wf_waits_page head;

	memcpy(&head, raw, offsetof(struct wf_waits_page, banks));
	if (head.magic != WF_WAITS_MAGIC)
		return refuse(why, "it is no page of waits");
	if (head.layout != WF_WAITS_LAYOUT)
		return refuse(why, "its layout is another than ours");
	if (!wf_tools_proc_text(head.name, sizeof(head.name)))
		return refuse(why, "a text in it has no end");
	waits->pid = head.pid;
	waits->opened = head.opened;
	waits->place = head.place;
	waits->polled =
		atomic_load_explicit(&raw->polled, memory_order_relaxed);
	waits->asleep =
		atomic_load_explicit(&raw->asleep, memory_order_relaxed);
	memcpy(waits->name, head.name, sizeof(waits->name));
	if (!copy_bank(&waits->bank, raw))
		return refuse(why, "it changes while it is read");
	if (waits->bank.count > WF_WAITS_MAX)
		return refuse(why, "it claims more waits than fit");
	for (uint32_t i = 0; i < waits->bank.count; i++) {
		if (!check_wait(&waits->bank.waits[i]))
			return refuse(why, "a wait in it makes no sense");
	}
	return 0;
}
