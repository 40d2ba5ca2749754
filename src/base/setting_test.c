/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of settings: which value is used for which text. The bugs:
 * CMA_MIN=8K was 4097, CONNECT_TIMEOUT=-1 an hour (and 18446744073709551615 in
 * `weft info`), garbage was 0, and a misspelt name passed without a word.
 */
#include "base/setting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void test_table(void **state)
{
	char buf[WF_SETTING_TEXT_LEN], note[WF_SETTING_NOTE];

	(void)state;
	for (size_t i = 0; i < wf_base_setting_count; i++) {
		const struct wf_setting *s = &wf_base_settings[i];
		uint64_t value = s->fallback + 1;

		assert_ptr_equal(wf_base_setting_find(s->name), s);
		assert_non_null(s->help);
		assert_non_null(s->why);
		assert_true(!wf_base_setting_is_text(s) || s->words);
		assert_true(strlen(wf_base_setting_range(s, buf)) <
			    WF_SETTING_TEXT_LEN - 1);
		if (wf_base_setting_is_text(s))
			continue;
		/* The default is one of the values that are possible. */
		assert_true(wf_base_setting_read(
			s, wf_base_setting_text(s, s->fallback, buf), &value,
			note));
		assert_int_equal(value, s->fallback);
		assert_string_equal(note, "");
	}
	assert_null(wf_base_setting_find("nosuch"));
	assert_int_equal(wf_base_setting_coop_min(500),
			 wf_base_setting_find("coop_min")->fallback);
	assert_int_equal(wf_base_setting_coop_min(1300), 32768);
}

static void test_values(void **state)
{
	static const struct {
		const char *name, *given;
		bool counts;
		uint64_t value;
		const char *note; /* a part of it; "": none */
	} cases[] = {
		{ "cma_min", "", false, 8193, "" },
		{ "cma_min", "8K", true, 8192, "" },
		{ "cma_min", "5", true, 4097, "4097 bytes or more" },
		{ "cma_min", "8X", false, 8193, "such as 8192, 8K or 1M" },
		{ "cma_min", "99999999999999999999", true, UINT64_MAX,
		  "out of range" },
		{ "eager_max", "0x2000", true, 8192, "" },
		{ "eager_max", "1M", true, 262144, "0 to 262144" },
		{ "connect_timeout", "-1", false, 5000, "not a time" },
		{ "connect_timeout", "0", true, 1, "1 to 3600000" },
		{ "connect_timeout", "2s", true, 2000, "" },
		{ "connect_timeout", "2h", true, 3600000, "out of range" },
		{ "dead_timeout", "2min", true, 120, "" },
		{ "dead_timeout", "7", true, 7, "" },
		{ "dead_timeout", "500ms", true, 1, "number of seconds" },
		{ "tx_size", "100", true, 128, "power of two" },
		{ "tx_size", "1K", true, 1024, "" },
		{ "tx_size", "-5", false, 1024, "not a number" },
		{ "tx_size", "7", true, 16, "a power of two from 16 to 65536" },
		{ "mtu", "0", true, 0, "" },
		{ "mtu", "9000", true, 9000, "" },
		{ "mtu", "100", true, 576, "0, or 576 to 65536" },
		{ "mtu", "1000000", true, 65536, "0, or 576 to 65536" },
		{ "cma", "OFF", true, 0, "" },
		{ "cma", "perhaps", false, 1, "neither true nor false" },
		{ "allow_uid", "any", true, 0, "" },
		{ "allow_uid", "1,22", true, 0, "" },
		{ "allow_uid", "alice", false, 0, "user numbers" },
		{ "iface", "lo", true, 0, "" },
		{ "iface", "nosuch0", true, 0, "no interface" },
		{ "iface", "lo,lo", true, 0, "" },
		{ "iface", "lo,nosuch0", true, 0, "no interface \"nosuch0\"" },
		{ "iface", "lo,,lo", true, 0, "no interface \"\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct wf_setting *s =
			wf_base_setting_find(cases[i].name);
		char note[WF_SETTING_NOTE];
		uint64_t value;

		assert_non_null(s);
		value = s->fallback;
		assert_int_equal(
			wf_base_setting_read(s, cases[i].given, &value, note),
			cases[i].counts);
		assert_int_equal(value, cases[i].value);
		if (*cases[i].note)
			assert_non_null(strstr(note, cases[i].note));
		else
			assert_string_equal(note, "");
	}
}

static void note_unknown(const char *name, const struct wf_setting *meant,
			 void *arg)
{
	char *said = arg;

	strcat(said, name);
	strcat(said, ":");
	strcat(said, meant ? meant->name : "");
	strcat(said, " ");
}

static void test_unknown_names(void **state)
{
	static const struct {
		const char *name, *said;
	} cases[] = {
		{ "FI_WEFT_CMA_MIN", "" },
		{ "FI_WEFT_CMAMIN", "CMAMIN:cma_min " },
		{ "FI_WEFT_CONECT_TIMEOUT", "CONECT_TIMEOUT:connect_timeout " },
		{ "FI_WEFT_CONNECT", "CONNECT:connect_timeout " },
		{ "FI_WEFT_CONECT", "CONECT:connect_timeout " },
		{ "FI_WEFT_TIMEOUT", "TIMEOUT:dead_timeout " },
		{ "FI_WEFT_INTERFACE", "INTERFACE: " },
		{ "FI_WEFT_XYZZY", "XYZZY: " },
		{ "FI_WEFT_", "" },
		{ "FI_WEFTY", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char said[256] = "";

		setenv(cases[i].name, "1", 1);
		wf_base_setting_unknown(note_unknown, said);
		unsetenv(cases[i].name);
		assert_string_equal(said, cases[i].said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_unknown_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
