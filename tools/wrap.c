/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Breaks lines between words. Characters are one byte and one column each.
 */
#include "tools/wrap.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

/* Where a line without a mark continues. */
#define INDENT 4
/* The least room behind the indentation, also if that makes lines too long. */
#define ROOM_MIN 16
/* Letters of a unit: s, KiB. */
#define UNIT_MAX 3
#define COLUMNS 80

size_t wf_tools_wrap_columns(FILE *out)
{
	struct winsize size = { 0 };

	if (ioctl(fileno(out), TIOCGWINSZ, &size))
		return 0;
	return size.ws_col ? size.ws_col : COLUMNS;
}

/* Whether the space at @space is between a number and its unit. */
static bool is_before_unit(const char *text, size_t space)
{
	size_t len = 0;

	while (isalpha((unsigned char)text[space + 1 + len]))
		len++;
	return isdigit((unsigned char)text[space - 1]) && len &&
	       len <= UNIT_MAX;
}

size_t wf_tools_wrap_cut(const char *text, size_t room)
{
	size_t len = strcspn(text, "\n"), bad = 0;

	if (len <= room)
		return len;
	for (size_t cut = room; cut; cut--) {
		if (text[cut] != ' ')
			continue;
		if (!is_before_unit(text, cut))
			return cut;
		bad = bad ? bad : cut;
	}
	return bad ? bad : room;
}

static size_t room_behind(size_t indent, size_t width)
{
	return width > indent + ROOM_MIN ? width - indent : ROOM_MIN;
}

void wf_tools_wrap(const char *text, size_t width, FILE *out)
{
	while (*text) {
		const char *end = text + strcspn(text, "\n");
		const char *mark =
			memchr(text, WF_TOOLS_WRAP_MARK, (size_t)(end - text));
		size_t used = mark ? (size_t)(mark - text) : 0;
		size_t indent = mark ? used : INDENT;
		size_t room = width ? room_behind(used, width) : SIZE_MAX;

		fwrite(text, 1, used, out);
		text += used + !!mark;
		for (;;) {
			size_t cut = wf_tools_wrap_cut(text, room);

			fprintf(out, "%.*s\n", (int)cut, text);
			text += cut;
			text += *text == ' ';
			if (text >= end)
				break;
			fprintf(out, "%*s", (int)indent, "");
			room = room_behind(indent, width);
		}
		text = end + !!*end;
	}
}
