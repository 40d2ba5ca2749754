/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the command `weft` of the build that is tested.
 */
#ifndef WEFT_TESTS_COMMON_TOOL_H
#define WEFT_TESTS_COMMON_TOOL_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "common/check.h"

/* Runs `weft @arguments` by the shell. Returns its exit code and puts what it
 * printed into the @room bytes of @text. */
static inline int weft_test_tool(const char *arguments, char *text, size_t room)
{
	char command[512];
	size_t len = 0, got;
	FILE *pipe;
	int status;

	snprintf(command, sizeof(command), "%s/tools/weft %s",
		 getenv("WEFT_BUILD"), arguments);
	pipe = popen(command, "r");
	CHECK(pipe);
	while ((got = fread(text + len, 1, room - 1 - len, pipe)))
		len += got;
	text[len] = 0;
	status = pclose(pipe);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#endif
