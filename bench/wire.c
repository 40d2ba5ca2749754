/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a command on each of two hosts that a bad or slow link joins, on one
 * machine: the link of the tests, for kernels without netem. It measures nothing
 * itself.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/amount.h"
#include "common/wire.h"

#define MTU_MIN 576u
#define MTU_MAX 1986u /* with a head of Ethernet, as the wire carries */
#define PART 1000000u
#define LOOK_US 10000u
#define TERM_LOOKS 100 /* after SIGTERM, before SIGKILL: 1 s */

static unsigned mtu = 1500;
static char **commands[WIRE_HOSTS];

/* Returns what both hosts see. */
static _Atomic int *over_of(struct wire *wire)
{
	return (_Atomic int *)(((uintptr_t)wire->user + 63) & ~(uintptr_t)63);
}

static pid_t start(char **command)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execvp(command[0], command);
	fprintf(stderr, "wire: %s: %s\n", command[0], strerror(errno));
	_exit(127);
}

/* A status of wire_run(): 77 of a command means nothing there. */
static int result_of(int status)
{
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : 1;
}

static void end(pid_t pid)
{
	kill(pid, SIGTERM);
	for (int i = 0; i < TERM_LOOKS; i++) {
		if (waitpid(pid, NULL, WNOHANG))
			return;
		usleep(LOOK_US);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The first host's command is ended when the second's has. It may end by itself
 * before, as a server does that has served. */
static int first_host(struct wire *wire, pid_t pid)
{
	int status;

	while (!*over_of(wire)) {
		if (pid && waitpid(pid, &status, WNOHANG)) {
			pid = 0;
			if (result_of(status)) {
				fprintf(stderr, "wire: %s failed\n",
					commands[0][0]);
				return 1;
			}
		}
		usleep(LOOK_US);
	}
	if (pid)
		end(pid);
	return 0;
}

static int second_host(struct wire *wire, pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	*over_of(wire) = 1;
	printf("wire: %llu frames carried, %llu lost\n",
	       (unsigned long long)wire->carried,
	       (unsigned long long)wire->dropped);
	return result_of(status);
}

static int host(struct wire *wire, int me)
{
	pid_t pid = start(commands[me]);

	if (pid < 0)
		return 1;
	return me ? second_host(wire, pid) : first_host(wire, pid);
}

static void usage(FILE *to)
{
	fputs("usage: wire [OPTION...] -- COMMAND... -- COMMAND...\n"
	      "Runs the first command on the host 10.99.0.1 and the second on 10.99.0.2, joined\n"
	      "by a link that loses frames or is slow, until the second has ended. Needs root.\n"
	      "  --loss PERCENT   of the frames, each way (default 0)\n"
	      "  --rate MBIT      a second, each way (default: no limit)\n"
	      "  --queue BYTES    that wait for the rate; others are lost (default 256K)\n"
	      "  --delay US       one way (default 0)\n"
	      "  --mtu BYTES      576 to 1986 (default 1500)\n",
	      to);
}

/* Up to @most; exits if it is none. */
static double number(const char *text, const char *option, double most)
{
	char *end;
	double value = strtod(text, &end);

	if (end != text && !*end && value >= 0 && value <= most)
		return value;
	fprintf(stderr, "wire: --%s %s: a number up to %.0f is expected\n",
		option, text, most);
	exit(2);
}

static uint32_t bytes(const char *text)
{
	const char *end;
	uint64_t value;

	if (!wf_base_amount_bytes(text, &end, &value) && !*end && value &&
	    value <= UINT32_MAX)
		return (uint32_t)value;
	fprintf(stderr, "wire: --queue %s: bytes are expected, as 64K\n", text);
	exit(2);
}

static void read_options(int argc, char **argv, struct wire_rules *rules)
{
	static const struct option options[] = {
		{ "loss", required_argument, NULL, 'l' },
		{ "rate", required_argument, NULL, 'r' },
		{ "queue", required_argument, NULL, 'q' },
		{ "delay", required_argument, NULL, 'd' },
		{ "mtu", required_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	rules->queue = 256u << 10;
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (c == 'l')
			rules->loss = (uint32_t)(number(optarg, "loss", 100) *
						 PART / 100);
		else if (c == 'r')
			rules->rate =
				(uint64_t)(number(optarg, "rate", 100000) *
					   PART / 8);
		else if (c == 'q')
			rules->queue = bytes(optarg);
		else if (c == 'd')
			rules->delay_us =
				(uint32_t)number(optarg, "delay", 1e6);
		else if (c == 'm')
			mtu = (unsigned)number(optarg, "mtu", MTU_MAX);
		else {
			usage(c == 'h' ? stdout : stderr);
			exit(c == 'h' ? 0 : 2);
		}
	}
}

int main(int argc, char **argv)
{
	struct wire *wire = wire_create();
	int at;

	if (!wire) {
		perror("wire");
		return 1;
	}
	read_options(argc, argv, &wire->rules);
	for (at = optind; at < argc && strcmp(argv[at], "--"); at++)
		;
	if (at == optind || at + 1 >= argc || mtu < MTU_MIN) {
		usage(stderr);
		return 2;
	}
	commands[0] = &argv[optind];
	argv[at] = NULL;
	commands[1] = &argv[at + 1];
	return wire_run(wire, mtu, host);
}
