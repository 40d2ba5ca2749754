/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns the command line of `weft bench` into a plan. All defaults are here. It
 * must not start anything, so that a wrong option is reported at once.
 */
#include "tools/bench/options.h"

#include "base/clock.h"
#include "tools/bench/mpi.h"
#include "tools/bench/size.h"
#include "tools/near.h"
#include "tools/options.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPT_RATE_SIZES = 256,
	OPT_PEERS,
	OPT_PROCS,
	OPT_API,
	OPT_OVER,
	OPT_MTU,
	OPT_MORE,
	OPT_REWRITE,
	OPT_MEMFD,
	OPT_VERIFY,
	OPT_CPUS,
	OPT_TIMEOUT,
	OPT_SERVER,
	OPT_PORT,
	OPT_HOSTS,
	OPT_SHORT,
	OPT_JSON,
	OPT_CSV,
	OPT_SVG,
};

static const struct option long_options[] = {
	{ "provider", required_argument, NULL, 'p' },
	{ "against", required_argument, NULL, 'a' },
	{ "floor", no_argument, NULL, 'f' },
	{ "sizes", required_argument, NULL, 's' },
	{ "window", required_argument, NULL, 'w' },
	{ "reps", required_argument, NULL, 'r' },
	{ "time", required_argument, NULL, 't' },
	{ "help", no_argument, NULL, 'h' },
	{ "rate-sizes", required_argument, NULL, OPT_RATE_SIZES },
	{ "peers", required_argument, NULL, OPT_PEERS },
	{ "procs", required_argument, NULL, OPT_PROCS },
	{ "api", required_argument, NULL, OPT_API },
	{ "over", required_argument, NULL, OPT_OVER },
	{ "mtu", required_argument, NULL, OPT_MTU },
	{ "more", required_argument, NULL, OPT_MORE },
	{ "rewrite", no_argument, NULL, OPT_REWRITE },
	{ "memfd", no_argument, NULL, OPT_MEMFD },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "server", no_argument, NULL, OPT_SERVER },
	{ "port", required_argument, NULL, OPT_PORT },
	{ "hosts", required_argument, NULL, OPT_HOSTS },
	{ "short", no_argument, NULL, OPT_SHORT },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "csv", required_argument, NULL, OPT_CSV },
	{ "svg", required_argument, NULL, OPT_SVG },
	{ NULL, 0, NULL, 0 },
};

/* In parts, because C guarantees only strings of 4095 characters. */
static const char help_what[] =
	"usage: weft bench [OPTIONS] [HOST] [TEST...]\n"
	"       weft bench --server         on that HOST\n"
	"       weft bench wd [OPTIONS]     channels to accelerators\n"
	"       weft bench comp [OPTIONS]   compression\n"
	"\n"
	"Two processes, each on a CPU of its own, send messages to each other\n"
	"over the libfabric API. If you name no test, the first three run.\n"
	"  latency    ping-pong, half of a round trip\n"
	"  bandwidth  one way, a window of messages, then an acknowledgement\n"
	"  rate       the same with small messages and a large window\n"
	"  mpi        the same between two ranks of Open MPI: -p mpi:weft\n"
	"             -a mpi:vader,mpi:tcp latency allreduce -s 8-4M by default;\n"
	"             between hosts mpi:btl-tcp takes the place of mpi:vader\n"
	"  allreduce  MPI_Allreduce of doubles, only with mpi\n"
	"  rma        {write,read}-{latency,bandwidth} of remote memory\n"
	"  atomics    fetch-add, compare-swap, add-rate: 64 bits\n"
	"  idle       one fi_cq_read that finds nothing, by peers\n"
	"  memory     endpoint-memory, pair-memory, by peers\n"
	"  wake       wake-sread, wake-epoll: from a send to a sleeper's\n"
	"             return; wait-cpu: CPU time used while asleep\n"
	"  crowd      crowd-time, crowd-memory: many processes, all to all\n"
	"With a HOST the second process runs there. latency, bandwidth, rate, rma\n"
	"and atomics can be measured that way.\n"
	"\n"
	"What to measure:\n"
	"  -p, --provider NAME   libfabric provider under test (weft), as in\n"
	"                        FI_PROVIDER: shm, tcp, 'udp;ofi_rxd'\n"
	"  -a, --against LIST    others, run in turns with the first:\n"
	"                        providers, socket (plain TCP), ucx\n"
	"                        (ucx_perftest), or through Open MPI:\n"
	"                        mpi:vader (its own shared memory),\n"
	"                        mpi:btl-tcp (its own TCP), mpi:PROVIDER\n"
	"  -f, --floor           also the limits of the machine: a cache line\n"
	"                        handed over, a bare ring (to 64K)\n"
	"  -s, --sizes LIST      bytes: 8,64,1K or 1-8M, powers of two (1-8M)\n"
	"      --rate-sizes LIST sizes of the rate test (64); if rate is the\n"
	"                        only test, --sizes does the same\n"
	"      --peers LIST      of idle and memory (1,8,64,256)\n"
	"      --procs LIST      of crowd (8,64)\n"
	"      --short           a quick look: few sizes, 5 runs of 2 ms\n"
	"\n"
	"How to measure:\n"
	"  -r, --reps N          repetitions, whose median is shown (9)\n"
	"  -t, --time MS         timed part of each run (4)\n"
	"  -w, --window N        messages in a window (64, for rate 256);\n"
	"                        reduced so that at most 64 MiB are in flight\n"
	"      --cpus A,B        CPU of each process (the first two allowed)\n"
	"      --api msg|tagged  which calls (tagged)\n";

