/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint with 512 peers in a process that may have 1024 descriptors, the usual
 * limit. All exchange messages through rings in both directions at the same time,
 * and no call is refused a descriptor. A program that has hundreds of its own
 * open works as well, as long as one for each peer is left. If not, it reaches as
 * many peers as it can, operations to the others fail with FI_EMFILE, and one line
 * names the limit; the same line comes if peers wait that it cannot accept.
 *
 * Bug: a process without a descriptor accepted nobody, and said nothing of it.
 */
#include "msg_util.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define PROCESSES 4
#define PER_PROCESS 128
#define PEERS (PROCESSES * PER_PROCESS)
#define LIMIT 1024
#define ROUNDS 4

/* The first goes as a letter, the second one makes the ring, the last one is too
 * large for it. */
static const size_t sizes[ROUNDS] = { 8, 64, 3000, 20000 };
#define INJECTED 2 /* rounds */

/* Of those 1024: kept tables of registrations and memory files (64 each, shm/regs.c
 * and shm/mover.c), and what an endpoint and the C library have open. */
#define OTHERS 192

enum how {
	TALK, /* both directions */
	SEND, /* the endpoint sends, and has too few descriptors */
	WAIT, /* its peers send, and it has too few */
};

struct variant {
	const char *name;
	enum how how;
	uint64_t processes; /* each has PER_PROCESS peers */
	int own;  /* descriptors of the program, before it opens the endpoint */
	int left; /* when the endpoint is open; 0: all */
	const char *timeout; /* FI_WEFT_CONNECT_TIMEOUT */
};

static const struct variant variants[] = {
	{ "all descriptors are for peers", TALK, PROCESSES, 0, 0, "60000" },
	{ "the program has 440 of them", TALK, PROCESSES, 440, 0, "60000" },
	{ "too few are left to connect", SEND, 1, 0, 40, "1000" },
	{ "too few are left to accept", WAIT, 1, 0, 2, "60000" },
};

/* WAIT: how many peers send. */
#define SENDERS 4

/* -- refusals: this program has these functions in the place of the C library's */

static atomic_int refused; /* in the process of the one endpoint */

static int counted(long got)
{
	if (got < 0 && (errno == EMFILE || errno == ENFILE))
		refused++;
	return (int)got;
}

int socket(int family, int type, int protocol)
{
	return counted(syscall(SYS_socket, family, type, protocol));
}

int accept4(int fd, struct sockaddr *name, socklen_t *len, int flags)
{
	return counted(syscall(SYS_accept4, fd, name, len, flags));
}

int memfd_create(const char *name, unsigned int flags)
{
	return counted(syscall(SYS_memfd_create, name, flags));
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t got = syscall(SYS_recvmsg, fd, msg, flags);

	refused += got >= 0 && (msg->msg_flags & MSG_CTRUNC);
	return got;
}

/* -- messages in both directions ------------------------------------------------ */

/* One of the two sides of a pair. */
struct talk {
	struct weft_test *from;
	fi_addr_t to;
	uint64_t number; /* of the peer among all */
	uint8_t *in[ROUNDS];
	uint8_t *out;
};

struct side {
	struct talk *talks;
	uint64_t count;
	uint64_t first; /* number */
	bool is_hub;
	struct fid_cq *cq;
	uint64_t sent;
	uint64_t received[ROUNDS];
};

static uint64_t tag_of(const struct talk *talk, uint64_t round)
{
	return talk->number * ROUNDS + round;
}

/* @from_hub: of the message in that direction. */
static uint64_t seed_of(const struct talk *talk, uint64_t round, bool from_hub)
{
	return tag_of(talk, round) * 2 + from_hub;
}

static void expect_all(const struct side *s)
{
	for (uint64_t i = 0; i < s->count; i++) {
		struct talk *talk = &s->talks[i];

		talk->out = msg_alloc(sizes[ROUNDS - 1]);
		for (uint64_t r = 0; r < ROUNDS; r++) {
			talk->in[r] = msg_alloc(sizes[r]);
			CHECK_OK(weft_test_trecv(talk->from, talk->in[r],
						 sizes[r], tag_of(talk, r), 0,
						 talk->in[r]));
		}
	}
}

