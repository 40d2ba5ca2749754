/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of `weft why` on narrow terminals.
 */
#include "tools/why/wrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void expect(const char *text, size_t width, const char *wanted)
{
	char *got = NULL;
	size_t len;
	FILE *out = open_memstream(&got, &len);

	assert_non_null(out);
	wf_tools_wrap(text, width, out);
	fclose(out);
	assert_string_equal(got, wanted);
	free(got);
}

static void test_words(void **state)
{
	(void)state;
	expect("", 10, "");
	expect("one two\n", 7, "one two\n");
	expect("one two\n", 6, "one\n    two\n");
	expect("one two", 0, "one two\n");
	expect("one two\n\nthree\n", 80, "one two\n\nthree\n");
	/* A word that does not fit stays whole. */
	expect("127.0.0.1:40000 is\n", 10, "127.0.0.1:40000\n    is\n");
}

static void test_mark(void **state)
{
	(void)state;
	expect("  1.2 s  \vsends 8 bytes to it\n", 20,
	       "  1.2 s  sends 8\n"
	       "         bytes to it\n");
	expect("  1.2 s  \vsends 8 bytes\n", 0, "  1.2 s  sends 8 bytes\n");
	/* No room at all behind the mark. */
	expect("          \va b\n", 5, "          a\n          b\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_mark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