static const char help_more[] =
	"      --over WHAT       what connects the processes: node (the\n"
	"                        default), loopback (the interface, without\n"
	"                        shared memory), veth (two network namespaces\n"
	"                        joined by a link, made for the run; as root);\n"
	"                        against tcp and 'udp;ofi_rxd' by default\n"
	"      --mtu N           of the veth link (1500)\n"
	"      --more N          bandwidth and rate: send all but each Nth\n"
	"                        message of a window with FI_MORE\n"
	"      --rewrite         latency: senders rewrite their whole buffer\n"
	"                        before each message; the time of that is\n"
	"                        measured on both sides and subtracted\n"
	"      --memfd           buffers are in a memfd, which peers can map\n"
	"      --verify          check every byte (the times include that)\n"
	"      --timeout S       give up a run after S seconds (10)\n"
	"      --server          serve `weft bench HOST` of other hosts, one at\n"
	"                        a time, until Ctrl-C; every host that can\n"
	"                        connect can measure\n"
	"      --port N          TCP port of the server (47590), both sides\n"
	"      --hosts A,B       of mpi: mpirun starts a rank on each; without a\n"
	"                        second host: sudo weft bench mpi --over veth\n"
	"\n"
	"Output besides the table:\n"
	"      --json FILE       everything, every sample\n"
	"      --csv FILE        a line for each test, size and provider\n"
	"      --svg FILE        a plot\n"
	"  -h, --help            print this and exit\n"
	"\n"
	"The provider weft is the one of this program's build or installation;\n"
	"FI_PROVIDER_PATH overrides that. UCX runs with UCX_TLS=sm,self unless\n"
	"UCX_TLS is set.\n"
	"\n"
	"  weft bench --short --floor --against shm,tcp,ucx --svg bench.svg\n"
	"  weft bench -p shm latency --sizes 8-4K\n"
	"  sudo weft bench latency bandwidth rate --short --over veth\n";

/* The values of the command line, before defaults fill in the rest. */
struct given {
	const char *sizes;
	const char *rate_sizes;
	const char *peers;
	const char *procs;
	unsigned long window;
	unsigned long reps;
	unsigned long time_ms;
	unsigned long timeout_s;
	unsigned long mtu;
	unsigned long more;
	unsigned long port;
	const char *host;
	char *hosts;
	const char *cpus;
	bool brief;
	bool mpi;
};

#define complain(...) wf_tools_complain("bench", __VA_ARGS__)

static int read_number(const char *option, const char *text, unsigned long max,
		       unsigned long *value)
{
	char *end;

	errno = 0;
	*value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *value < 1 || *value > max)
		return complain("%s wants a number from 1 to %lu, not '%s'",
				option, max, text);
	return 0;
}

