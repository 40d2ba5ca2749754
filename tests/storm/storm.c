/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A storm: many processes that talk to each other while they are killed,
 * stopped, started again, and refused memory and descriptors, all drawn from a
 * seed. Nothing may be lost or come twice, nothing may hang once the storm is
 * over, and nothing may be left behind.
 *
 *	storm [--seed N] [--for SECONDS] [--shm|--packets|--hosts|--both]
 *	      [--processes N] [--faults memory,descriptors,refs,sending,copies]
 *
 * It runs in rounds of some seconds, each a set of processes of its own. This
 * file is the parent of a round: it draws the faults and judges.
 */
#include <dirent.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "common/check.h"
#include "common/net.h"
#include "storm.h"

#define CONNECT_MS 3000
#define DEAD_S 5
/* Once the storm is over nothing may wait longer. This is the time that the
 * settings allow, and much more: the machine may be busy. */
#define HEAL_MS (CONNECT_MS + DEAD_S * 1000 + 40000)
#define ROUND_S 15

enum how { BY_SHM, BY_PACKETS, BY_HOSTS, WAYS };

static const char *const way_names[] = { "--shm", "--packets", "--hosts" };
static const char *const kind_names[] = { "tagged", "untagged", "write", "read",
					  "fetch-add" };

struct storm_board *storm_board;

static struct {
	uint64_t seed;
	int seconds;
	int way; /* -1: all in turn */
	int processes;
	unsigned int faults; /* a bit for each kind of call that may fail */
	const char *fault_text;
} options = {
	.seed = 1, .seconds = 10, .way = -1, .processes = 16, .faults = ~0u
};

/* The parent knows this of a worker. */
static struct {
	pid_t pid;
	uint64_t wake_ms;  /* it is stopped until then */
	uint64_t start_ms; /* it is dead until then */
} known[STORM_WORKERS];

static uint64_t draws;
static char way_text[160];

uint64_t storm_random(uint64_t *state)
{
	/* splitmix64 */
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint64_t storm_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint32_t draw(uint32_t n)
{
	return (uint32_t)(storm_random(&draws) % n);
}

bool storm_settled(int from, int to, const struct storm_entry *e)
{
	if (e->fate == STORM_PENDING)
		return false;
	if (e->got || e->fate == STORM_FAILED)
		return true;
	/* A receiver that has died since then has lost it. */
	return e->unsure ||
	       e->from_life != (uint16_t)storm_board->worker[from].life ||
	       e->to_life != (uint16_t)storm_board->worker[to].life;
}

/* -- judgement --------------------------------------------------------------- */

static void report_worker(int i, uint64_t now)
{
	struct storm_worker *s = &storm_board->worker[i];

	printf("  %2d: pid %d, life %u, %s, last call %llu ms ago%s%s\n", i,
	       known[i].pid, s->life, s->up ? "up" : "down",
	       (unsigned long long)(now - s->beat_ms), s->doing ? ", in " : "",
	       s->doing ? s->doing : "");
	for (int k = 0; k < 256; k++)
		if (s->receive_errnos[k])
			printf("      %u receives failed with %s\n",
			       s->receive_errnos[k], strerrorname_np(k) ?: "?");
	if (s->unknown)
		printf("      %llu of them did not say which message failed\n",
		       (unsigned long long)s->unknown);
	for (int k = 0; k < STORM_OPS; k++) {
		struct storm_op *op = &s->ops[k];

		if (op->used)
			printf("      waits %llu ms for %s of %u bytes, to %d "
			       "(life %u, now %u), number %u\n",
			       (unsigned long long)(now - op->since_ms),
			       kind_names[op->kind], op->len, op->peer,
			       op->peer_life,
			       storm_board->worker[op->peer].life & 0xffff,
			       op->seq);
	}
	for (int to = 0; to < storm_board->workers; to++) {
		struct storm_pair *pair = &storm_board->pair[i][to];
		struct storm_entry *e = &pair->ring[pair->oldest % STORM_RING];

		if (pair->oldest != pair->next && e->fate == STORM_OK)
			printf("      sent %u (%s%s, %u bytes) to %d %llu ms "
			       "ago with success; not received, and %u after "
			       "it unsettled\n",
			       e->seq, kind_names[e->kind],
			       e->deliver ? ", delivered" : "", e->len, to,
			       (unsigned long long)(now - e->since_ms),
			       pair->next - pair->oldest - 1);
	}
}

static void report(void)
{
	uint64_t now = storm_ms();

	for (int i = 0; i < storm_board->workers; i++)
		report_worker(i, now);
	fflush(stdout);
}

static void kill_all(void)
{
	for (int i = 0; i < storm_board->workers; i++) {
		if (known[i].pid <= 0)
			continue;
		kill(known[i].pid, SIGKILL);
		waitpid(known[i].pid, NULL, 0);
	}
}

static void lose(const char *why, int who)
{
	printf("storm: %s (%d)\n", why, who);
	report();
	if (getenv("STORM_HOLD"))
		pause(); /* for a debugger */
	kill_all();
	printf("storm: FAILED after seed %llu; repeat it with\n\t%s\n",
	       (unsigned long long)storm_board->seed, way_text);
	fflush(NULL);
	_exit(1);
}

/* A worker that ended by itself has found something. */
static void look_for_dead(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < storm_board->workers; i++) {
			if (known[i].pid != pid)
				continue;
			known[i].pid = 0;
			if (WIFSIGNALED(status))
				lose("a worker died of a signal", i);
			if (WEXITSTATUS(status))
				lose("a worker found a fault", i);
			if (storm_board->phase != STORM_ENDS)
				lose("a worker ended too early", i);
		}
}

