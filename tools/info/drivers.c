/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drivers of compression: where each is from, what it can do, what it is
 * asked for first, and why not. It asks the registry as any program would.
 */
#include "tools/info/facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/wd.h>

#include "alg/plugin.h"
#include "alg/registry.h"

static void add(char *text, size_t size, const char *what)
{
	size_t len = strlen(text);

	snprintf(text + len, size - len, "%s%s", len ? ", " : "", what);
}

/* "1-9" of bits. */
static void write_levels(unsigned int levels, char *text, size_t size)
{
	for (int from = 0; from < 32; from++) {
		char range[32];
		int to = from;

		if (!(levels >> from & 1))
			continue;
		while (to < 31 && levels >> (to + 1) & 1)
			to++;
		if (to > from)
			snprintf(range, sizeof(range), "%d-%d", from, to);
		else
			snprintf(range, sizeof(range), "%d", from);
		add(text, size, range);
		from = to;
	}
}

static void write_size(uint64_t bytes, char *text, size_t size)
{
	if (!(bytes & 0xfffff))
		snprintf(text, size, "%" PRIu64 " MiB", bytes >> 20);
	else if (!(bytes & 0x3ff))
		snprintf(text, size, "%" PRIu64 " KiB", bytes >> 10);
	else
		snprintf(text, size, "%" PRIu64 " bytes", bytes);
}

/* Describes the jobs that one of its channels takes. */
static void describe_limits(const struct wd_comp_limits *limits,
			    struct wf_tools_driver *to)
{
	char amount[32], text[128];

	to->in_flight = limits->in_flight ? limits->in_flight : 1;
	snprintf(text, sizeof(text), "%u jobs in flight on a channel",
		 to->in_flight);
	add(to->can, sizeof(to->can), text);
	if (limits->src_max) {
		write_size(limits->src_max, amount, sizeof(amount));
		snprintf(text, sizeof(text), "jobs of up to %s", amount);
		add(to->can, sizeof(to->can), text);
	}
	if (limits->dst_max) {
		write_size(limits->dst_max, amount, sizeof(amount));
		snprintf(text, sizeof(text), "room of up to %s", amount);
		add(to->can, sizeof(to->can), text);
	}
	if (limits->align > 1) {
		snprintf(text, sizeof(text), "memory aligned to %u bytes",
			 limits->align);
		add(to->can, sizeof(to->can), text);
	}
	if (limits->memory & WD_COMP_MEM_PROCESS)
		add(to->can, sizeof(to->can), "reaches any memory");
	else if (limits->memory & WD_COMP_MEM_RESERVED)
		add(to->can, sizeof(to->can), "reaches memory of its channels");
}

/* The devices that its channels would be on. */
static void find_devices(const struct wd_alg_comp *d,
			 struct wf_tools_driver *to)
{
	struct uacce_dev_info *list;
	int count;

	if (!d->submit || !d->api)
		return;
	count = wd_list_devices(NULL, &list);
	for (int i = 0; i < count; i++) {
		if (!strcmp(list[i].api, d->api))
			add(to->devices, sizeof(to->devices), list[i].name);
	}
	if (count > 0)
		wd_free_devices(list);
	if (!*to->devices)
		snprintf(to->devices, sizeof(to->devices),
			 "none that this user may use%s",
			 d->can & WD_COMP_BY_DEVD ?
				 ", see `weft devd --list`: other drivers do "
				 "its jobs" :
				 "");
}

static void describe(const struct wd_alg_comp *d, struct wf_tools_driver *to)
{
	char levels[64] = "", text[128];

	write_levels(d->levels, levels, sizeof(levels));
	if (d->can & WD_COMP_CAN_DEFLATE) {
		snprintf(text, sizeof(text), "deflate at level%s %s",
			 levels[1] ? "s" : "", levels);
		add(to->can, sizeof(to->can), text);
	}
	if (d->can & WD_COMP_CAN_INFLATE)
		add(to->can, sizeof(to->can), "inflate");
	if (d->can & WD_COMP_CAN_DEFLATE_DICT)
		add(to->can, sizeof(to->can), "dictionaries");
	if (d->can & WD_COMP_CAN_DEFLATE_STREAM)
		add(to->can, sizeof(to->can), "streams");
	if (!d->submit)
		return;
	describe_limits(&d->limits, to);
	if (d->node < 0)
		return;
	snprintf(text, sizeof(text), "at NUMA node %d", d->node);
	add(to->can, sizeof(to->can), text);
}

