/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes JSON. The callers decide what is written.
 */
#include "tools/json.h"

#include <inttypes.h>

/* Bytes of the UTF-8 sequence at @c, 0 if it is none. Overlong forms and
 * surrogates are none (RFC 3629, section 4). */
static unsigned utf8_len(const unsigned char *c)
{
	unsigned len = 0;

	if (*c < 0x80)
		len = 1;
	else if (*c >= 0xc2 && *c < 0xe0)
		len = 2;
	else if (*c >= 0xe0 && *c < 0xf0)
		len = 3;
	else if (*c >= 0xf0 && *c < 0xf5)
		len = 4;
	for (unsigned i = 1; i < len; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] > 0x9f) ||
	    (*c == 0xf0 && c[1] < 0x90) || (*c == 0xf4 && c[1] > 0x8f))
		return 0;
	return len;
}

void wf_tools_json_quote(FILE *out, const char *text)
{
	const unsigned char *c = (const unsigned char *)text;

	fputc('"', out);
	while (*c) {
		unsigned len = utf8_len(c);

		if (!len)
			fputs("\\ufffd", out);
		else if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c < 0x20 || *c == 0x7f)
			fprintf(out, "\\u%04x", *c);
		else
			fwrite(c, 1, len, out);
		c += len ? len : 1;
	}
	fputc('"', out);
}

/* Ends the line before, begins ours, and says its name. */
static void begin(struct wf_tools_json *json, const char *name)
{
	if (json->depth)
		fprintf(json->out, "%s\n%*s", json->follows ? "," : "",
			(int)json->depth * 2, "");
	if (name)
		fprintf(json->out, "\"%s\": ", name);
	json->follows = true;
}

void wf_tools_json_open(struct wf_tools_json *json, const char *name,
			char bracket)
{
	begin(json, name);
	fputc(bracket, json->out);
	json->depth++;
	json->follows = false;
}

void wf_tools_json_close(struct wf_tools_json *json, char bracket)
{
	json->depth--;
	if (json->follows)
		fprintf(json->out, "\n%*s", (int)json->depth * 2, "");
	fputc(bracket, json->out);
	json->follows = true;
	if (!json->depth)
		fputc('\n', json->out);
}

void wf_tools_json_text(struct wf_tools_json *json, const char *name,
			const char *text)
{
	begin(json, name);
	if (text)
		wf_tools_json_quote(json->out, text);
	else
		fputs("null", json->out);
}

void wf_tools_json_number(struct wf_tools_json *json, const char *name,
			  uint64_t value)
{
	begin(json, name);
	fprintf(json->out, "%" PRIu64, value);
}

void wf_tools_json_bool(struct wf_tools_json *json, const char *name,
			bool value)
{
	begin(json, name);
	fputs(value ? "true" : "false", json->out);
}