static void free_all(const struct side *s)
{
	for (uint64_t i = 0; i < s->count; i++) {
		free(s->talks[i].out);
		for (uint64_t r = 0; r < ROUNDS; r++)
			free(s->talks[i].in[r]);
	}
}

static bool take_one(struct side *s)
{
	struct weft_test_comp comp;
	struct talk *talk;
	uint64_t round;

	if (!weft_test_poll(s->cq, &comp))
		return false;
	CHECK_EQ(comp.ret, 1);
	if (comp.entry.flags & FI_SEND) {
		s->sent++;
		return true;
	}
	round = comp.entry.tag % ROUNDS;
	CHECK(comp.entry.tag / ROUNDS - s->first < s->count);
	talk = &s->talks[comp.entry.tag / ROUNDS - s->first];
	CHECK(comp.entry.op_context == talk->in[round]);
	CHECK_EQ(comp.entry.len, sizes[round]);
	CHECK_EQ(comp.src, talk->to);
	CHECK(weft_test_holds(talk->in[round], sizes[round],
			      seed_of(talk, round, !s->is_hub)));
	s->received[round]++;
	return true;
}

static void send_round(struct side *s, uint64_t round)
{
	for (uint64_t i = 0; i < s->count; i++) {
		struct talk *talk = &s->talks[i];

		weft_test_fill(talk->out, sizes[round],
			       seed_of(talk, round, s->is_hub));
		if (round < INJECTED)
			POST(fi_tinject(talk->from->ep, talk->out, sizes[round],
					talk->to, tag_of(talk, round)));
		else
			CHECK_OK(weft_test_tsend(talk->from, talk->out,
						 sizes[round], talk->to,
						 tag_of(talk, round), NULL));
	}
}

static void talk_to_all(struct side *s)
{
	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;

		s->sent = round < INJECTED ? s->count : 0;
		send_round(s, round);
		while (s->sent < s->count || s->received[round] < s->count) {
			take_one(s);
			CHECK(weft_test_ms() < end);
		}
	}
}

/* -- peers ---------------------------------------------------------------------- */

static const struct weft_test_opts opts = {
	.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE,
	.one_cq = true,
	.rx_size = ROUNDS * PEERS,
	.tx_size = PEERS,
};

struct host_arg {
	const struct variant *v;
	uint64_t first;
};

/* As many of the messages arrive as the sender says that it could send. */
static void take_sent(struct side *s, struct weft_test_line *line)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS, sent;

	CHECK(weft_test_get_driving(line, &sent, sizeof(sent)));
	while (s->received[1] < sent) {
		take_one(s);
		CHECK(weft_test_ms() < end);
	}
}

static void host(struct weft_test_line *line, void *arg)
{
	static struct weft_test eps[PER_PROCESS];
	static struct talk talks[PER_PROCESS];
	const struct host_arg *a = arg;
	struct side side = {
		.talks = talks,
		.count = PER_PROCESS,
		.first = a->first,
	};
	struct weft_test_opts mine = opts;
	uint8_t name[WEFT_TEST_NAME_MAX];
	char mark;

	mine.rx_size = mine.tx_size = 64;
	for (uint64_t i = 0; i < PER_PROCESS; i++) {
		weft_test_open(&eps[i], &mine);
		weft_test_put(line, eps[i].name, sizeof(eps[i].name));
		mine.sibling = &eps[0];
		mine.same_cqs = true;
		talks[i].from = &eps[i];
		talks[i].number = a->first + i;
	}
	CHECK(weft_test_get(line, name, sizeof(name)));
	for (uint64_t i = 0; i < PER_PROCESS; i++)
		talks[i].to = weft_test_insert(&eps[0], name);
	side.cq = eps[0].txcq;
	expect_all(&side);
	if (a->v->how == TALK)
		talk_to_all(&side);
	else if (a->v->how == SEND)
		take_sent(&side, line);
	else
		for (uint64_t i = 0; i < SENDERS; i++)
			CHECK_OK(weft_test_tsend(&eps[i], talks[i].out, 64,
						 talks[i].to,
						 tag_of(&talks[i], 1), NULL));
	weft_test_put(line, "d", 1);
	CHECK(weft_test_get_driving(line, &mark, 1));
	for (uint64_t i = PER_PROCESS; i--;)
		weft_test_close(&eps[i]);
	free_all(&side);
}

