/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a page of counters. Everything is copied once and checked in the copy:
 * the owner may write while we look. It must not trust a length or a text.
 */
#include "tools/stat/page.h"

#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

/* A text with its end inside the field, made printable: it goes to terminals.
 */
static bool take_text(char *to, const char *from, size_t len)
{
	if (!memchr(from, 0, len))
		return false;
	for (; *from; from++, to++)
		*to = isprint((unsigned char)*from) ? *from : '?';
	*to = 0;
	return true;
}

/* Names become keys of JSON and are compared: nothing but words. */
static bool is_word(const char *name, size_t len)
{
	const char *end = memchr(name, 0, len);

	if (!end || end == name)
		return false;
	for (; name < end; name++) {
		if (!islower((unsigned char)*name) &&
		    !isdigit((unsigned char)*name) && *name != '_')
			return false;
	}
	return true;
}

static int refuse(const char **why, const char *text)
{
	*why = text;
	return -EPROTO;
}

static bool take_counter(struct wf_tools_counter *to,
			 const struct wf_stats_item *from)
{
	char name[sizeof(from->name)];

	memcpy(name, from->name, sizeof(name));
	if (!is_word(name, sizeof(name)))
		return false;
	memcpy(to->name, name, sizeof(name));
	/* Relaxed: a value may be old, and is never half written. */
	to->value = atomic_load_explicit(&from->value, memory_order_relaxed);
	return true;
}

int wf_tools_page_read(struct wf_tools_page *page,
		       const struct wf_stats_page *raw, const char **why)
{
	struct wf_stats_page head;

	memcpy(&head, raw, offsetof(struct wf_stats_page, items));
	memset(page, 0, sizeof(*page));
	if (head.magic != WF_STATS_MAGIC)
		return refuse(why, "it is no page of counters");
	if (head.layout != WF_STATS_LAYOUT)
		return refuse(why, "its layout is another than ours");
	if (head.count > WF_STATS_MAX)
		return refuse(why, "it claims more counters than fit");
	if (!take_text(page->kind, head.kind, sizeof(head.kind)) ||
	    !take_text(page->name, head.name, sizeof(head.name)))
		return refuse(why, "a text in it has no end");
	page->pid = head.pid;
	page->started = head.started;
	for (unsigned i = 0; i < head.count; i++) {
		if (!take_counter(&page->counters[i], &raw->items[i]))
			return refuse(why, "a counter in it has no name");
	}
	page->count = head.count;
	return 0;
}

/* Where a name was found the last time: pages of one build have it at the same
 * place. Names are constants, so that their addresses tell them apart. */
static unsigned *place_of(const char *name)
{
	static unsigned places[1024];

	return &places[((uintptr_t)name >> 2) % 1024];
}

const uint64_t *wf_tools_page_find(const struct wf_tools_page *page,
				   const char *name)
{
	unsigned *place = place_of(name);

	if (*place < page->count && !strcmp(page->counters[*place].name, name))
		return &page->counters[*place].value;
	for (unsigned i = 0; i < page->count; i++) {
		if (!strcmp(page->counters[i].name, name)) {
			*place = i;
			return &page->counters[i].value;
		}
	}
	return NULL;
}

uint64_t wf_tools_page_get(const struct wf_tools_page *page, const char *name)
{
	const uint64_t *value = wf_tools_page_find(page, name);

	return value ? *value : 0;
}
