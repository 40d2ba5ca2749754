/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of reading what libfabric says of a setting, and of JSON that
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

#include "tools/json.h"

static char problem[256];

void wf_tools_facts_problem(struct wf_tools_facts *facts, const char *format,
			    ...)
{
	va_list args;

	(void)facts;
	va_start(args, format);
	vsnprintf(problem, sizeof(problem), format, args);
	va_end(args);
}

static struct wf_tools_param param_of(const char *name, const char *given,
				      const char *help)
{
	struct wf_tools_param param = { .note = "" };

	snprintf(param.name, sizeof(param.name), "%s", name);
	snprintf(param.given, sizeof(param.given), "%s", given);
	wf_tools_param_fill(&param, help, 1300);
	return param;
}

static void test_text_is_taken_apart(void **state)
{
	struct wf_tools_param p = param_of(
		"FI_WEFT_CMA_MIN", "",
		"weft: Bytes (of a message), 1 to 9 (default: the (best) one)");

	(void)state;
	assert_string_equal(p.help, "Bytes (of a message), 1 to 9");
	assert_string_equal(p.fallback, "the (best) one");
	assert_string_equal(p.value, "the (best) one");
	assert_string_equal(p.source, "default");
	assert_non_null(p.why);
	/* It depends on the machine. */
	p = param_of("FI_WEFT_COOP_MIN", "", "x (default: it depends)");
	assert_string_equal(p.fallback, "it depends");
	assert_string_equal(p.value, "32768");
	p = param_of("FI_WEFT_NEW", "", "no default");
	assert_string_equal(p.help, "no default");
	assert_string_equal(p.value, "");
	assert_null(p.why);
	p = param_of("FI_WEFT_NEW", "", NULL);
	assert_string_equal(p.help, "");
	p = param_of("FI_WEFT_NEW", "", " (default: ");
	assert_string_equal(p.value, "");
}

/* The values themselves are in src/base/setting_test.c: the parser is one. */
static void test_values(void **state)
{
	static const struct {
		const char *name, *given, *value;
		bool odd;
	} cases[] = {
		{ "FI_WEFT_CMA_MIN", "8K", "8192", false },
		{ "FI_WEFT_CMA_MIN", "5", "4097", true },
		{ "FI_WEFT_CMA_MIN", "abc", "17", true },
		{ "FI_WEFT_CONNECT_TIMEOUT", "-1", "17", true },
		{ "FI_WEFT_CMA", "OFF", "false", false },
		{ "FI_WEFT_CMA", "maybe", "17", true },
		{ "FI_WEFT_ALLOW_UID", "any", "any", false },
		{ "FI_WEFT_NEW", "x", "x", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wf_tools_param p;

		setenv(cases[i].name, cases[i].given, 1);
		p = param_of(cases[i].name, cases[i].given, "x (default: 17)");
		unsetenv(cases[i].name);
		assert_string_equal(p.value, cases[i].value);
		assert_int_equal(*p.note != 0, cases[i].odd);
		assert_string_equal(p.source, "environment");
	}
	assert_string_equal(param_of("FI_WEFT_CMA_MIN", "1", "x").source,
			    "libfabric");
}

static void test_unknown(void **state)
{
	static struct wf_tools_facts facts;

	(void)state;
	setenv("FI_WEFT_CMAMIN", "8K", 1);
	wf_tools_param_unknown(&facts);
	assert_string_equal(problem, "FI_WEFT_CMAMIN is no setting and changes "
				     "nothing: is FI_WEFT_CMA_MIN meant?");
	/* A provider that is newer than this program may know it. */
	*problem = '\0';
	snprintf(facts.params[0].name, sizeof(facts.params[0].name),
		 "FI_WEFT_CMAMIN");
	facts.n_params = 1;
	wf_tools_param_unknown(&facts);
	assert_string_equal(problem, "");
	unsetenv("FI_WEFT_CMAMIN");
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
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_quotes),
		cmocka_unit_test(test_brackets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