static int read_sizes(const char *option, const char *text,
		      struct wf_tools_sizes *sizes)
{
	switch (wf_tools_size_list(text, sizes)) {
	case 0:
		return 0;
	case -ERANGE:
		return complain("%s takes sizes from 1 to 1G, '%s' has another",
				option, text);
	case -E2BIG:
		return complain("%s takes at most %d sizes", option,
				WF_TOOLS_MAX_SIZES);
	default:
		return complain("%s wants a list like 8,64,1K or a range like "
				"1-8M, not '%s'",
				option, text);
	}
}

static int add_against(struct wf_tools_plan *plan, char *list)
{
	char *name, *rest = list;
	unsigned i;

	while ((name = strsep(&rest, ","))) {
		if (!*name)
			return complain("--against wants a list of names like "
					"shm,tcp,ucx");
		for (i = 0; i < plan->n_against; i++) {
			if (!strcmp(plan->against[i], name))
				break;
		}
		if (i < plan->n_against)
			continue;
		if (i == WF_TOOLS_MAX_AGAINST)
			return complain("--against takes at most %d names",
					WF_TOOLS_MAX_AGAINST);
		plan->against[plan->n_against++] = name;
	}
	return 0;
}

static int read_api(struct wf_tools_plan *plan, const char *text)
{
	if (strcmp(text, "msg") && strcmp(text, "tagged"))
		return complain("--api is msg or tagged, not '%s'", text);
	plan->tagged = !strcmp(text, "tagged");
	return 0;
}

static int read_option(struct wf_tools_plan *plan, struct given *given, int c)
{
	switch (c) {
	case 'p':
		plan->provider = optarg;
		return 0;
	case 'a':
		return add_against(plan, optarg);
	case 'f':
		plan->floor = true;
		return 0;
	case 's':
		given->sizes = optarg;
		return 0;
	case OPT_RATE_SIZES:
		given->rate_sizes = optarg;
		return 0;
	case OPT_PEERS:
		given->peers = optarg;
		return 0;
	case OPT_PROCS:
		given->procs = optarg;
		return 0;
	case 'w':
		return read_number("--window", optarg, WF_TOOLS_MAX_WINDOW,
				   &given->window);
	case 'r':
		return read_number("--reps", optarg, WF_TOOLS_MAX_REPS,
				   &given->reps);
	case 't':
		return read_number("--time", optarg, 10000, &given->time_ms);
	case OPT_TIMEOUT:
		return read_number("--timeout", optarg, 3600,
				   &given->timeout_s);
	case OPT_API:
		return read_api(plan, optarg);
	case OPT_OVER:
		if (!wf_tools_link_parse(optarg, &plan->link.over))
			return 0;
		return complain("--over is node, loopback or veth, not '%s'",
				optarg);
	case OPT_MTU:
		return read_number("--mtu", optarg, 65535, &given->mtu);
	case OPT_MORE:
		return read_number("--more", optarg, WF_TOOLS_MAX_WINDOW,
				   &given->more);
	case OPT_REWRITE:
		plan->rewrite = true;
		return 0;
	case OPT_MEMFD:
		plan->memfd = true;
		return 0;
	case OPT_VERIFY:
		plan->verify = true;
		return 0;
	case OPT_CPUS:
		given->cpus = optarg;
		return 0;
	case OPT_SERVER:
		plan->server = true;
		return 0;
	case OPT_PORT:
		return read_number("--port", optarg, 65535, &given->port);
	case OPT_HOSTS:
		given->hosts = optarg;
		return 0;
	case OPT_SHORT:
		given->brief = true;
		return 0;
	case OPT_JSON:
		plan->json = optarg;
		return 0;
	case OPT_CSV:
		plan->csv = optarg;
		return 0;
	case OPT_SVG:
		plan->svg = optarg;
		return 0;
	default: /* getopt has said what is wrong */
		return -EINVAL;
	}
}

