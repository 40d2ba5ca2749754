/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads sizes and times. It prints nothing and knows no ranges: the caller
 * reports errors and the possible values.
 */
#include "base/amount.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *name;
	uint64_t ms;
} times[] = {
	{ "ms", 1 },
	{ "s", 1000 },
	{ "min", 60000 },
	{ "h", 3600000 },
};

static int read_digits(const char *text, const char **end, uint64_t *value)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	unsigned long long number;
	char *stop;

	if (!isdigit((unsigned char)*text) ||
	    (hex && !isxdigit((unsigned char)text[2])))
		return -EINVAL;
	errno = 0;
	number = strtoull(text, &stop, hex ? 16 : 10);
	*end = stop;
	*value = number;
	return errno ? -ERANGE : 0;
}

static int multiply(uint64_t *value, uint64_t by)
{
	if (*value > UINT64_MAX / by) {
		*value = UINT64_MAX;
		return -ERANGE;
	}
	*value *= by;
	return 0;
}

int wf_base_amount_bytes(const char *text, const char **end, uint64_t *value)
{
	static const char units[] = "KMG";
	const char *unit;
	int err = read_digits(text, end, value);

	if (err == -EINVAL)
		return err;
	unit = **end ? strchr(units, toupper((unsigned char)**end)) : NULL;
	if (unit) {
		++*end;
		if ((**end == 'i' || **end == 'I') &&
		    ((*end)[1] == 'B' || (*end)[1] == 'b'))
			++*end;
	}
	if (**end == 'B' || **end == 'b')
		++*end;
	if (!unit || err)
		return err;
	return multiply(value, (uint64_t)1 << 10 * (unit - units + 1));
}

int wf_base_amount_time(const char *text, const char **end, uint64_t unit_ms,
			uint64_t *value)
{
	int err = read_digits(text, end, value);
	size_t len;

	if (err == -EINVAL)
		return err;
	for (len = 0; isalpha((unsigned char)(*end)[len]); len++)
		;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (len != strlen(times[i].name) ||
		    strncasecmp(*end, times[i].name, len) != 0)
			continue;
		*end += len;
		if (!err)
			err = multiply(value, times[i].ms);
		if (!err)
			*value = *value / unit_ms + (*value % unit_ms != 0);
		break;
	}
	return err;
}
