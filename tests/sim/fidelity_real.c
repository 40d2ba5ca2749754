/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim-fidelity: the assertions on the real kernel.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fidelity.h"

void fidelity_differs(const char *what, int line)
{
	printf("fidelity.c:%d: not so on this kernel: %s (%s)\n", line, what,
	       strerror(errno));
	exit(1);
}

int main(void)
{
	fidelity_run("127.0.0.1");
	return 0;
}