static int read_tests(struct wf_tools_plan *plan, struct given *given, int n,
		      char **words)
{
	unsigned t;
	bool found, any = false;
	int i;

	for (i = 0; i < n; i++) {
		if (!strcmp(words[i], "mpi")) {
			given->mpi = true;
			continue;
		}
		found = false;
		for (t = 0; t < WF_TOOLS_TESTS; t++) {
			if (!wf_tools_test_is(t, words[i]))
				continue;
			plan->tests[t] = true;
			found = true;
		}
		if (found) {
			any = true;
			continue;
		}
		/* Whether it is a host is known when it is looked up. */
		if (given->host || strlen(words[i]) > 253) {
			const char *meant = wf_tools_test_meant(words[i]);

			return complain("'%s' is no test%s", words[i],
					*meant ? meant :
						 "; `weft bench --help` lists "
						 "them");
		}
		given->host = words[i];
	}
	for (t = 0; !any && t < WF_TOOLS_TESTS; t++)
		plan->tests[t] = given->mpi ? t == WF_TOOLS_LATENCY ||
						      t == WF_TOOLS_ALLREDUCE :
					      wf_tools_test_get(t)->messages;
	return 0;
}

static int read_host(struct wf_tools_plan *plan, const struct given *given)
{
	plan->link.host.port = given->port ? (unsigned)given->port :
					     (unsigned)WF_TOOLS_HOST_PORT;
	if (plan->server && given->host)
		return complain("--server waits for others; '%s' is too much",
				given->host);
	if (given->port && !plan->server && !given->host)
		return complain("--port belongs to --server or to a host");
	if (!given->host)
		return 0;
	if (plan->link.over != WF_TOOLS_OVER_NODE)
		return complain("--over is for one host; '%s' is no test",
				given->host);
	plan->link.over = WF_TOOLS_OVER_HOSTS;
	plan->link.host.name = given->host;
	return 0;
}

/* "a,b" as mpirun wants it, a rank on each; --over veth makes two hosts. */
static int read_mpi_hosts(struct wf_tools_plan *plan, const struct given *given)
{
	static char text[600];
	char *comma;

	if (given->mpi && plan->link.over == WF_TOOLS_OVER_VETH) {
		plan->mpi_hosts = WF_TOOLS_MPI_VETH;
		return given->hosts ? complain("--over veth makes two hosts; "
					       "leave --hosts out") :
				      0;
	}
	if (!given->hosts)
		return 0;
	comma = strchr(given->hosts, ',');
	if (!comma || comma == given->hosts || !comma[1] ||
	    strchr(comma + 1, ',') || strchr(given->hosts, ':') ||
	    strlen(given->hosts) > 512)
		return complain("--hosts wants two names like a,b, not '%s'",
				given->hosts);
	if (!given->mpi || given->host)
		return complain("--hosts belongs to mpi, whose ranks mpirun "
				"starts; else name one host where `weft bench "
				"--server` runs");
	snprintf(text, sizeof(text), "%.*s:1,%s:1", (int)(comma - given->hosts),
		 given->hosts, comma + 1);
	plan->mpi_hosts = text;
	return 0;
}

static int choose_cpus(struct wf_tools_plan *plan, const char *text)
{
	cpu_set_t allowed;
	int cpu, n = 0;
	char extra;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return complain("cannot tell which CPUs are allowed: %m");
	if (!text) {
		for (cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++) {
			if (CPU_ISSET(cpu, &allowed))
				plan->cpus[n++] = cpu;
		}
		if (n < 2)
			plan->cpus[1] = plan->cpus[0];
	} else if (sscanf(text, "%d,%d%c", &plan->cpus[0], &plan->cpus[1],
			  &extra) != 2) {
		return complain("--cpus wants two numbers like 0,1, not '%s'",
				text);
	}
	for (n = 0; n < 2; n++) {
		cpu = plan->cpus[n];
		if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed))
			return complain("CPU %d may not be used here; `taskset "
					"-cp $$` shows the allowed ones",
					cpu);
	}
	plan->one_cpu = plan->cpus[0] == plan->cpus[1] &&
			plan->link.over != WF_TOOLS_OVER_HOSTS;
	return 0;
}

/* All tests with sizes except rate. */
static bool has_sizes(const struct wf_tools_plan *plan)
{
	unsigned t;

	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		if (t != WF_TOOLS_RATE && plan->tests[t] &&
		    wf_tools_test_get(t)->axis == WF_TOOLS_AXIS_SIZE)
			return true;
	}
	return false;
}

