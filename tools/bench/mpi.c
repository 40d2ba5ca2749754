/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drives a pair of MPI ranks. mpirun closes inherited descriptors, so the ranks
 * open our pipes by their names in /proc; between two commands they sleep
 * there. Between hosts rank 0 has mpirun's input and output instead; --over veth
 * has two hosts that are network namespaces. This file must not tune a transport:
 * it runs what `man weft` shows.
 */
#include "tools/bench/mpi.h"

#include "base/clock.h"
#include "tools/bench/count.h"
#include "tools/bench/process.h"
#include "tools/locate.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ, WRITE };

/* MPI_Finalize and the end of mpirun take some tenths of a second. */
#define GRACE_MS 5000
#define MAX_ARGS 120
/* Variables of a series, each with its value, and one of ours. */
#define MAX_ENV 64

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_all(struct wf_tools_mpi *mpi)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		close_fd(&mpi->orders[i][READ]);
		close_fd(&mpi->orders[i][WRITE]);
		close_fd(&mpi->results[i]);
	}
	close_fd(&mpi->output);
}

void wf_tools_mpi_init(struct wf_tools_mpi *mpi)
{
	memset(mpi, 0, sizeof(*mpi));
	memset(mpi->orders, -1, sizeof(mpi->orders));
	memset(mpi->results, -1, sizeof(mpi->results));
	mpi->output = -1;
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path); /* the others, too, if this one is gone or in use */
	return 0;
}

/*
 * A folder of its own for each mpirun: if two share one, as they do by default,
 * they disturb each other when one ends while the other starts.
 */
static int make_session(struct wf_tools_mpi *mpi)
{
	snprintf(mpi->session, sizeof(mpi->session), "/tmp/weft-bench-XXXXXX");
	if (mkdtemp(mpi->session))
		return 0;
	mpi->session[0] = '\0';
	return -errno;
}

