/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks the value that was given for a setting: it is used, brought into its
 * range, or ignored, with a reason in words. This file prints nothing and reads
 * no environment: the provider asks libfabric, which also reads files. The
 * table is in setting_table.c.
 */
#include "base/setting.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/amount.h"
#include "base/folder.h"
#include "os/net.h"
#include "os/process.h"

#define LONGEST_NAME 64

const struct wf_setting *wf_base_setting_find(const char *name)
{
	for (size_t i = 0; i < wf_base_setting_count; i++) {
		if (!strcasecmp(wf_base_settings[i].name, name))
			return &wf_base_settings[i];
	}
	return NULL;
}

/* -- as text --------------------------------------------------------------- */

static const char *unit_of(const struct wf_setting *s)
{
	switch (s->kind) {
	case WF_SETTING_BYTES:
		return " bytes";
	case WF_SETTING_MS:
		return " milliseconds";
	case WF_SETTING_S:
		return " seconds";
	default:
		return "";
	}
}

const char *wf_base_setting_range(const struct wf_setting *s,
				  char buf[WF_SETTING_TEXT_LEN])
{
	const char *zero = s->or_zero ? "0, or " : "";
	const char *power = s->power_of_two ? "a power of two from " : "";

	*buf = '\0';
	if (s->kind == WF_SETTING_CHOICE)
		snprintf(buf, WF_SETTING_TEXT_LEN, "%s", s->choices);
	if (wf_base_setting_is_text(s))
		return buf;
	if (s->kind == WF_SETTING_BOOL)
		snprintf(buf, WF_SETTING_TEXT_LEN, "true or false");
	else if (s->max == UINT64_MAX)
		snprintf(buf, WF_SETTING_TEXT_LEN, "%s%s%" PRIu64 "%s or more",
			 zero, power, s->min, unit_of(s));
	else
		snprintf(buf, WF_SETTING_TEXT_LEN,
			 "%s%s%" PRIu64 " to %" PRIu64 "%s", zero, power,
			 s->min, s->max, unit_of(s));
	return buf;
}

const char *wf_base_setting_text(const struct wf_setting *s, uint64_t value,
				 char buf[WF_SETTING_TEXT_LEN])
{
	if (s->kind == WF_SETTING_BOOL)
		snprintf(buf, WF_SETTING_TEXT_LEN, "%s",
			 value ? "true" : "false");
	else
		snprintf(buf, WF_SETTING_TEXT_LEN, "%" PRIu64, value);
	return buf;
}

/* -- judging --------------------------------------------------------------- */

static bool read_bool(const char *given, uint64_t *value,
		      char note[WF_SETTING_NOTE])
{
	static const char *const words[2][4] = {
		{ "0", "false", "no", "off" },
		{ "1", "true", "yes", "on" },
	};

	for (unsigned int v = 0; v < 2; v++) {
		for (int i = 0; i < 4; i++) {
			if (strcasecmp(given, words[v][i]) != 0)
				continue;
			*value = v;
			return true;
		}
	}
	snprintf(note, WF_SETTING_NOTE, "neither true nor false");
	return false;
}

static int parse(const struct wf_setting *s, const char *given, uint64_t *value)
{
	const char *end = given;
	int err;

	if (s->kind == WF_SETTING_MS || s->kind == WF_SETTING_S)
		err = wf_base_amount_time(
			given, &end, s->kind == WF_SETTING_S ? 1000 : 1, value);
	else
		err = wf_base_amount_bytes(given, &end, value);
	return *end ? -EINVAL : err;
}

static const char *examples(const struct wf_setting *s)
{
	switch (s->kind) {
	case WF_SETTING_BYTES:
		return "not a number of bytes, such as 8192, 8K or 1M";
	case WF_SETTING_MS:
	case WF_SETTING_S:
		return "not a time, such as 500ms, 5s or 2min";
	default:
		return "not a number";
	}
}

/* Whether a time with a unit was not a whole number of seconds. */
static bool is_rounded(const struct wf_setting *s, const char *given,
		       uint64_t seconds)
{
	const char *end = given;
	uint64_t ms;

	if (s->kind != WF_SETTING_S || !strpbrk(given, "mshMSH") ||
	    wf_base_amount_time(given, &end, 1, &ms))
		return false;
	return ms != seconds * 1000;
}

static bool read_number(const struct wf_setting *s, const char *given,
			uint64_t *value, char note[WF_SETTING_NOTE])
{
	uint64_t asked, taken, power = 1;
	int err = parse(s, given, &asked);
	char range[WF_SETTING_TEXT_LEN];

	/* A negative number is not accepted: the nearest bound is hardly ever
	 * what the user meant (-1 often means "no limit"). */
	if (err == -EINVAL) {
		snprintf(note, WF_SETTING_NOTE, "%s", examples(s));
		return false;
	}
	taken = asked < s->min ? s->min : asked > s->max ? s->max : asked;
	if (s->or_zero && !asked)
		taken = 0;
	if (err || taken != asked) {
		snprintf(note, WF_SETTING_NOTE, "out of range (%s)",
			 wf_base_setting_range(s, range));
	} else if (is_rounded(s, given, taken)) {
		snprintf(note, WF_SETTING_NOTE, "not a number of seconds");
	} else if (s->power_of_two) {
		while (power < taken)
			power *= 2;
		if (power != taken)
			snprintf(note, WF_SETTING_NOTE, "not a power of two");
		taken = power;
	}
	*value = taken;
	return true;
}