static int read_counts(const char *option, const char *text, size_t least,
		       size_t most, struct wf_tools_sizes *counts)
{
	int ret = read_sizes(option, text, counts);

	if (!ret && (counts->v[0] < least || counts->v[counts->n - 1] > most))
		return complain("%s takes from %zu to %zu, '%s' has another",
				option, least, most, text);
	return ret;
}

static int fill_sizes(struct wf_tools_plan *plan, const struct given *given)
{
	const char *usual = given->brief ? "8,64,256,1K,4K,64K,1M" :
			    given->mpi	 ? "8-4M" :
					   "1-8M";
	const char *remote = given->brief ? usual : "8-4M";
	const char *rate = given->rate_sizes;
	struct wf_tools_sizes *sizes;
	int ret = 0;
	unsigned t;

	if (!rate && given->sizes && !has_sizes(plan))
		rate = given->sizes;
	for (t = 0; t < WF_TOOLS_TESTS && !ret; t++) {
		const struct wf_tools_test_info *info = wf_tools_test_get(t);

		sizes = &plan->sizes[t];
		if (t == WF_TOOLS_RATE)
			ret = read_sizes("--rate-sizes", rate ? rate : "64",
					 sizes);
		else if (info->axis == WF_TOOLS_AXIS_WORD)
			ret = read_sizes("", "8", sizes);
		else if (info->axis == WF_TOOLS_AXIS_PEERS)
			ret = read_counts("--peers",
					  given->peers ? given->peers :
							 "1,8,64,256",
					  1, WF_TOOLS_MAX_PEERS, sizes);
		else if (info->axis == WF_TOOLS_AXIS_PROCESSES)
			ret = read_counts("--procs",
					  given->procs ? given->procs : "8,64",
					  2, WF_TOOLS_MAX_PROCESSES, sizes);
		else
			ret = read_sizes("--sizes",
					 given->sizes ? given->sizes :
					 info->messages || info->collective ?
							usual :
							remote,
					 sizes);
	}
	return ret;
}

static void fill_names(struct wf_tools_plan *plan, const struct given *given)
{
	plan->n_named = plan->n_against;
	if (!plan->provider)
		plan->provider = given->mpi ? "mpi:weft" : "weft";
	if (given->mpi && !plan->n_against) {
		plan->against[plan->n_against++] =
			plan->mpi_hosts ? "mpi:btl-tcp" : "mpi:vader";
		plan->against[plan->n_against++] = "mpi:tcp";
	}
	if (plan->link.over == WF_TOOLS_OVER_HOSTS && !plan->n_against &&
	    !given->mpi) {
		plan->against[plan->n_against++] = "tcp";
		plan->against[plan->n_against++] = "socket";
		plan->against[plan->n_against++] = "ucx";
	} else if (plan->link.over != WF_TOOLS_OVER_NODE && !plan->n_against) {
		plan->against[plan->n_against++] = "tcp";
		plan->against[plan->n_against++] = "udp;ofi_rxd";
	}
}

static void fill_numbers(struct wf_tools_plan *plan, const struct given *given)
{
	/* Short enough to fit between two task switches of a busy machine. */
	unsigned long ms = given->brief ? 2 : 4;
	unsigned t, usual;

	plan->reps = given->brief ? 5 : 9;
	if (given->reps)
		plan->reps = (unsigned)given->reps;
	if (given->time_ms)
		ms = given->time_ms;
	plan->run_ns = ms * WF_NS_PER_MS;
	plan->link.mtu = given->mtu ? (unsigned)given->mtu : 1500;
	plan->more = (unsigned)given->more;
	plan->timeout_s = given->timeout_s ? (unsigned)given->timeout_s : 10;
	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		usual = wf_tools_test_get(t)->window;
		plan->window[t] = usual && given->window ?
					  (unsigned)given->window :
				  usual ? usual :
					  1;
	}
}

static bool is_mpi(const char *name)
{
	return !strncmp(name, WF_TOOLS_MPI_PREFIX, strlen(WF_TOOLS_MPI_PREFIX));
}

static bool is_ours(const char *name)
{
	return strcmp(name, "ucx") && !is_mpi(name);
}

