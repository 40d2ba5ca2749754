/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header finds the word that a user has probably meant who has misspelt
 * one: a command, option, test, provider or driver.
 */
#ifndef WF_TOOLS_NEAR_H
#define WF_TOOLS_NEAR_H

#include <getopt.h>

struct wf_tools_near {
	const char *word; /* as it was typed */
	const char *best; /* of those tried; NULL: none is like it */
	unsigned int distance;
};

/* Letters to insert, leave out, replace, or exchange with their neighbour. Words
 * are cut at 63 letters. */
unsigned int wf_tools_near_distance(const char *a, const char *b);

/* Keeps @candidate, which must stay valid, if it is like the word, not the same, and
 * nearer than the ones before it. The beginning of a word is one letter away from
 * it. */
void wf_tools_near_try(struct wf_tools_near *near, const char *candidate);

/* "; did you mean NAME?" or "". Static, of the last call. */
const char *wf_tools_near_text(const struct wf_tools_near *near);

/* After getopt_long() has refused an option of @argv and said so: the one of
 * @options that may be meant, and that `@who --help` lists them. */
void wf_tools_near_option(const char *who, char *const *argv,
			  const struct option *options);

#endif