/* -- the one with 512 peers -------------------------------------------------------- */

struct hub_arg {
	const struct variant *v;
	struct weft_test_line *hosts;
};

static void limit_descriptors(void)
{
	const struct rlimit limit = { .rlim_cur = LIMIT, .rlim_max = LIMIT };

	CHECK_SYS(setrlimit(RLIMIT_NOFILE, &limit));
}

/* Opens @count files for the program, or as many as it may have. Their numbers,
 * which do not end before -1. */
static void hold(int *files, int count)
{
	for (int i = 0; i < LIMIT; i++)
		files[i] = i < count ? open("/dev/null", O_RDONLY) : -1;
}

static void give_back(int *files, int most)
{
	int count = 0;

	while (count < LIMIT && files[count] >= 0)
		count++;
	for (int i = 0; i < most && count > 0; i++) {
		close(files[--count]);
		files[count] = -1;
	}
}

static void meet_all(struct weft_test *t, struct talk *talks,
		     const struct hub_arg *a)
{
	uint8_t name[WEFT_TEST_NAME_MAX];

	for (uint64_t i = 0; i < a->v->processes * PER_PROCESS; i++) {
		CHECK(weft_test_get(&a->hosts[i / PER_PROCESS], name,
				    sizeof(name)));
		talks[i].from = t;
		talks[i].number = i;
		talks[i].to = weft_test_insert(t, name);
	}
	for (uint64_t i = 0; i < a->v->processes; i++)
		weft_test_put(&a->hosts[i], t->name, sizeof(t->name));
}

/* Each pair has a ring for each direction, one mapping at least, and one socket. */
static void check_resources(const struct weft_test_traces *before, int own)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	struct weft_test_traces now;

	do {
		CHECK(weft_test_ms() < end);
		weft_test_progress_for(5);
		weft_test_look(&now);
	} while (now.descriptors > before->descriptors + PEERS + OTHERS);
	CHECK(now.rings >= before->rings + PEERS);
	printf("%d descriptors, %d refused\n", now.descriptors, refused);
	/* A program with many of its own may be refused one: weft then gives back
	 * those that it can do without. */
	CHECK(own || !refused);
}

/* Returns a file that gets all writes to standard error from now on; the file
 * is deleted. */
static FILE *catch_lines(int *real)
{
	FILE *lines = tmpfile();

	CHECK(lines);
	*real = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	CHECK_SYS(*real);
	CHECK_SYS(dup2(fileno(lines), STDERR_FILENO));
	return lines;
}

static int count_lines(FILE *lines, const char *containing)
{
	char line[1024];
	int count = 0;

	rewind(lines);
	while (fgets(line, sizeof(line), lines))
		count += strstr(line, containing) != NULL;
	return count;
}

static void expect_line(FILE *lines)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;

	while (!count_lines(lines, "RLIMIT_NOFILE")) {
		CHECK(weft_test_ms() < end);
		weft_test_progress_for(20);
	}
}

