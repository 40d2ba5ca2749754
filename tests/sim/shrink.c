/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks for a smaller scenario that still fails, one change at a time.
 */
#include "shrink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 60

static const struct field {
	const char *name;
	size_t at;
} fields[] = {
	{ "procs", offsetof(struct sim_scenario, procs) },
	{ "messages", offsetof(struct sim_scenario, messages) },
	{ "largest", offsetof(struct sim_scenario, largest) },
	{ "kills", offsetof(struct sim_scenario, kills) },
	/* The ones below are not reduced. */
	{ "nodes", offsetof(struct sim_scenario, nodes) },
	{ "shm", offsetof(struct sim_scenario, shm) },
	{ "tcp", offsetof(struct sim_scenario, tcp) },
	{ "auto", offsetof(struct sim_scenario, progress) },
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))
#define SMALLER 4

static unsigned int *value_of(struct sim_scenario *s, size_t i)
{
	return (unsigned int *)((char *)s + fields[i].at);
}

static bool fits(const struct sim_scenario *s)
{
	return s->procs >= 2 && s->procs <= SIM_PROCS && s->messages &&
	       s->largest >= 8 && s->nodes && s->nodes <= s->procs &&
	       s->nodes <= SIM_NODES;
}

bool shrink(struct sim_scenario *s, int status)
{
	bool smaller = false, again = true;
	int tries = 0;

	while (again && tries < TRIES) {
		again = false;
		for (int i = 0; i < SIM_FAULTS && tries < TRIES; i++) {
			struct sim_scenario less = *s;

			less.faults &= ~(1u << i);
			if (i == SIM_FAULT_KILL)
				less.kills = 0;
			if (less.faults == s->faults)
				continue;
			tries++;
			if (sim_outcome(&less) != status)
				continue;
			*s = less;
			smaller = again = true;
		}
		for (size_t i = 0; i < SMALLER && tries < TRIES; i++) {
			struct sim_scenario less = *s;
			unsigned int *value = value_of(&less, i);

			if (!*value)
				continue;
			*value = i ? *value / 2 : *value - 1;
			if (!fits(&less))
				continue;
			tries++;
			if (sim_outcome(&less) != status)
				continue;
			*s = less;
			smaller = again = true;
		}
	}
	return smaller;
}

const char *shrink_text(const struct sim_scenario *s, char *text, size_t len)
{
	struct sim_scenario copy = *s;
	size_t at = 0;

	for (size_t i = 0; i < SMALLER; i++)
		at += (size_t)snprintf(text + at, len - at, "%s=%u,",
				       fields[i].name, *value_of(&copy, i));
	at += (size_t)snprintf(text + at, len - at, "faults=");
	for (int i = 0; i < SIM_FAULTS; i++) {
		if (s->faults & 1u << i)
			at += (size_t)snprintf(text + at, len - at, "%s+",
					       sim_fault_names[i]);
	}
	if (text[at - 1] == '+')
		text[at - 1] = '\0';
	else
		snprintf(text + at, len - at, "none");
	return text;
}

static int read_faults(uint32_t *faults, char *text)
{
	char *rest = NULL;

	*faults = 0;
	if (!strcmp(text, "none"))
		return 0;
	for (char *word = strtok_r(text, "+", &rest); word;
	     word = strtok_r(NULL, "+", &rest)) {
		int i;

		for (i = 0; i < SIM_FAULTS; i++) {
			if (!strcmp(word, sim_fault_names[i]))
				break;
		}
		if (i == SIM_FAULTS)
			return -EINVAL;
		*faults |= 1u << i;
	}
	return 0;
}

static int apply_one(struct sim_scenario *s, char *item)
{
	char *value = strchr(item, '=');

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	if (!strcmp(item, "faults"))
		return read_faults(&s->faults, value);
	for (size_t i = 0; i < FIELDS; i++) {
		if (strcmp(item, fields[i].name))
			continue;
		*value_of(s, i) = (unsigned int)strtoul(value, NULL, 10);
		return 0;
	}
	return -EINVAL;
}

int shrink_apply(struct sim_scenario *s, const char *only)
{
	char text[256], *rest = NULL;
	int err;

	snprintf(text, sizeof(text), "%s", only);
	for (char *item = strtok_r(text, ",", &rest); item;
	     item = strtok_r(NULL, ",", &rest)) {
		err = apply_one(s, item);
		if (err)
			return err;
	}
	return fits(s) ? 0 : -EINVAL;
}
