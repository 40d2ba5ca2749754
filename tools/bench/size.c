/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes message sizes. It knows no options and prints nothing: the
 * caller reports errors.
 */
#include "tools/bench/size.h"

#include <errno.h>
#include <stdio.h>

#include "base/amount.h"

#define MAX_SIZE ((size_t)1 << 30)

/* One number with its unit; *text moves behind it. */
static int read_size(const char **text, size_t *size)
{
	uint64_t value;
	int err = wf_base_amount_bytes(*text, text, &value);

	if (err)
		return err;
	if (value < 1 || value > MAX_SIZE)
		return -ERANGE;
	*size = (size_t)value;
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
