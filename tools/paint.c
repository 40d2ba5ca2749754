/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Styles, as ECMA-48 has them and every terminal of today understands them. The
 * colours are those of the user's theme, so that they suit dark and light ones.
 */
#include "tools/paint.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* Without and with colour. */
static const char *const styles[WF_TOOLS_STYLES][2] = {
	[WF_TOOLS_NORMAL] = { "\033[0m", "\033[0m" },
	[WF_TOOLS_TITLE] = { "\033[0;1;7m", "\033[0;1;37;44m" },
	[WF_TOOLS_HEAD] = { "\033[0;1m", "\033[0;1;36m" },
	[WF_TOOLS_SORTED] = { "\033[0;1;4m", "\033[0;1;4;36m" },
	[WF_TOOLS_STRONG] = { "\033[0;1m", "\033[0;1m" },
	[WF_TOOLS_FAINT] = { "\033[0;2m", "\033[0;2m" },
	[WF_TOOLS_WARNING] = { "\033[0;1m", "\033[0;33m" },
	[WF_TOOLS_TROUBLE] = { "\033[0;1;7m", "\033[0;1;31m" },
	[WF_TOOLS_BYTES] = { "\033[0m", "\033[0;32m" },
	[WF_TOOLS_MESSAGES] = { "\033[0m", "\033[0;35m" },
	[WF_TOOLS_SELECTED] = { "\033[0;7m", "\033[0;30;46m" },
	[WF_TOOLS_KEY] = { "\033[0;1m", "\033[0;1;33m" },
};

static bool has_utf8(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	bool utf8;

	if (!locale)
		return false;
	utf8 = !strcmp(nl_langinfo_l(CODESET, locale), "UTF-8");
	freelocale(locale);
	return utf8;
}

void wf_tools_paint_open(struct wf_tools_paint *paint, bool terminal)
{
	const char *no_colour = getenv("NO_COLOR");

	*paint = (struct wf_tools_paint){
		.terminal = terminal,
		.colour = terminal && !(no_colour && *no_colour),
		.unicode = terminal && has_utf8(),
	};
}

const char *wf_tools_paint(const struct wf_tools_paint *paint,
			   enum wf_tools_style style)
{
	return paint->terminal ? styles[style][paint->colour] : "";
}

unsigned wf_tools_paint_width(const char *line, unsigned most, unsigned *bytes)
{
	const char *at = line;
	unsigned width = 0;

	while (*at) {
		if (*at == '\033') {
			at += strcspn(at, "m");
			at += *at == 'm';
			continue;
		}
		if (width == most)
			break;
		/* All our characters are one column wide. */
		do
			at++;
		while ((*at & 0xc0) == 0x80);
		width++;
	}
	if (bytes)
		*bytes = (unsigned)(at - line);
	return width;
}

const char *wf_tools_paint_bar(const struct wf_tools_paint *paint, int level)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄",
					      "▅", "▆", "▇", "█" };
	static const char *const ascii[] = { " ", ".", ".", ":", ":",
					     "|", "|", "#", "#" };

	return paint->unicode ? blocks[level] : ascii[level];
}
