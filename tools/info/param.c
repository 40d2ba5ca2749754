/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The FI_WEFT_* variables as libfabric lists them: its help text holds the
 * default and the range, the environment what was asked for. It must not know
 * values of its own, only why the defaults are what they are.
 */
#include "tools/info/facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rdma/fabric.h>

#define PREFIX "FI_WEFT_"
#define DEFAULT " (default: "

static const struct {
	const char *name;
	const char *why;
} reasons[] = {
	{ "IFACE", "peers elsewhere reach this node by it; between processes "
		   "of one node it makes no difference" },
	{ "CONNECT_TIMEOUT", "processes of a job start some seconds apart; "
			     "later than that an address is really dead" },
	{ "INJECT_SIZE", "as much as one record of a ring holds: copied at "
			 "once, in one piece" },
	{ "TX_SIZE", "more than any peer has in hand; memory is taken only as "
		     "it is used" },
	{ "RX_SIZE", "the same for receives; memory is taken only as it is "
		     "used" },
	{ "EAGER_MAX", "without CMA: four records under way at once; more "
		       "would fill a ring before anybody wants it" },
	{ "CMA_MIN", "measured: up to 8 KiB two copies that overlap beat one "
		     "copy and a system call" },
	{ "COOP_MIN",
	  "measured when loaded: where a copy between processes "
	  "takes more than 1 us to begin, a half for each side pays "
	  "from 16 KiB on, elsewhere from 64 KiB" },
	{ "CMA", "one copy instead of two; where the kernel refuses, the ring "
		 "is used anyway" },
	{ "ALLOW_UID", "who connects shares memory with us: others only when "
		       "they are named" },
};

static const char *reason_of(const char *name)
{
	if (strncmp(name, PREFIX, strlen(PREFIX)))
		return NULL;
	name += strlen(PREFIX);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (!strcmp(reasons[i].name, name))
			return reasons[i].why;
	}
	return NULL;
}

/* "weft: text (default: value)" */
static void take_apart(struct wf_tools_param *param, const char *help)
{
	const char *at = NULL, *next = help, *end;

	if (!strncmp(help, "weft: ", 6))
		help += 6;
	while ((next = strstr(next, DEFAULT)))
		at = next++;
	snprintf(param->help, sizeof(param->help), "%.*s",
		 at ? (int)(at - help) : (int)strlen(help), help);
	if (!at)
		return;
	at += strlen(DEFAULT);
	end = strrchr(at, ')');
	snprintf(param->fallback, sizeof(param->fallback), "%.*s",
		 end ? (int)(end - at) : (int)strlen(at), at);
}

/* The range that the help states: "64 to 4096", "not below 4097". */
static void find_range(const char *help, uint64_t *min, uint64_t *max)
{
	const char *to = help;

	*min = 0;
	*max = UINT64_MAX;
	while ((to = strstr(to, " to "))) {
		const char *from = to;
		uint64_t high;

		while (from > help && from[-1] >= '0' && from[-1] <= '9')
			from--;
		if (from < to && sscanf(to, " to %" SCNu64, &high) == 1) {
			*min = strtoull(from, NULL, 10);
			*max = high;
			return;
		}
		to++;
	}
	to = strstr(help, "not below ");
	if (to)
		*min = strtoull(to + strlen("not below "), NULL, 10);
}

static void judge_size(struct wf_tools_param *param)
{
	uint64_t min, max, value, power = 1;
	char *end;

	/* As libfabric reads it, hexadecimal included. */
	value = (uint64_t)strtol(param->given, &end, 0);
	if (*end)
		snprintf(param->note, sizeof(param->note), "'%s' is no number",
			 param->given);
	find_range(param->help, &min, &max);
	if (value < min || value > max) {
		snprintf(param->note, sizeof(param->note),
			 "'%s' is out of range", param->given);
		value = value < min ? min : max;
	}
	if (strstr(param->help, "power of two")) {
		while (power < value)
			power *= 2;
		if (power != value && !*param->note)
			snprintf(param->note, sizeof(param->note),
				 "'%s' is rounded up to a power of two",
				 param->given);
		value = power;
	}
	snprintf(param->value, sizeof(param->value), "%" PRIu64, value);
}

static void judge_bool(struct wf_tools_param *param)
{
	static const char *const words[2][4] = {
		{ "0", "false", "no", "off" },
		{ "1", "true", "yes", "on" },
	};

	for (int value = 0; value < 2; value++) {
		for (int i = 0; i < 4; i++) {
			if (strcasecmp(param->given, words[value][i]))
				continue;
			snprintf(param->value, sizeof(param->value), "%s",
				 value ? "true" : "false");
			return;
		}
	}
	snprintf(param->value, sizeof(param->value), "%s", param->fallback);
	snprintf(param->note, sizeof(param->note),
		 "'%s' is neither true nor false: ignored", param->given);
}

void wf_tools_param_judge(struct wf_tools_param *param, int type,
			  const char *help)
{
	take_apart(param, help ? help : "");
	param->why = reason_of(param->name);
	param->source = "default";
	if (!*param->given) {
		snprintf(param->value, sizeof(param->value), "%s",
			 param->fallback);
		return;
	}
	/* libfabric 2 also has a file of settings. */
	param->source = getenv(param->name) ? "environment" : "libfabric";
	if (type == FI_PARAM_SIZE_T || type == FI_PARAM_INT)
		judge_size(param);
	else if (type == FI_PARAM_BOOL)
		judge_bool(param);
	else
		snprintf(param->value, sizeof(param->value), "%s",
			 param->given);
}

const struct wf_tools_param *
wf_tools_param_find(const struct wf_tools_facts *facts, const char *name)
{
	for (unsigned i = 0; i < facts->n_params; i++) {
		if (!strcmp(facts->params[i].name + strlen(PREFIX), name))
			return &facts->params[i];
	}
	return NULL;
}
