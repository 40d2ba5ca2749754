/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of reading what libfabric says of a variable, and of JSON that
 * holds whatever texts hold.
 */
#include "tools/info/facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>

#include "tools/json.h"

static struct wf_tools_param judge(const char *given, int type,
				   const char *help)
{
	struct wf_tools_param param = { .name = "FI_WEFT_CMA_MIN" };

	snprintf(param.given, sizeof(param.given), "%s", given);
	wf_tools_param_judge(&param, type, help);
	return param;
}

static void test_text_is_taken_apart(void **state)
{
	struct wf_tools_param p = judge(
		"", FI_PARAM_SIZE_T,
		"weft: Bytes (of a message), 1 to 9 (default: the (best) one)");

	(void)state;
	assert_string_equal(p.help, "Bytes (of a message), 1 to 9");
	assert_string_equal(p.fallback, "the (best) one");
	assert_string_equal(p.value, "the (best) one");
	assert_string_equal(p.source, "default");
	assert_non_null(p.why);
	p = judge("", FI_PARAM_STRING, "no default");
	assert_string_equal(p.help, "no default");
	assert_string_equal(p.value, "");
	p = judge("", FI_PARAM_STRING, NULL);
	assert_string_equal(p.help, "");
	p = judge("", FI_PARAM_STRING, " (default: ");
	assert_string_equal(p.value, "");
}

static void test_ranges(void **state)
{
	static const struct {
		const char *given, *help, *value;
		bool odd;
	} cases[] = {
		{ "5", "from 16 to 65536", "16", true },
		{ "70000", "from 16 to 65536", "65536", true },
		{ "100", "a power of two from 16 to 65536", "128", true },
		{ "128", "a power of two from 16 to 65536", "128", false },
		{ "7", "but not below 4097, or so", "4097", true },
		{ "0x10", "of bytes to send", "16", false },
		{ "abc", "whatever", "0", true },
		{ "12", "up to the top, 1 to 20", "12", false },
	};

	(void)state;
	setenv("FI_WEFT_CMA_MIN", "x", 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wf_tools_param p =
			judge(cases[i].given, FI_PARAM_SIZE_T, cases[i].help);

		assert_string_equal(p.value, cases[i].value);
		assert_int_equal(*p.note != 0, cases[i].odd);
		assert_string_equal(p.source, "environment");
	}
	unsetenv("FI_WEFT_CMA_MIN");
	assert_string_equal(judge("1", FI_PARAM_SIZE_T, "x").source,
			    "libfabric");
}

static void test_booleans(void **state)
{
	(void)state;
	assert_string_equal(judge("OFF", FI_PARAM_BOOL, "x").value, "false");
	assert_string_equal(judge("1", FI_PARAM_BOOL, "x").value, "true");
	assert_string_equal(
		judge("maybe", FI_PARAM_BOOL, "x (default: true)").value,
		"true");
	assert_true(*judge("maybe", FI_PARAM_BOOL, "x").note);
}

static void test_quotes(void **state)
{
	static const struct {
		const char *text, *quoted;
	} cases[] = {
		{ "plain", "\"plain\"" },
		{ "\"\\\n\x7f", "\"\\\"\\\\\\u000a\\u007f\"" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		  "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		/* Cut off, overlong, a surrogate, beyond the end. */
		{ "\xe2\x82", "\"\\ufffd\\ufffd\"" },
		{ "\xc0\x80", "\"\\ufffd\\ufffd\"" },
		{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" },
		{ "\xff", "\"\\ufffd\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		assert_non_null(out);
		wf_tools_json_quote(out, cases[i].text);
		fclose(out);
		assert_string_equal(text, cases[i].quoted);
		free(text);
	}
}

static void test_brackets(void **state)
{
	char *text = NULL;
	size_t size;
	struct wf_tools_json json = { .out = open_memstream(&text, &size) };

	(void)state;
	assert_non_null(json.out);
	wf_tools_json_open(&json, NULL, '{');
	wf_tools_json_open(&json, "none", '[');
	wf_tools_json_close(&json, ']');
	wf_tools_json_number(&json, "n", UINT64_MAX);
	wf_tools_json_text(&json, "t", NULL);
	wf_tools_json_close(&json, '}');
	fclose(json.out);
	assert_string_equal(text, "{\n  \"none\": [],\n"
				  "  \"n\": 18446744073709551615,\n"
				  "  \"t\": null\n}\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_is_taken_apart),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_booleans),
		cmocka_unit_test(test_quotes),
		cmocka_unit_test(test_brackets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
