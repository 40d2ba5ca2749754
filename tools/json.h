/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing JSON that is well formed whatever the texts hold. Commas, quotes and
 * indentation are this writer's business; names are the caller's and are
 * written as they are.
 */
#ifndef WF_TOOLS_JSON_H
#define WF_TOOLS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct wf_tools_json {
	FILE *out;
	unsigned depth;
	bool follows; /* something stands before in this object or list */
};

/* A string with its quotes. Control characters are escaped, bytes that are no
 * UTF-8 replaced. */
void wf_tools_json_quote(FILE *out, const char *text);

/* @name is NULL in a list and for the outermost object. @bracket: '{' or '['
 * and their closing ones. */
void wf_tools_json_open(struct wf_tools_json *json, const char *name,
			char bracket);
void wf_tools_json_close(struct wf_tools_json *json, char bracket);

/* NULL is written as null. */
void wf_tools_json_text(struct wf_tools_json *json, const char *name,
			const char *text);
void wf_tools_json_number(struct wf_tools_json *json, const char *name,
			  uint64_t value);
void wf_tools_json_bool(struct wf_tools_json *json, const char *name,
			bool value);

#endif
