/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines on narrow terminals.
 */
#include "tools/wrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct wf_tools_paint paint;

static void expect(const char *text, size_t width, const char *wanted)
{
	char *got = NULL;
	size_t len, lines;
	FILE *out = open_memstream(&got, &len);

	assert_non_null(out);
	lines = wf_tools_wrap(text, width, &paint, out);
	fclose(out);
	for (const char *at = got; *at; at++)
		lines -= *at == '\n';
	assert_int_equal(lines, 0);
	assert_string_equal(got, wanted);
	free(got);
}

static void test_words(void **state)
{
	(void)state;
	expect("", 20, "");
	expect("one two three four\n", 18, "one two three four\n");
	expect("one two three four five\n", 22,
	       "one two three four\n    five\n");
	expect("one two", 0, "one two\n");
	expect("one two\n\nthree\n", 80, "one two\n\nthree\n");
	/* A word that does not fit. */
	expect("[2001:db8:1234:5678::1]:40000 is here\n", 24,
	       "[2001:db8:1234:5678::1]:\n    40000 is here\n");
}

static void test_mark(void **state)
{
	(void)state;
	expect("  1.2 s  \vsends 8 bytes to its peer\n", 30,
	       "  1.2 s  sends 8 bytes to its\n"
	       "         peer\n");
	expect("  1.2 s  \vsends 8 bytes\n", 0, "  1.2 s  sends 8 bytes\n");
	/* No room at all behind the mark. */
	expect("      \vone two three four\n", 5,
	       "      one two three\n      four\n");
}

/* The style reaches to the end of the last line that it continues in, and takes
 * no room. */
static void test_style(void **state)
{
	char text[64];

	(void)state;
	snprintf(text, sizeof(text), "%c%cone two three four five\nsix\n",
		 WF_TOOLS_WRAP_STYLED(WF_TOOLS_STRONG));
	expect(text, 23, "one two three four five\nsix\n");
	paint.terminal = true;
	expect(text, 23, "\033[0;1mone two three four five\033[0m\nsix\n");
	expect(text, 18, "\033[0;1mone two three four\n    five\033[0m\nsix\n");
	/* No style. */
	expect("\001", 18, "\001\n");
	expect("\001\377x\n", 18, "\001\377x\n");
	paint.terminal = false;
}

static void test_cut(void **state)
{
	(void)state;
	assert_int_equal(wf_tools_wrap_cut("one two", 7), 7);
	assert_int_equal(wf_tools_wrap_cut("one two", 6), 3);
	assert_int_equal(wf_tools_wrap_cut("one\ntwo", 6), 3);
	assert_int_equal(wf_tools_wrap_cut("one", 2), 2);
	assert_int_equal(wf_tools_wrap_cut("", 2), 0);
	/* Bug: "11.4" at the end of a line, " s ago" in the next. */
	assert_int_equal(wf_tools_wrap_cut("progress 11.4 s ago", 14), 8);
	assert_int_equal(wf_tools_wrap_cut("progress 11.4 s ago", 15), 15);
	assert_int_equal(wf_tools_wrap_cut("rank 3 (here)", 8), 6);
	assert_int_equal(wf_tools_wrap_cut("8 s", 2), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_mark),
		cmocka_unit_test(test_style),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