/* -- faults ------------------------------------------------------------------ */

static void start(int i)
{
	uint64_t seed = storm_random(&draws);

	fflush(NULL);
	known[i].pid = fork();
	CHECK_SYS(known[i].pid);
	known[i].start_ms = 0;
	known[i].wake_ms = 0;
	if (known[i].pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (storm_board->hosts)
		net_enter(i & 1);
	storm_work(i, seed);
	fflush(NULL);
	_exit(0);
}

static void slay(int i)
{
	if (known[i].pid <= 0)
		return;
	kill(known[i].pid, SIGKILL);
	waitpid(known[i].pid, NULL, 0);
	known[i].pid = 0;
	storm_board->worker[i].up = false;
	storm_board->worker[i].reopen = false;
	known[i].start_ms = storm_ms() + draw(draw(4) ? 300 : 2000);
}

static void stop(int i)
{
	if (known[i].pid <= 0 || known[i].wake_ms)
		return;
	kill(known[i].pid, SIGSTOP);
	known[i].wake_ms =
		storm_ms() + 1 + draw(draw(20) ? 500 : DEAD_S * 1500);
}

static void wake_and_start(bool all)
{
	uint64_t now = storm_ms();

	for (int i = 0; i < storm_board->workers; i++) {
		if (known[i].wake_ms && (all || now >= known[i].wake_ms)) {
			if (known[i].pid > 0)
				kill(known[i].pid, SIGCONT);
			known[i].wake_ms = 0;
		}
		if (known[i].start_ms && (all || now >= known[i].start_ms))
			start(i);
	}
}

static void blow(uint64_t end)
{
	while (storm_ms() < end) {
		int i = (int)draw((uint32_t)storm_board->workers);
		uint32_t what = draw(100);

		usleep(1000 * (5 + draw(60)));
		look_for_dead();
		if (what < 4)
			slay(i);
		else if (what < 12)
			stop(i);
		else if (what < 16)
			storm_board->worker[i].reopen = true;
		wake_and_start(false);
	}
}

/* Until everyone is quiet in that phase. */
static void wait_quiet(enum storm_phase phase, const char *why)
{
	uint64_t end = storm_ms() + HEAL_MS;
	int quiet = 0;

	storm_board->phase = phase;
	while (quiet < storm_board->workers) {
		if (storm_ms() > end)
			lose(why, quiet);
		usleep(10000);
		look_for_dead();
		quiet = 0;
		for (int i = 0; i < storm_board->workers; i++)
			quiet += storm_board->worker[i].quiet == (int)phase;
	}
}

static void wait_gone(void)
{
	uint64_t end = storm_ms() + HEAL_MS;
	int left = 1;

	storm_board->phase = STORM_ENDS;
	while (left) {
		if (storm_ms() > end)
			lose("workers do not end", left);
		usleep(10000);
		look_for_dead();
		left = 0;
		for (int i = 0; i < storm_board->workers; i++)
			left += known[i].pid > 0;
	}
}

/* -- what is left behind ----------------------------------------------------- */

static int count_files(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int n = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		n += strstr(entry->d_name, "weft") != NULL;
	closedir(dir);
	return n;
}

/* Names of sockets of ours, in the namespace of this process. */
static int count_names(void)
{
	FILE *all = fopen("/proc/self/net/unix", "r");
	char line[256], ours[32];
	int n = 0;

	CHECK(all);
	/* Names hold the address, and with it the port. */
	while (fgets(line, sizeof(line), all))
		for (int i = 0; i < storm_board->workers; i++) {
			snprintf(ours, sizeof(ours), "%u",
				 storm_board->port + (unsigned int)i);
			n += strstr(line, "@weft") && strstr(line, ours);
		}
	fclose(all);
	return n;
}

/* Sockets vanish a moment after their process. */
static void check_left_behind(int files)
{
	uint64_t end = storm_ms() + 5000;

	while (count_names() && storm_ms() < end)
		usleep(10000);
	if (count_names())
		lose("sockets are left behind", count_names());
	if (count_files("/dev/shm") + count_files("/tmp") +
		    count_files("/run") >
	    files)
		lose("files are left behind", count_files("/dev/shm"));
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		lose("processes are left behind", 0);
}

/* -- a round ----------------------------------------------------------------- */

static void set_environment(int way)
{
	char text[64];

	snprintf(text, sizeof(text), "%d", CONNECT_MS);
	setenv("FI_WEFT_CONNECT_TIMEOUT", text, 1);
	snprintf(text, sizeof(text), "%d", DEAD_S);
	setenv("FI_WEFT_DEAD_TIMEOUT", text, 1);
	setenv("FI_PROVIDER", "weft", 1);
	if (way == BY_PACKETS)
		setenv("FI_WEFT_SHM", "0", 1);
	if (way != BY_SHM && draw(2)) {
		/* The device whose packets can be made to suffer, unless
		 * another was asked for. */
		setenv("FI_WEFT_NIC", "udp", 0);
		setenv("FI_WEFT_MTU", "1500", 1);
		snprintf(text, sizeof(text), "loss=1%%,reorder=5%%,seed=%u",
			 draw(1000) + 1);
		setenv("FI_WEFT_FAULT", text, 1);
	}
	if (way != BY_PACKETS && !draw(4))
		setenv("FI_WEFT_CMA", "0", 1);
}

static void tell(int way, uint64_t begin)
{
	uint64_t sent = 0, received = 0, failed = 0, injected = 0, lives = 0;
	uint64_t onesided = 0, reopened = 0, receive_errors = 0;
	uint32_t errors[256] = { 0 };

	for (int i = 0; i < storm_board->workers; i++) {
		struct storm_worker *s = &storm_board->worker[i];

		sent += s->sent;
		received += s->received;
		failed += s->failed;
		injected += s->injected;
		onesided += s->onesided;
		reopened += s->reopened;
		receive_errors += s->receive_errors;
		lives += s->life;
		for (int k = 0; k < 256; k++)
			errors[k] += s->errors[k];
	}
	printf("storm: seed %llu %s%s, %.1f s: %llu messages sent, %llu received, "
	       "%llu one-sided, %llu failed (%llu receives), %llu lives "
	       "(%llu reopened), %llu calls refused;",
	       (unsigned long long)storm_board->seed, way_names[way],
	       storm_board->victim < 0 ? "" : ", flood",
	       (double)(storm_ms() - begin) / 1000, (unsigned long long)sent,
	       (unsigned long long)received, (unsigned long long)onesided,
	       (unsigned long long)failed, (unsigned long long)receive_errors,
	       (unsigned long long)lives, (unsigned long long)reopened,
	       (unsigned long long)injected);
	for (int k = 0; k < 256; k++)
		if (errors[k])
			printf(" %s: %u", strerrorname_np(k) ?: "?", errors[k]);
	printf("\n");
	fflush(stdout);
}

/* A process of its own, so that hosts and children end with it. */
static void run_round(uint64_t seed, int way, int seconds)
{
	uint64_t begin = storm_ms();
	int files = count_files("/dev/shm") + count_files("/tmp") +
		    count_files("/run");

	draws = seed;
	storm_board = mmap(NULL, sizeof(*storm_board), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(storm_board != MAP_FAILED);
	storm_board->seed = seed;
	storm_board->workers = options.processes;
	/* Below the ports that the kernel hands out. */
	storm_board->port = (uint16_t)(10000 + getpid() % 300 * STORM_WORKERS);
	for (int i = 0; i < STORM_WORKERS; i++)
		for (int k = 0; k < STORM_WORKERS; k++)
			if (i < options.processes && k < options.processes)
				storm_board->pair[i][k].next =
					storm_board->pair[i][k].oldest = 1;
	set_environment(way);
	storm_board->hosts = way == BY_HOSTS;
	storm_board->victim =
		draw(3) ? -1 : (int)draw((uint32_t)options.processes);
	storm_fault_kinds(options.faults);
	if (storm_board->hosts)
		net_begin(1500);
	snprintf(way_text, sizeof(way_text),
		 "storm --seed %llu --for %d %s --processes %d%s%s",
		 (unsigned long long)seed, seconds, way_names[way],
		 options.processes, options.fault_text ? " --faults " : "",
		 options.fault_text ? options.fault_text : "");
	storm_board->phase = STORM_BLOWS;
	for (int i = 0; i < options.processes; i++)
		start(i);
	blow(storm_ms() + (uint64_t)seconds * 1000);
	wake_and_start(true);
	wait_quiet(STORM_HEALS, "the storm is over, and operations hang");
	wait_quiet(STORM_PROVES,
		   "after the storm not everyone reaches everyone");
	wait_gone();
	check_left_behind(files);
	tell(way, begin);
}

/* "none" is none of these. */
static unsigned int parse_faults(const char *text)
{
	static const char *const names[STORM_FAULTS] = { "memory",
							 "descriptors", "refs",
							 "sending", "copies" };
	unsigned int faults = 0;

	for (int i = 0; i < STORM_FAULTS; i++)
		if (strstr(text, names[i]))
			faults |= 1u << i;
	return faults;
}

static void parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "for", required_argument, NULL, 'f' },
		{ "processes", required_argument, NULL, 'p' },
		{ "shm", no_argument, NULL, 'm' },
		{ "packets", no_argument, NULL, 'k' },
		{ "hosts", no_argument, NULL, 'h' },
		{ "both", no_argument, NULL, 'b' },
		{ "faults", required_argument, NULL, 'c' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
		switch (option) {
		case 's':
			options.seed = strtoull(optarg, NULL, 0);
			break;
		case 'f':
			options.seconds = atoi(optarg);
			break;
		case 'p':
			options.processes = atoi(optarg);
			break;
		case 'm':
			options.way = BY_SHM;
			break;
		case 'k':
			options.way = BY_PACKETS;
			break;
		case 'h':
			options.way = BY_HOSTS;
			break;
		case 'b':
			options.way = -1;
			break;
		case 'c':
			options.faults = parse_faults(optarg);
			options.fault_text = optarg;
			break;
		default:
			exit(2);
		}
	if (options.processes < 2 || options.processes > STORM_WORKERS) {
		fprintf(stderr, "storm: 2 to %d processes\n", STORM_WORKERS);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	uint64_t end;
	int rounds;

	parse(argc, argv);
	if (!getenv("FI_PROVIDER_PATH")) {
		printf("FI_PROVIDER_PATH is not set\n");
		return 77;
	}
	end = storm_ms() + (uint64_t)options.seconds * 1000;
	for (rounds = 0; !rounds || storm_ms() < end; rounds++) {
		uint64_t seed = options.seed + (uint64_t)rounds;
		int way = options.way < 0 ? (int)(seed % WAYS) : options.way;
		int length =
			options.seconds < ROUND_S ? options.seconds : ROUND_S;
		int status;
		pid_t pid;

		fflush(NULL);
		pid = fork();
		CHECK_SYS(pid);
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			run_round(seed, way, length);
			fflush(NULL);
			_exit(0);
		}
		CHECK_SYS(waitpid(pid, &status, 0));
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			continue; /* no network namespaces here */
		if (status)
			return 1;
	}
	printf("storm: %d rounds, nothing lost, nothing hung, nothing left "
	       "behind\n",
	       rounds);
	return 0;
}
