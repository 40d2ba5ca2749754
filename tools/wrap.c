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
#define LINES 24

size_t wf_tools_wrap_columns(FILE *out)
{
	struct winsize size = { 0 };

	if (ioctl(fileno(out), TIOCGWINSZ, &size))
		return 0;
	return size.ws_col ? size.ws_col : COLUMNS;
}

size_t wf_tools_wrap_lines(FILE *out)
{
	struct winsize size = { 0 };

	if (ioctl(fileno(out), TIOCGWINSZ, &size))
		return 0;
	return size.ws_row ? size.ws_row : LINES;
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

/* Takes the style from the beginning of a line. */
static enum wf_tools_style take_style(const char **text)
{
	int style = **text == WF_TOOLS_WRAP_STYLE ? (*text)[1] - '0' : -1;

	/* A line of a text from elsewhere may begin with anything. */
	if (style < 0 || style >= WF_TOOLS_STYLES)
		return WF_TOOLS_NORMAL;
	*text += 2;
	return (enum wf_tools_style)style;
}

size_t wf_tools_wrap(const char *text, size_t width,
		     const struct wf_tools_paint *paint, FILE *out)
{
	size_t lines = 0;

	while (*text) {
		enum wf_tools_style style = take_style(&text);
		const char *end = text + strcspn(text, "\n");
		const char *mark =
			memchr(text, WF_TOOLS_WRAP_MARK, (size_t)(end - text));
		size_t used = mark ? (size_t)(mark - text) : 0;
		size_t indent = mark ? used : INDENT;
		size_t room = width ? room_behind(used, width) : SIZE_MAX;

		if (style != WF_TOOLS_NORMAL)
			fputs(wf_tools_paint(paint, style), out);
		fwrite(text, 1, used, out);
		text += used + !!mark;
		for (;;) {
			size_t cut = wf_tools_wrap_cut(text, room);
			bool last = text + cut + (text[cut] == ' ') >= end;

			fprintf(out, "%.*s%s\n", (int)cut, text,
				last && style != WF_TOOLS_NORMAL ?
					wf_tools_paint(paint, WF_TOOLS_NORMAL) :
					"");
			lines++;
			text += cut;
			text += *text == ' ';
			if (last)
				break;
			fprintf(out, "%*s", (int)indent, "");
			room = room_behind(indent, width);
		}
		text = end + !!*end;
	}
	return lines;
}