/* Some are reached. How many that are is told to their host. */
static void send_to_all(struct side *s, struct weft_test_line *host)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	uint64_t reached = 0;

	for (uint64_t i = 0; i < s->count; i++) {
		weft_test_fill(s->talks[i].out, sizes[1],
			       seed_of(&s->talks[i], 1, true));
		CHECK_OK(weft_test_tsend(s->talks[i].from, s->talks[i].out,
					 sizes[1], s->talks[i].to,
					 tag_of(&s->talks[i], 1), NULL));
	}
	for (uint64_t done = 0; done < s->count;) {
		struct weft_test_comp comp;

		CHECK(weft_test_ms() < end);
		if (!weft_test_poll(s->cq, &comp))
			continue;
		done++;
		CHECK(comp.ret == 1 || comp.ret == -FI_EMFILE);
		reached += comp.ret == 1;
	}
	printf("%llu of %llu were reached\n", (unsigned long long)reached,
	       (unsigned long long)s->count);
	CHECK(reached > 0 && reached < s->count && refused);
	weft_test_put(host, &reached, sizeof(reached));
}

static void do_without(struct side *s, const struct hub_arg *a, int *files)
{
	int real;
	FILE *lines = catch_lines(&real);

	hold(files, LIMIT);
	give_back(files, a->v->left);

	if (a->v->how == SEND)
		send_to_all(s, a->hosts);
	expect_line(lines);
	CHECK_EQ(count_lines(lines, "RLIMIT_NOFILE"), 1);
	give_back(files, LIMIT);
	CHECK_SYS(dup2(real, STDERR_FILENO));
	close(real);
	fclose(lines);
}

static void hub(struct weft_test_line *line, void *arg)
{
	static struct talk talks[PEERS];
	static int files[LIMIT], more[LIMIT];
	const struct hub_arg *a = arg;
	struct side side = {
		.talks = talks,
		.count = a->v->processes * PER_PROCESS,
		.is_hub = true,
	};
	struct weft_test_traces before, opened;
	struct weft_test t;
	char mark;

	(void)line;
	limit_descriptors();
	weft_test_look(&before);
	hold(files, a->v->own);
	weft_test_open(&t, &opts);
	weft_test_look(&opened);
	meet_all(&t, talks, a);
	side.cq = t.txcq;
	expect_all(&side);
	if (a->v->how == TALK) {
		talk_to_all(&side);
		check_resources(&opened, a->v->own);
	} else {
		do_without(&side, a, more);
	}
	for (uint64_t i = 0; i < a->v->processes; i++)
		CHECK(weft_test_get_driving(&a->hosts[i], &mark, 1));
	weft_test_close(&t);
	free_all(&side);
	give_back(files, LIMIT);
	weft_test_check_clean(&before);
	for (uint64_t i = 0; i < a->v->processes; i++)
		weft_test_put(&a->hosts[i], "g", 1);
}

static void run_variant(struct weft_test_line *line, void *arg)
{
	struct weft_test_line hosts[PROCESSES], one;
	struct host_arg of_host = { .v = arg };
	struct hub_arg of_hub = { .v = arg, .hosts = hosts };
	uint64_t begin;

	(void)line;
	setenv("FI_WEFT_CONNECT_TIMEOUT", of_host.v->timeout, 1);
	weft_test_load();
	begin = weft_test_ms();
	for (uint64_t i = 0; i < of_host.v->processes; i++) {
		of_host.first = i * PER_PROCESS;
		weft_test_fork(&hosts[i], host, &of_host);
	}
	weft_test_fork(&one, hub, &of_hub);
	weft_test_join(&one);
	for (uint64_t i = 0; i < of_host.v->processes; i++)
		weft_test_join(&hosts[i]);
	printf("%s: %llu ms\n", of_host.v->name,
	       (unsigned long long)(weft_test_ms() - begin));
}

int main(void)
{
	struct rlimit limit;

	weft_test_begin(110);
	CHECK_SYS(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	CHECK_SYS(setrlimit(RLIMIT_NOFILE, &limit));
	/* The processes of the peers. */
	if (limit.rlim_cur < 8 * PER_PROCESS + OTHERS) {
		printf("only %llu descriptors are allowed here\n",
		       (unsigned long long)limit.rlim_cur);
		exit(77);
	}
	for (size_t i = 0; i < COUNT_OF(variants); i++) {
		struct variant v = variants[i];

		msg_run_apart(run_variant, &v);
	}
	return 0;
}