/* @choices are separated by blanks and the word "or". */
static bool is_choice(const char *choices, const char *given)
{
	size_t len = strlen(given);

	if (!strcmp(given, "or"))
		return false;
	while (*choices) {
		size_t word = strcspn(choices, " ");

		if (word == len && !strncmp(choices, given, len))
			return true;
		choices += word;
		choices += strspn(choices, " ");
	}
	return false;
}

/* The first name in a list, separated by commas, that is no interface; false if
 * all are. */
static bool find_absent(const char *given, char name[IF_NAMESIZE])
{
	while (*given) {
		size_t len = strcspn(given, ",");

		snprintf(name, IF_NAMESIZE, "%.*s", (int)len, given);
		if (len >= IF_NAMESIZE || !wf_os_iface_exists(name))
			return true;
		given += len + (given[len] == ',');
	}
	return false;
}

static bool read_text(const struct wf_setting *s, const char *given,
		      char note[WF_SETTING_NOTE])
{
	char name[IF_NAMESIZE];

	if (s->kind == WF_SETTING_IFACE && find_absent(given, name)) {
		/* It is not replaced: another interface might lead to another
		 * network. */
		snprintf(note, WF_SETTING_NOTE,
			 "there is no interface \"%s\", and no other is taken "
			 "in its place",
			 name);
	} else if (s->kind == WF_SETTING_CHOICE &&
		   !is_choice(s->choices, given)) {
		snprintf(note, WF_SETTING_NOTE, "not %s", s->choices);
		return false;
	} else if (s->kind == WF_SETTING_USERS && strcmp(given, "any") != 0 &&
		   given[strspn(given, "0123456789,")]) {
		snprintf(note, WF_SETTING_NOTE,
			 "neither \"any\" nor user numbers separated by "
			 "commas");
		return false;
	} else if (s->kind == WF_SETTING_FOLDER && strcmp(given, "none") != 0) {
		return wf_base_folder_check(given, note, WF_SETTING_NOTE);
	}
	return true;
}

bool wf_base_setting_read(const struct wf_setting *s, const char *given,
			  uint64_t *value, char note[WF_SETTING_NOTE])
{
	*note = '\0';
	if (!*given)
		return false;
	if (wf_base_setting_is_text(s))
		return read_text(s, given, note);
	if (s->kind == WF_SETTING_BOOL)
		return read_bool(given, value, note);
	return read_number(s, given, value, note);
}

/* -- names that are none --------------------------------------------------- */

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* How many letters of @a must be put in, taken out or replaced to make @b, and
 * in @start, to make the beginning of @b. */
static unsigned int distance(const char *a, const char *b, unsigned int *start)
{
	unsigned int row[LONGEST_NAME + 1];
	size_t len = strlen(b);

	for (size_t j = 0; j <= len; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; a[i - 1]; i++) {
		unsigned int corner = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= len; j++) {
			unsigned int above = row[j];
			unsigned int same = a[i - 1] == b[j - 1] ? 0 : 1;

			row[j] = least(least(above, row[j - 1]) + 1,
				       corner + same);
			corner = above;
		}
	}
	*start = row[len];
	for (size_t j = 0; j < len; j++)
		*start = least(*start, row[j]);
	return row[len];
}

static const struct wf_setting *find_similar(const char *name)
{
	const struct wf_setting *best = NULL;
	char upper[LONGEST_NAME + 1];
	unsigned int most = UINT32_MAX;

	for (size_t i = 0; i < wf_base_setting_count; i++) {
		const struct wf_setting *s = &wf_base_settings[i];
		size_t len = strlen(s->name);
		unsigned int d, start;

		for (size_t j = 0; j <= len; j++)
			upper[j] = s->name[j] >= 'a' && s->name[j] <= 'z' ?
					   (char)(s->name[j] - 'a' + 'A') :
					   s->name[j];
		/* A third of the letters may be wrong, or a word missing, or
		 * the end, with one letter in five wrong before it. */
		d = distance(name, upper, &start);
		if (d > len / 3 + 1 && !strstr(upper, name) &&
		    !strstr(name, upper) && start > strlen(name) / 5)
			continue;
		if (d < most) {
			most = d;
			best = s;
		}
	}
	return best;
}

void wf_base_setting_unknown(void (*found)(const char *name,
					   const struct wf_setting *meant,
					   void *arg),
			     void *arg)
{
	const size_t prefix = strlen(WF_SETTING_PREFIX);

	for (char *const *env = wf_os_environ(); env && *env; env++) {
		size_t len = strcspn(*env, "=");
		char name[LONGEST_NAME + 1];

		if (strncmp(*env, WF_SETTING_PREFIX, prefix) != 0 ||
		    len <= prefix || len - prefix > LONGEST_NAME)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(len - prefix),
			 *env + prefix);
		if (!wf_base_setting_find(name))
			found(name, find_similar(name), arg);
	}
}