/* Whether @d is the one that is asked first. */
static bool is_first(const struct wd_alg_comp *d,
		     const struct wf_alg_want *want, char *best, size_t size)
{
	struct wf_alg_slot *slot = wf_alg_registry_get(want);
	const struct wd_alg_comp *first;

	if (!slot)
		return false;
	first = wf_alg_registry_driver(slot);
	snprintf(best, size, "%s", first->name);
	wf_alg_registry_put(slot);
	return first == d;
}

static void find_use(const struct wd_alg_comp *d, struct wf_tools_driver *to)
{
	unsigned int levels = 0;
	char best[64] = "", text[96] = "";

	for (int level = 1; level <= WD_COMP_LEVEL_MOST; level++) {
		struct wf_alg_want want = { .can = WD_COMP_CAN_DEFLATE,
					    .level = level };

		if (d->levels >> level & 1 &&
		    is_first(d, &want, best, sizeof(best)))
			levels |= 1u << level;
	}
	if (levels) {
		write_levels(levels, text, sizeof(text));
		snprintf(to->first, sizeof(to->first), "deflate at level%s %s",
			 text[1] ? "s" : "", text);
	}
	if (d->can & WD_COMP_CAN_INFLATE &&
	    is_first(d,
		     &(struct wf_alg_want){ .can = WD_COMP_CAN_INFLATE,
					    .level = -1 },
		     best, sizeof(best)))
		add(to->first, sizeof(to->first), "inflate");
	if (*to->first && d->submit && !wf_alg_registry_is_preferred(d))
		snprintf(to->why_not, sizeof(to->why_not),
			 "for kinds of jobs that another driver has been found "
			 "to end sooner, and while it has more to do than that "
			 "one%s",
			 d->node < 0 ? "" :
				       "; times are kept apart for threads at "
				       "its NUMA node and at others");
	if (!*to->first && *best)
		snprintf(to->why_not, sizeof(to->why_not),
			 "%s is asked before it; WD_COMP_DRIVER=%s prefers "
			 "it%s%s%s",
			 best, d->name, d->submit ? ", WD_COMP_CONSIDER=" : "",
			 d->submit ? d->name : "",
			 d->submit ? " lets cost decide" : "");
}

/* Adds drivers that are installed for a device that this machine does not
 * have. */
static void add_absent(struct wf_tools_facts *facts,
		       const struct wf_alg_plugin_failure *failure)
{
	struct wf_tools_driver *to;

	if (facts->n_drivers == WF_TOOLS_MAX_DRIVERS)
		return;
	to = &facts->drivers[facts->n_drivers++];
	snprintf(to->name, sizeof(to->name), "%s", failure->absent);
	snprintf(to->from, sizeof(to->from), "%s", failure->path);
	snprintf(to->why_not, sizeof(to->why_not), "%s", failure->why);
	to->absent = true;
}

static void read_failures(struct wf_tools_facts *facts)
{
	struct wf_alg_plugin_failure failure;

	for (unsigned int i = 0; wf_alg_plugin_failed(i, &failure); i++) {
		if (failure.absent)
			add_absent(facts, &failure);
		else
			wf_tools_facts_problem(
				facts,
				"compression drivers: %s is not used: %s",
				failure.path, failure.why);
	}
}

void wf_tools_drivers_read(struct wf_tools_facts *facts)
{
	struct wf_alg_known known;
	const char *preferred = wf_alg_registry_preferred();

	snprintf(facts->driver_folder, sizeof(facts->driver_folder), "%s",
		 wf_alg_plugin_folder());
	snprintf(facts->driver_preferred, sizeof(facts->driver_preferred), "%s",
		 preferred ? preferred : "");
	for (unsigned int i = 0; facts->n_drivers < WF_TOOLS_MAX_DRIVERS &&
				 wf_alg_registry_known(i, &known);
	     i++) {
		struct wf_tools_driver *to =
			&facts->drivers[facts->n_drivers++];

		snprintf(to->name, sizeof(to->name), "%s", known.driver->name);
		snprintf(to->from, sizeof(to->from), "%s", known.from);
		snprintf(to->about, sizeof(to->about), "%s",
			 known.driver->about ? known.driver->about : "");
		describe(known.driver, to);
		find_devices(known.driver, to);
		if (known.bad)
			snprintf(to->why_not, sizeof(to->why_not), "it %s",
				 known.bad);
		else
			find_use(known.driver, to);
	}
	read_failures(facts);
}