static void remove_session(struct wf_tools_mpi *mpi)
{
	if (mpi->session[0])
		nftw(mpi->session, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	mpi->session[0] = '\0';
}

static int open_pipes(struct wf_tools_mpi *mpi, int output[2])
{
	if (pipe2(mpi->orders[0], O_CLOEXEC) ||
	    pipe2(mpi->orders[1], O_CLOEXEC) ||
	    pipe2(mpi->results, O_CLOEXEC) || pipe2(output, O_CLOEXEC))
		return -errno;
	mpi->output = output[READ];
	fcntl(mpi->output, F_SETFL, O_NONBLOCK);
	return 0;
}

static bool is_own(const char *name)
{
	return !strcmp(name, "vader") || !strcmp(name, "btl-tcp");
}

/* The arguments of Open MPI; ends with NULL. */
static void transport_args(const char *name, char **args)
{
	static char *const vader[] = { "--mca", "pml",	      "ob1", "--mca",
				       "btl",	"vader,self", NULL };
	static char *const tcp[] = { "--mca", "pml",	  "ob1", "--mca",
				     "btl",   "tcp,self", NULL };
	static char *const ofi[] = { "--mca",
				     "pml",
				     "cm",
				     "--mca",
				     "mtl",
				     "ofi",
				     "--mca",
				     "btl",
				     "self",
				     "--mca",
				     "opal_common_ofi_provider_include",
				     NULL };
	char *const *from = !strcmp(name, "vader")   ? vader :
			    !strcmp(name, "btl-tcp") ? tcp :
						       ofi;

	while (*from)
		*args++ = *from++;
	if (!is_own(name))
		*args++ = (char *)name;
	*args = NULL;
}

struct command {
	char *argv[MAX_ARGS + 1];
	unsigned n;
	char names[1024]; /* of variables */
	size_t used;
};

/* Variables that do not fit are left out; nobody has that many. */
static void add(struct command *c, const char *word)
{
	if (c->n < MAX_ARGS)
		c->argv[c->n++] = (char *)word;
}

static void add_all(struct command *c, char *const *words)
{
	while (*words)
		add(c, *words++);
}

static void export_name(struct command *c, const char *name, size_t len)
{
	if (c->used + len + 1 > sizeof(c->names))
		return;
	add(c, "-x");
	add(c, memcpy(c->names + c->used, name, len));
	c->names[c->used + len] = '\0';
	c->used += len + 1;
}

static bool is_set_by(const char *const *env, const char *name, size_t len)
{
	for (; env[0]; env += 2) {
		if (strlen(env[0]) == len && !memcmp(env[0], name, len))
			return true;
	}
	return false;
}

/* mpirun passes on only the variables that are named to ranks on other hosts:
 * the user's, and those that we set. */
static void add_hosts(struct command *c, const struct wf_tools_plan *plan,
		      const char *const *env)
{
	char **variable;

	add(c, "--host");
	add(c, plan->mpi_hosts);
	for (variable = environ; *variable; variable++) {
		size_t len = strcspn(*variable, "=");

		if (!strncmp(*variable, "FI_", 3) &&
		    !is_set_by(env, *variable, len))
			export_name(c, *variable, len);
	}
	for (; env[0]; env += 2) {
		if (env[1] && !strncmp(env[0], "FI_", 3))
			export_name(c, env[0], strlen(env[0]));
	}
}

/* The variables of @env and one more, in @all. */
static const char *const *with_variable(const char *const *env,
					const char *name, const char *value,
					const char *all[MAX_ENV])
{
	unsigned n = 0;

	for (; env[n] && n < MAX_ENV - 3; n += 2) {
		all[n] = env[n];
		all[n + 1] = env[n + 1];
	}
	all[n] = name;
	all[n + 1] = value;
	all[n + 2] = NULL;
	return all;
}

/* Whether the ranks are on hosts that are not ours. */
static bool is_spread(const struct wf_tools_plan *plan)
{
	return plan->mpi_hosts && plan->link.over != WF_TOOLS_OVER_VETH;
}

/*
 * Writes the script that mpirun runs in the place of ssh. It starts mpirun's
 * daemon in the namespace that stands for a host with --over veth, under the
 * name of that host: Open MPI tells hosts apart by name. Our descriptors are
 * the only names that the namespaces have.
 */
static int write_agent(const struct wf_tools_mpi *mpi,
		       const struct wf_tools_plan *plan)
{
	char path[sizeof(mpi->session) + 16];
	FILE *file;
	int bad;

	snprintf(path, sizeof(path), "%s/agent", mpi->session);
	file = fopen(path, "we");
	if (!file)
		return -errno;
	fprintf(file,
		"host=$1\n"
		"shift\n"
		"case $host in\n"
		"*0) fd=%d ;;\n"
		"*) fd=%d ;;\n"
		"esac\n"
		"exec nsenter --net=/proc/%d/fd/$fd unshare --uts \\\n"
		"\tsh -c 'hostname \"$1\"; shift; exec sh -c \"$*\"' sh "
		"\"$host\" \"$@\"\n",
		plan->link.namespaces[0], plan->link.namespaces[1],
		(int)getpid());
	bad = ferror(file);
	return fclose(file) || bad ? -EIO : 0;
}

/*
 * Ranks on this host open our pipes by name; ranks on other hosts get commands
 * from rank 0, which has mpirun's input and output.
 */
static pid_t start_mpirun(struct wf_tools_mpi *mpi,
			  const struct wf_tools_plan *plan, const char *name,
			  const char *const *env, int output)
{
	static char *const start[] = { "mpirun",    "--allow-run-as-root",
				       "--bind-to", "none",
				       "-np",	    "2",
				       NULL };
	/* Other hosts have no such folder: only mpirun itself learns of it then. */
	static char *const local[] = { "--oversubscribe", "--mca",
				       "orte_tmpdir_base", NULL };
	const char *variables[MAX_ENV];
	bool veth = plan->link.over == WF_TOOLS_OVER_VETH;
	char program[PATH_MAX], cpus[32], paths[3][64], agent[96];
	const int fds[] = { mpi->orders[0][READ], mpi->orders[1][READ],
			    mpi->results[WRITE] };
	char *transport[MAX_ARGS];
	struct command c = { .n = 0 };
	struct wf_tools_process process = {
		.path = "mpirun",
		.argv = c.argv,
		.cpu = plan->cpus[0],
		.fds = { -1, output, output, -1, -1, -1 },
		.env = env,
	};
	unsigned i;

	if (wf_tools_locate_mpi(program, sizeof(program)))
		return -ENOENT;
	add_all(&c, start);
	if (plan->mpi_hosts) {
		add_hosts(&c, plan, env);
		process.fds[0] = fds[0];
		process.fds[1] = fds[2];
	}
	if (veth) {
		snprintf(agent, sizeof(agent), "sh %s/agent", mpi->session);
		add(&c, "--mca");
		add(&c, "plm_rsh_agent");
		add(&c, agent);
		process.netns = plan->link.namespaces[0];
	}
	if (is_spread(plan)) {
		process.env =
			with_variable(env, "TMPDIR", mpi->session, variables);
	} else {
		add_all(&c, local);
		add(&c, mpi->session);
	}
	transport_args(name, transport);
	add_all(&c, transport);
	add(&c, program);
	add(&c, cpus);
	snprintf(cpus, sizeof(cpus), "%d,%d", plan->cpus[0], plan->cpus[1]);
	for (i = 0; i < 3 && !plan->mpi_hosts; i++) {
		snprintf(paths[i], sizeof(paths[i]), "/proc/%d/fd/%d",
			 (int)getpid(), fds[i]);
		add(&c, paths[i]);
	}
	return wf_tools_process_spawn(&process);
}

static int give_up(struct wf_tools_mpi *mpi, int ret, const char *text)
{
	/* Open MPI's own message says more than we can. */
	snprintf(mpi->error, sizeof(mpi->error), "%.130s%s%.180s", text,
		 mpi->said[0] ? ": " : "", mpi->said);
	wf_tools_mpi_stop(mpi);
	return ret;
}

int wf_tools_mpi_start(struct wf_tools_mpi *mpi,
		       const struct wf_tools_plan *plan, const char *name,
		       const char *const *env)
{
	int output[2] = { -1, -1 };
	int ret;

	mpi->hang = false;
	mpi->is_ready = false;
	mpi->error[0] = '\0';
	mpi->said[0] = '\0';
	name += strlen(WF_TOOLS_MPI_PREFIX);
	snprintf(mpi->about, sizeof(mpi->about), "Open MPI, %s%s",
		 is_own(name) ? "pml/ob1 over " : "mtl/ofi over ", name);
	ret = make_session(mpi);
	if (ret)
		return give_up(mpi, ret, "no folder in /tmp");
	if (plan->link.over == WF_TOOLS_OVER_VETH)
		ret = write_agent(mpi, plan);
	if (ret)
		return give_up(mpi, ret, "no file in /tmp");
	ret = open_pipes(mpi, output);
	if (ret)
		return give_up(mpi, ret, "no pipe");
	ret = start_mpirun(mpi, plan, name, env, output[WRITE]);
	close(output[WRITE]);
	if (ret == -ENOENT)
		return give_up(mpi, ret,
			       "weft-bench-mpi is missing: install the package "
			       "of that name, or Open MPI (openmpi-bin and "
			       "libopenmpi-dev) and run `make build`");
	if (ret < 0)
		return give_up(mpi, ret, "mpirun does not start");
	mpi->mpirun = ret;
	/* The daemons of one user share a folder on each host, and fail if two of
	 * them make it at the same time. */
	return is_spread(plan) ? wf_tools_mpi_ready(mpi, plan) : 0;
}

/* Keeps the first lines, without the rules that Open MPI draws. */
static void hear_output(struct wf_tools_mpi *mpi)
{
	char text[1024], *line, *rest = text;
	size_t used;
	ssize_t got;

	got = read(mpi->output, text, sizeof(text) - 1);
	if (got <= 0) {
		if (got == 0)
			close_fd(&mpi->output);
		return;
	}
	text[got] = '\0';
	while ((line = strsep(&rest, "\n"))) {
		used = strlen(mpi->said);
		if (*line && strncmp(line, "---", 3))
			snprintf(mpi->said + used, sizeof(mpi->said) - used,
				 "%s%s", used ? " " : "", line);
	}
}

/* Its output has ended, and so has mpirun. */
static int mpirun_ended(struct wf_tools_mpi *mpi)
{
	char how[48], text[64];
	int status = wf_tools_process_end(mpi->mpirun, GRACE_MS);

	mpi->mpirun = 0;
	wf_tools_process_describe(status, how, sizeof(how));
	snprintf(text, sizeof(text), "mpirun %s", how);
	return give_up(mpi, -ECHILD, text);
}

/* Moves the output of rank 0 to the front: between hosts mpirun may print,
 * too. */
static bool find_word(char *text)
{
	char *line = text;

	while (strncmp(line, "ready ", 6) && strncmp(line, "result ", 7)) {
		line = strchr(line, '\n');
		if (!line)
			return false;
		line++;
	}
	memmove(text, line, strlen(line) + 1);
	return true;
}

/* A line of rank 0. Lines are short and complete: one write, one read. */
static int hear(struct wf_tools_mpi *mpi, const struct wf_tools_plan *plan,
		char *line, size_t len)
{
	uint64_t deadline = wf_base_clock_ns() + plan->timeout_s * WF_NS_PER_S;
	struct pollfd fds[2];
	char text[64];
	ssize_t got;
	int ret;

	for (;;) {
		if (mpi->output < 0)
			return mpirun_ended(mpi);
		fds[0] = (struct pollfd){ mpi->results[READ], POLLIN, 0 };
		fds[1] = (struct pollfd){ mpi->output, POLLIN, 0 };
		ret = wf_tools_process_poll(fds, 2, deadline);
		if (ret == -EINTR)
			return give_up(mpi, ret, "stopped");
		if (ret <= 0) {
			mpi->hang = true;
			snprintf(text, sizeof(text), "no result within %u s",
				 plan->timeout_s);
			return give_up(mpi, -ETIMEDOUT, text);
		}
		if (fds[1].revents)
			hear_output(mpi);
		if (!fds[0].revents)
			continue;
		got = read(mpi->results[READ], line, len - 1);
		if (got <= 0)
			return give_up(mpi, -ECHILD, "rank 0 ended");
		line[got] = '\0';
		if (find_word(line))
			return 0;
	}
}

int wf_tools_mpi_ready(struct wf_tools_mpi *mpi,
		       const struct wf_tools_plan *plan)
{
	char line[128];
	int ret;

	if (mpi->is_ready)
		return 0;
	ret = hear(mpi, plan, line, sizeof(line));
	if (ret)
		return ret;
	if (sscanf(line, "ready %d %d", &mpi->pids[0], &mpi->pids[1]) != 2)
		return give_up(mpi, -EPROTO, "not a word of weft-bench-mpi");
	/* The ranks have opened their ends: now the end of file can be
	 * detected. */
	close_fd(&mpi->orders[0][READ]);
	close_fd(&mpi->orders[1][READ]);
	close_fd(&mpi->results[WRITE]);
	/* On other hosts: no process here has them. */
	if (is_spread(plan))
		memset(mpi->pids, 0, sizeof(mpi->pids));
	mpi->is_ready = true;
	return 0;
}

static int play(void *arg, const struct wf_tools_plan *plan,
		enum wf_tools_test test, size_t size, double count, double *ns)
{
	struct wf_tools_mpi *mpi = arg;
	const char *kind = test == WF_TOOLS_LATENCY   ? "latency" :
			   test == WF_TOOLS_ALLREDUCE ? "allreduce" :
							"stream";
	char order[128], line[128];
	int len, i, ret;

	len = snprintf(order, sizeof(order), "%s %zu %.0f %.0f %u\n", kind,
		       size, count, ceil(count / 8),
		       wf_tools_plan_window(plan, test, size));
	for (i = 0; i < (plan->mpi_hosts ? 1 : 2); i++) {
		if (write(mpi->orders[i][WRITE], order, (size_t)len) != len)
			return give_up(mpi, -EPIPE, "a rank ended");
	}
	ret = hear(mpi, plan, line, sizeof(line));
	if (ret)
		return ret;
	if (sscanf(line, "result %lf", ns) != 1 || !(*ns > 0))
		return give_up(mpi, -EPROTO, "not a word of weft-bench-mpi");
	return 0;
}

int wf_tools_mpi_run(struct wf_tools_mpi *mpi, const struct wf_tools_plan *plan,
		     enum wf_tools_test test, unsigned index, double *ns)
{
	double guess = 1000 + (double)plan->sizes[test].v[index] / 4;

	return wf_tools_count_run(plan, test, index, &mpi->seen[test][index],
				  guess, play, mpi, ns);
}

void wf_tools_mpi_stop(struct wf_tools_mpi *mpi)
{
	unsigned i;

	/* The end of their commands ends the ranks, unless they hang. */
	close_all(mpi);
	for (i = 0; mpi->hang && i < 2; i++) {
		if (mpi->pids[i])
			kill(mpi->pids[i], SIGKILL);
	}
	/* mpirun ends after the ranks, and leaves nothing behind. */
	if (mpi->mpirun)
		wf_tools_process_end(mpi->mpirun, GRACE_MS);
	mpi->mpirun = 0;
	remove_session(mpi);
	mpi->pids[0] = 0;
	mpi->pids[1] = 0;
}
