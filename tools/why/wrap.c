/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Breaks lines between words.
 */
#include "tools/why/wrap.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Where a line without a mark continues. */
#define INDENT 4

static void write_words(const char *at, const char *end, size_t column,
			size_t indent, size_t width, FILE *out)
{
	bool first = true;

	while (at < end) {
		size_t spaces = strspn(at, " ");
		size_t len = strcspn(at + spaces, " \n");

		if (!first && column + spaces + len > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else {
			fprintf(out, "%*s", (int)spaces, "");
			column += spaces;
		}
		fwrite(at + spaces, 1, len, out);
		column += len;
		at += spaces + len;
		first = false;
	}
}

void wf_tools_wrap(const char *text, size_t width, FILE *out)
{
	while (*text) {
		const char *end = text + strcspn(text, "\n");
		const char *mark =
			memchr(text, WF_TOOLS_WRAP_MARK, (size_t)(end - text));
		size_t before = mark ? (size_t)(mark - text) : 0;

		fwrite(text, 1, before, out);
		text += before + !!mark;
		write_words(text, end, before, mark ? before : INDENT,
			    width ? width : SIZE_MAX, out);
		fputc('\n', out);
		text = end + (*end == '\n');
	}
}