/* Programs that start their own processes choose the network themselves. */
static int check_link(const struct wf_tools_plan *plan)
{
	bool all = is_ours(plan->provider) && !plan->floor;
	unsigned i;

	if (plan->link.mtu < WF_TOOLS_LINK_MTU_MIN)
		return complain("--mtu wants %d or more",
				WF_TOOLS_LINK_MTU_MIN);
	if (plan->link.over == WF_TOOLS_OVER_NODE ||
	    (plan->mpi_hosts && plan->link.over == WF_TOOLS_OVER_VETH))
		return 0;
	if (plan->link.over == WF_TOOLS_OVER_HOSTS) {
		for (i = WF_TOOLS_IDLE; i < WF_TOOLS_ALLREDUCE; i++) {
			if (plan->tests[i])
				return complain("%s is measured on one host",
						wf_tools_test_get(i)->word);
		}
	}
	for (i = 0; i < plan->n_against; i++)
		all &= is_ours(plan->against[i]) ||
		       (plan->link.over == WF_TOOLS_OVER_HOSTS &&
			!strcmp(plan->against[i], "ucx"));
	if (!all)
		return plan->link.over == WF_TOOLS_OVER_HOSTS ?
			       complain(
				       "with a host leave mpi and --floor out; "
				       "'%s' is taken for one",
				       plan->link.host.name) :
			       complain("--over %s is for libfabric providers; "
					"leave ucx, mpi and --floor out",
					wf_tools_link_word(plan->link.over));
	if (plan->link.over == WF_TOOLS_OVER_VETH &&
	    (plan->tests[WF_TOOLS_CROWD_TIME] ||
	     plan->tests[WF_TOOLS_CROWD_MEMORY]))
		return complain("--over veth joins two processes; crowd has "
				"more, measure it --over loopback");
	return 0;
}

/* mpirun starts its ranks on those hosts; nothing else is started there. */
static int check_mpi_hosts(const struct wf_tools_plan *plan)
{
	bool all = is_mpi(plan->provider) && !plan->floor;
	unsigned i;

	if (!plan->mpi_hosts)
		return 0;
	for (i = 0; i < plan->n_against; i++)
		all &= is_mpi(plan->against[i]);
	return all ? 0 :
		     complain("%s is for mpi:NAME and nothing else",
			      plan->link.over == WF_TOOLS_OVER_VETH ?
				      "mpi --over veth" :
				      "--hosts");
}

/* Checks that need all options. */
static int check_whole(struct wf_tools_plan *plan)
{
	unsigned i;

	if (!*plan->provider || !strcmp(plan->provider, "ucx"))
		return complain("-p wants a libfabric provider; for UCX write "
				"`-p NAME --against ucx`");
	for (i = 0; i < plan->n_against; i++) {
		if (!strcmp(plan->against[i], plan->provider))
			return complain("--against names the provider under "
					"test, '%s'; choose another with -p",
					plan->provider);
	}
	if (plan->tests[WF_TOOLS_ALLREDUCE] && !is_mpi(plan->provider))
		return complain("allreduce is a call of MPI: `weft bench mpi "
				"allreduce`");
	if (plan->rewrite && !plan->tests[WF_TOOLS_LATENCY])
		return complain("--rewrite belongs to the latency test; add "
				"latency");
	return check_mpi_hosts(plan) ? -EINVAL : check_link(plan);
}

int wf_tools_options_read(struct wf_tools_plan *plan, int argc, char **argv)
{
	struct given given = { 0 };
	int c, ret;

	memset(plan, 0, sizeof(*plan));
	plan->tagged = true;
	while ((c = getopt_long(argc, argv, "p:a:fs:w:r:t:h", long_options,
				NULL)) != -1) {
		if (c == 'h') {
			fputs(help_what, stdout);
			fputs(help_more, stdout);
			return 1;
		}
		if (c == '?')
			wf_tools_near_option("weft bench", argv, long_options);
		ret = read_option(plan, &given, c);
		if (ret)
			return ret;
	}
	ret = read_tests(plan, &given, argc - optind, argv + optind);
	if (!ret)
		ret = read_host(plan, &given);
	if (!ret)
		ret = read_mpi_hosts(plan, &given);
	if (!ret)
		ret = fill_sizes(plan, &given);
	fill_names(plan, &given);
	if (!ret)
		ret = choose_cpus(plan, given.cpus);
	if (ret)
		return ret;
	fill_numbers(plan, &given);
	return check_whole(plan);
}
