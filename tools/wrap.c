/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Breaks lines between words. Characters are one byte and one column each.
 */
#include "tools/wrap.h"

#include <stdint.h>
#include <string.h>

/* Where a line without a mark continues. */
#define INDENT 4
/* The least room behind the indentation, also if that makes lines too long. */
#define ROOM_MIN 16

size_t wf_tools_wrap_cut(const char *text, size_t room)
{
	size_t len = strcspn(text, "\n"), cut = room;

	if (len <= room)
		return len;
	while (cut && text[cut] != ' ')
		cut--;
	return cut ? cut : room;
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
