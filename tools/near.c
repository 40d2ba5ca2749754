/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares words letter by letter. It knows no list of words.
 */
#include "tools/near.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 63

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

unsigned int wf_tools_near_distance(const char *a, const char *b)
{
	/* Of the beginnings of both; three rows of the table are enough. */
	unsigned int rows[3][LONGEST + 1];
	size_t n = strnlen(a, LONGEST), m = strnlen(b, LONGEST);

	for (size_t j = 0; j <= m; j++)
		rows[0][j] = (unsigned int)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned int *row = rows[i % 3];
		const unsigned int *above = rows[(i + 2) % 3];
		const unsigned int *second = rows[(i + 1) % 3];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= m; j++) {
			row[j] = least(above[j], row[j - 1]) + 1;
			row[j] = least(row[j],
				       above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				row[j] = least(row[j], second[j - 2] + 1);
		}
	}
	return rows[n % 3][m];
}

void wf_tools_near_try(struct wf_tools_near *near, const char *candidate)
{
	size_t len = strlen(near->word);
	unsigned int distance = wf_tools_near_distance(near->word, candidate);

	/* A word that is there was refused for another reason than a slip. */
	if (!distance)
		return;
	if (len > 1 && !strncmp(near->word, candidate, len))
		distance = 1;
	/* A slip in a short word, two in one of five letters or more. */
	if (len < 2 || distance > 1 + (len - 1) / 4 ||
	    (near->best && distance >= near->distance))
		return;
	near->best = candidate;
	near->distance = distance;
}

const char *wf_tools_near_text(const struct wf_tools_near *near)
{
	static char text[128];

	if (!near->best)
		return "";
	snprintf(text, sizeof(text), "; did you mean %s?", near->best);
	return text;
}

void wf_tools_near_option(const char *who, char *const *argv,
			  const struct option *options)
{
	const char *given = optind > 0 ? argv[optind - 1] : "";
	struct wf_tools_near near = { NULL, NULL, 0 };
	char word[LONGEST + 1];

	/* It is 0 where a long option is unknown, or short for several, which
	 * getopt lists. */
	if (!optopt && !strncmp(given, "--", 2)) {
		snprintf(word, sizeof(word), "%.*s",
			 (int)strcspn(given + 2, "="), given + 2);
		near.word = word;
		for (; options->name; options++)
			wf_tools_near_try(&near, options->name);
	}
	if (near.best)
		fprintf(stderr, "%s: did you mean --%s? ", who, near.best);
	else
		fprintf(stderr, "%s: ", who);
	fprintf(stderr, "`%s --help` lists the options\n", who);
}
