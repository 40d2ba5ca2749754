/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes message sizes. It knows no options and prints nothing: the
 * caller says what was wrong.
 */
#include "tools/bench/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_SIZE ((size_t)1 << 30)

static int shift_of(char unit)
{
	switch (toupper((unsigned char)unit)) {
	case 'K':
		return 10;
	case 'M':
		return 20;
	case 'G':
		return 30;
	default:
		return 0;
	}
}

/* One number with its unit; *text moves behind it. */
static int read_size(const char **text, size_t *size)
{
	unsigned long long value;
	char *end;
	int shift;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	errno = 0;
	value = strtoull(*text, &end, 10);
	if (errno || value > MAX_SIZE)
		return -ERANGE;
	shift = shift_of(*end);
	if (shift)
		end++;
	/* "KiB" and "KB" are what people paste; both mean 1024 here. */
	if (shift && (*end == 'i' || *end == 'I'))
		end++;
	if (*end == 'B' || *end == 'b')
		end++;
	value <<= shift;
	if (value < 1 || value > MAX_SIZE)
		return -ERANGE;
	*size = (size_t)value;
	*text = end;
	return 0;
}

static int add_size(struct wf_tools_sizes *sizes, size_t size)
{
	unsigned i, at;

	for (at = 0; at < sizes->n && sizes->v[at] < size; at++)
		;
	if (at < sizes->n && sizes->v[at] == size)
		return 0;
	if (sizes->n == WF_TOOLS_MAX_SIZES)
		return -E2BIG;
	for (i = sizes->n; i > at; i--)
		sizes->v[i] = sizes->v[i - 1];
	sizes->v[at] = size;
	sizes->n++;
	return 0;
}

static int add_range(struct wf_tools_sizes *sizes, size_t from, size_t to)
{
	int ret;

	if (from > to)
		return -EINVAL;
	for (; from < to; from *= 2) {
		ret = add_size(sizes, from);
		if (ret)
			return ret;
	}
	return add_size(sizes, to);
}

int wf_tools_size_list(const char *text, struct wf_tools_sizes *sizes)
{
	size_t from, to;
	int ret;

	sizes->n = 0;
	for (;;) {
		ret = read_size(&text, &from);
		if (ret)
			return ret;
		to = from;
		if (*text == '-' || (text[0] == '.' && text[1] == '.')) {
			text += *text == '-' ? 1 : 2;
			ret = read_size(&text, &to);
			if (ret)
				return ret;
		}
		ret = add_range(sizes, from, to);
		if (ret)
			return ret;
		if (!*text)
			return 0;
		if (*text++ != ',')
			return -EINVAL;
	}
}

const char *wf_tools_size_text(size_t size, char buf[WF_TOOLS_SIZE_TEXT])
{
	static const char units[] = " KMG";
	unsigned unit = 0;

	while (size >= 1024 && size % 1024 == 0 && units[unit + 1]) {
		size /= 1024;
		unit++;
	}
	if (unit)
		snprintf(buf, WF_TOOLS_SIZE_TEXT, "%zu%c", size, units[unit]);
	else
		snprintf(buf, WF_TOOLS_SIZE_TEXT, "%zu", size);
	return buf;
}
