/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named AVs that processes share: readers find, and send to, the addresses that
 * the creator inserts and removes, whatever happens to either process. AVs with
 * other names, of other users, and files that only look like an AV are not
 * found.
 */
#include "common/fabric.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prov/av_shared_defs.h"

#define NOBODY 65534
#define CHANGES 100000

static char names[2][80]; /* unique to this run */

static const struct weft_test_opts creator = {
	.caps = FI_MSG | FI_SOURCE | FI_SHARED_AV,
	.av_name = names[0],
};
static const struct weft_test_opts reader = {
	.caps = FI_MSG | FI_SOURCE | FI_SHARED_AV,
	.av_name = names[0],
	.av_flags = FI_READ,
};
static const struct weft_test_opts usual = { .caps = FI_MSG | FI_SOURCE };

static struct sockaddr_in numbered(uint16_t number)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	in.sin_addr.s_addr = htonl(0x0a000000u + number);
	in.sin_port = htons(number);
	return in;
}

/* Returns the number of the address that @av holds there, 0 if none. */
static int at(struct fid_av *av, fi_addr_t addr)
{
	struct sockaddr_in in;
	size_t len = sizeof(in);

	if (fi_av_lookup(av, addr, &in, &len))
		return 0;
	CHECK_EQ(len, sizeof(in));
	CHECK_EQ(in.sin_family, AF_INET);
	CHECK_EQ(ntohl(in.sin_addr.s_addr), 0x0a000000u + ntohs(in.sin_port));
	return ntohs(in.sin_port);
}

/* The same for addresses longer than a word: the number is in all parts. */
static struct sockaddr_in6 numbered6(uint16_t number)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(number) };

	in6.sin6_addr.s6_addr16[0] = htons(0xfd00);
	in6.sin6_addr.s6_addr16[2] = htons(number);
	in6.sin6_addr.s6_addr16[7] = htons(number);
	return in6;
}

static int at6(struct fid_av *av, fi_addr_t addr)
{
	struct sockaddr_in6 in6, whole;
	size_t len = sizeof(in6);

	if (fi_av_lookup(av, addr, &in6, &len))
		return 0;
	CHECK_EQ(len, sizeof(in6));
	whole = numbered6(ntohs(in6.sin6_port));
	CHECK(!memcmp(&in6, &whole, sizeof(in6)));
	return ntohs(in6.sin6_port);
}

static fi_addr_t insert(struct fid_av *av, uint16_t number)
{
	struct sockaddr_in in = numbered(number);
	fi_addr_t addr;

	CHECK_EQ(fi_av_insert(av, &in, 1, &addr, 0, NULL), 1);
	return addr;
}

static int open_av(struct weft_test *t, const char *name, uint64_t flags,
		   struct fid_av **av)
{
	struct fi_av_attr attr = { .name = name, .flags = flags };

	return fi_av_open(t->domain, &attr, av, NULL);
}

/* -- inserting, removing, reading ------------------------------------------ */

static void reads_all(struct weft_test_line *line, void *arg)
{
	struct sockaddr_in in = numbered(9);
	fi_addr_t first = 0, new;
	struct weft_test t;

	(void)arg;
	weft_test_open(&t, &reader);
	CHECK(t.map);
	for (fi_addr_t i = 0; i < 3; i++) {
		CHECK_EQ(t.map[i], i);
		CHECK_EQ(at(t.av, i), 1 + i);
	}
	CHECK_EQ(t.map[3], FI_ADDR_NOTAVAIL);
	CHECK_EQ(at(t.av, 3), 0);
	CHECK_EQ(at(t.av, FI_ADDR_UNSPEC), 0);
	/* Only the creator changes it. */
	CHECK_EQ(fi_av_insert(t.av, &in, 1, &new, 0, NULL), -FI_EACCES);
	CHECK_EQ(fi_av_insertsvc(t.av, "127.0.0.1", "9", &new, 0, NULL),
		 -FI_EACCES);
	CHECK_EQ(fi_av_remove(t.av, &first, 1, 0), -FI_EACCES);
	weft_test_sync(line); /* many more are inserted ... */
	weft_test_sync(line);
	for (fi_addr_t i = 0; i < 2000; i++) {
		CHECK_EQ(t.map[i], i);
		CHECK_EQ(at(t.av, i), 1 + i);
	}
	weft_test_sync(line); /* ... two are removed ... */
	weft_test_sync(line);
	CHECK_EQ(at(t.av, 0), 0);
	CHECK_EQ(at(t.av, 1700), 0);
	CHECK_EQ(t.map[1700], FI_ADDR_NOTAVAIL);
	CHECK_EQ(at(t.av, 1), 2);
	weft_test_sync(line); /* ... and one is replaced. */
	weft_test_sync(line);
	CHECK_EQ(t.map[0], 0);
	CHECK_EQ(at(t.av, 0), 1701);
	weft_test_close(&t);
}

static void test_reading(void)
{
	struct weft_test_line line;
	fi_addr_t gone[2] = { 0, 1700 };
	struct weft_test t;

	weft_test_open(&t, &creator);
	CHECK(t.info->caps & FI_SHARED_AV);
	CHECK(t.info->domain_attr->caps & FI_SHARED_AV);
	CHECK(t.map);
	CHECK_EQ(t.map[0], FI_ADDR_NOTAVAIL);
	for (uint16_t i = 0; i < 3; i++)
		CHECK_EQ(insert(t.av, (uint16_t)(1 + i)), i);
	weft_test_fork(&line, reads_all, NULL);
	weft_test_sync(&line);
	for (uint16_t i = 3; i < 2000; i++)
		CHECK_EQ(insert(t.av, (uint16_t)(1 + i)), i);
	CHECK_EQ(t.map[1999], 1999);
	weft_test_sync(&line);
	weft_test_sync(&line);
	CHECK_OK(fi_av_remove(t.av, gone, 2, 0));
	weft_test_sync(&line);
	weft_test_sync(&line);
	CHECK_EQ(insert(t.av, 1701), 0);
	weft_test_sync(&line);
	weft_test_join(&line);
	weft_test_close(&t);
}

/* One index has two addresses in turn, and no reader ever sees half of each. */
static void reads_on(struct weft_test_line *line, void *arg)
{
	struct weft_test t;
	int seen[3] = { 0 };
	char stop;

	(void)arg;
	weft_test_open(&t, &reader);
	weft_test_sync(line);
	do {
		int number = at6(t.av, 0);

		CHECK(number == 0 || number == 111 || number == 60000);
		seen[number == 0 ? 0 : number == 111 ? 1 : 2]++;
		/* On a busy machine the writer may finish before the reader
		 * looks. */
	} while (recv(line->fd, &stop, 1, MSG_DONTWAIT) < 1);
	printf("seen %d and %d times\n", seen[1], seen[2]);
	weft_test_close(&t);
}

static void test_changing(void)
{
	struct sockaddr_in6 in6[2] = { numbered6(111), numbered6(60000) };
	struct weft_test_line line;
	fi_addr_t first = 0;
	struct weft_test t;

	weft_test_open(&t, &creator);
	weft_test_fork(&line, reads_on, NULL);
	weft_test_sync(&line);
	for (int i = 0; i < CHANGES; i++) {
		CHECK_EQ(fi_av_insert(t.av, &in6[i & 1], 1, NULL, 0, NULL), 1);
		if (i + 1 < CHANGES)
			CHECK_OK(fi_av_remove(t.av, &first, 1, 0));
	}
	weft_test_put(&line, "x", 1);
	weft_test_join(&line);
	weft_test_close(&t);
}

/* -- endpoints ------------------------------------------------------------- */

static void send_number(struct weft_test *t, fi_addr_t to, int number)
{
	struct fi_context context;

	CHECK_OK(weft_test_send(t, &number, sizeof(number), to, &context));
	weft_test_wait_ok(t->txcq, &context);
}

static fi_addr_t take_number(struct weft_test *t, int number)
{
	struct weft_test_comp comp;
	struct fi_context context;
	int got = 0;

	CHECK_OK(weft_test_recv(t, &got, sizeof(got), &context));
	weft_test_wait(t->rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK_EQ(got, number);
	return comp.src;
}

static void talks(struct weft_test_line *line, void *arg)
{
	struct weft_test t;

	(void)arg;
	weft_test_open(&t, &reader);
	weft_test_put(line, t.name, sizeof(t.name));
	/* To the first address, then to its successor at the same index. */
	send_number(&t, t.map[0], 1);
	weft_test_sync(line);
	weft_test_progress();
	send_number(&t, t.map[0], 2);
	/* The sender is unknown at first, and later has a name, although the
	 * connection is the same. */
	CHECK_EQ(take_number(&t, 3), FI_ADDR_NOTAVAIL);
	weft_test_sync(line);
	CHECK_EQ(take_number(&t, 4), 1);
	weft_test_sync(line);
	CHECK_EQ(take_number(&t, 5), FI_ADDR_NOTAVAIL);
	weft_test_sync(line);
	weft_test_close(&t);
}

static void test_talking(void)
{
	struct weft_test t, first, second;
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct weft_test_line line;
	fi_addr_t index, child;

	weft_test_open(&t, &creator);
	weft_test_open(&first, &usual);
	weft_test_open(&second, &usual);
	index = weft_test_know(&t, &first);
	CHECK_EQ(index, 0);
	weft_test_fork(&line, talks, NULL);
	CHECK(weft_test_get(&line, name, sizeof(name)));
	take_number(&first, 1);
	CHECK_OK(fi_av_remove(t.av, &index, 1, 0));
	CHECK_EQ(weft_test_know(&t, &second), index);
	weft_test_sync(&line);
	take_number(&second, 2);
	child = weft_test_insert(&first, name);
	send_number(&first, child, 3);
	weft_test_sync(&line);
	index = weft_test_know(&t, &first);
	CHECK_EQ(index, 1);
	send_number(&first, child, 4);
	weft_test_sync(&line);
	CHECK_OK(fi_av_remove(t.av, &index, 1, 0));
	send_number(&first, child, 5);
	weft_test_sync(&line);
	weft_test_join(&line);
	weft_test_close(&second);
	weft_test_close(&first);
	weft_test_close(&t);
}

/* -- names ----------------------------------------------------------------- */

static void test_names(void)
{
	struct fi_av_attr attr = { .name = names[0],
				   .flags = FI_READ,
				   .map_addr = &attr };
	struct fid_av *a, *b, *read_a, *read_b, *none;
	char name[256];
	struct weft_test t;

	weft_test_open(&t, &usual);
	/* The AV does not exist: an error, and the attributes are unchanged. */
	CHECK_EQ(fi_av_open(t.domain, &attr, &none, NULL), -FI_ENOENT);
	CHECK(attr.map_addr == &attr);
	CHECK_EQ(open_av(&t, NULL, FI_READ, &none), -FI_EINVAL);
	CHECK_EQ(open_av(&t, "", 0, &none), -FI_EINVAL);
	CHECK_EQ(open_av(&t, "", FI_READ, &none), -FI_EINVAL);
	memset(name, 'n', sizeof(name));
	name[201] = 0;
	CHECK_EQ(open_av(&t, name, 0, &none), -FI_EINVAL);
	CHECK_EQ(open_av(&t, name, FI_READ, &none), -FI_EINVAL);
	name[200] = 0;
	CHECK_EQ(open_av(&t, name, FI_READ, &none), -FI_ENOENT);
	CHECK_OK(open_av(&t, name, 0, &none));
	CHECK_OK(fi_close(&none->fid));
	/* Two names are two AVs, also if one name is a prefix of the other. */
	snprintf(names[1], sizeof(names[1]), "%.64s/x y", names[0]);
	CHECK_OK(open_av(&t, names[0], 0, &a));
	CHECK_OK(open_av(&t, names[1], FI_EVENT, &b));
	CHECK_OK(fi_close(&b->fid));
	CHECK_OK(open_av(&t, names[1], 0, &b));
	insert(a, 1);
	insert(b, 2);
	CHECK_OK(open_av(&t, names[0], FI_READ, &read_a));
	CHECK_OK(open_av(&t, names[1], FI_READ, &read_b));
	CHECK_EQ(at(read_a, 0), 1);
	CHECK_EQ(at(read_b, 0), 2);
	/* Only one creator at a time. */
	CHECK_EQ(open_av(&t, names[0], 0, &none), -FI_EADDRINUSE);
	CHECK_OK(fi_close(&a->fid));
	CHECK_EQ(open_av(&t, names[0], FI_READ, &none), -FI_ENOENT);
	CHECK_OK(open_av(&t, names[0], 0, &a));
	CHECK_EQ(at(read_a, 0), 1); /* it still is the AV that was opened */
	CHECK_EQ(at(a, 0), 0);
	CHECK_OK(fi_close(&read_a->fid));
	CHECK_OK(fi_close(&read_b->fid));
	CHECK_OK(fi_close(&a->fid));
	CHECK_OK(fi_close(&b->fid));
	weft_test_close(&t);
}

/* -- endings --------------------------------------------------------------- */

static void creates(struct weft_test_line *line, void *arg)
{
	struct weft_test t;
	char stop;

	(void)arg;
	weft_test_open(&t, &creator);
	insert(t.av, 77);
	weft_test_sync(line);
	weft_test_get(line, &stop, 1);
}

static void test_killed(void)
{
	struct weft_test_line line;
	struct weft_test t;
	struct fid_av *av;

	weft_test_fork(&line, creates, NULL);
	weft_test_sync(&line);
	weft_test_open(&t, &reader);
	CHECK_EQ(open_av(&t, names[0], 0, &av), -FI_EADDRINUSE);
	weft_test_kill(&line);
	CHECK_EQ(at(t.av, 0), 77);
	CHECK_EQ(t.map[0], 0);
	weft_test_progress();
	CHECK_EQ(open_av(&t, names[0], FI_READ, &av), -FI_ENOENT);
	CHECK_OK(open_av(&t, names[0], 0, &av));
	CHECK_OK(fi_close(&av->fid));
	weft_test_close(&t);
}

/* A child of the creator can neither write the AV nor keep it alive. */
static void test_forked(void)
{
	struct sockaddr_in in = numbered(5);
	struct weft_test t;
	struct fid_av *av;
	int status, ends[2];
	pid_t pid;
	char c;

	weft_test_open(&t, &usual);
	CHECK_OK(open_av(&t, names[0], 0, &av));
	insert(av, 1);
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	pid = fork();
	CHECK_SYS(pid);
	if (!pid) {
		close(ends[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CHECK_EQ(at(av, 0), 1);
		CHECK_EQ(fi_av_insert(av, &in, 1, NULL, 0, NULL), 0);
		CHECK_EQ(write(ends[0], "c", 1), 1);
		CHECK_EQ(read(ends[0], &c, 1), 0);
		_exit(0);
	}
	close(ends[0]);
	CHECK_EQ(read(ends[1], &c, 1), 1);
	CHECK_EQ(insert(av, 2), 1);
	CHECK_OK(fi_close(&av->fid));
	CHECK_EQ(open_av(&t, names[0], FI_READ, &av), -FI_ENOENT);
	CHECK_OK(open_av(&t, names[0], 0, &av));
	CHECK_OK(fi_close(&av->fid));
	close(ends[1]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	weft_test_close(&t);
}

/* -- strangers ------------------------------------------------------------- */

static void other_user(struct weft_test_line *line, void *arg)
{
	struct weft_test t;
	struct fid_av *av;

	(void)arg;
	CHECK_SYS(setgroups(0, NULL));
	CHECK_SYS(setgid(NOBODY));
	CHECK_SYS(setuid(NOBODY));
	weft_test_open(&t, &usual);
	CHECK_EQ(open_av(&t, names[0], FI_READ, &av), -FI_ENOENT);
	/* For this user the same name means another AV. */
	CHECK_OK(open_av(&t, names[0], 0, &av));
	CHECK_OK(open_av(&t, names[1], 0, &av));
	weft_test_sync(line);
	weft_test_sync(line);
}

static void test_other_user(void)
{
	struct weft_test_line line;
	struct weft_test t;
	struct fid_av *av;

	if (geteuid()) {
		printf("other users: not tried, needs root\n");
		return;
	}
	snprintf(names[1], sizeof(names[1]), "%.64s-other", names[0]);
	weft_test_open(&t, &creator);
	weft_test_fork(&line, other_user, NULL);
	weft_test_sync(&line);
	CHECK_EQ(open_av(&t, names[1], FI_READ, &av), -FI_ENOENT);
	weft_test_sync(&line);
	weft_test_join(&line);
	weft_test_close(&t);
}

/* A file of the right name with arbitrary contents. */
static char *forge(int *fd, size_t bytes, int seals)
{
	char file[100];
	char *base;

	snprintf(file, sizeof(file), WF_AV_SHARED_FILE "%s", names[0]);
	*fd = memfd_create(file, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK_SYS(*fd);
	CHECK_SYS(ftruncate(*fd, (off_t)bytes));
	CHECK_SYS(fcntl(*fd, F_ADD_SEALS, seals));
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	CHECK(base != MAP_FAILED);
	return base;
}

static void set_header(char *base, uint32_t magic, uint32_t layout)
{
	struct wf_av_shared_header *header = (void *)base;

	header->magic = magic;
	header->layout = layout;
}

static void refuse(struct weft_test *t, size_t bytes, int seals, uint32_t magic,
		   uint32_t layout)
{
	struct fid_av *av;
	char *base;
	int fd;

	base = forge(&fd, bytes, seals);
	set_header(base, magic, layout);
	CHECK_EQ(open_av(t, names[0], FI_READ, &av), -FI_ENOENT);
	munmap(base, bytes);
	close(fd);
}

/* The file may contain anything, and change at any time: a lookup finds an
 * address or none, and endpoints continue to work. */
static void test_hostile(void)
{
	struct wf_av_shared_header *header;
	struct wf_av_shared_slot *slots;
	struct weft_test t, good;
	uint64_t random = 1;
	char *base;
	int fd;

	weft_test_open(&good, &usual);
	refuse(&good, WF_AV_SHARED_BYTES - 4096, F_SEAL_SHRINK,
	       WF_AV_SHARED_MAGIC, WF_AV_SHARED_LAYOUT);
	refuse(&good, WF_AV_SHARED_BYTES, 0, WF_AV_SHARED_MAGIC,
	       WF_AV_SHARED_LAYOUT);
	refuse(&good, WF_AV_SHARED_BYTES, F_SEAL_SHRINK, 0,
	       WF_AV_SHARED_LAYOUT);
	refuse(&good, WF_AV_SHARED_BYTES, F_SEAL_SHRINK, WF_AV_SHARED_MAGIC,
	       WF_AV_SHARED_LAYOUT + 1);

	base = forge(&fd, WF_AV_SHARED_BYTES, F_SEAL_SHRINK);
	set_header(base, WF_AV_SHARED_MAGIC, WF_AV_SHARED_LAYOUT);
	header = (void *)base;
	slots = (void *)(base + WF_AV_SHARED_SLOTS_AT);
	weft_test_open(&t, &reader);
	for (int i = 0; i < 3000; i++) {
		uint32_t at_slot = weft_test_random(&random) % 64;
		struct wf_av_shared_slot *slot = &slots[at_slot];
		struct sockaddr_in in =
			numbered((uint16_t)(1 + weft_test_random(&random) % 8));
		struct sockaddr_storage found;
		size_t len = sizeof(found);

		header->top = weft_test_random(&random) % 128;
		header->changes = weft_test_random(&random);
		slot->used = weft_test_random(&random) % 4;
		slot->seq = weft_test_random(&random) % 3;
		memcpy(slot->addr, &in, sizeof(in)); /* most of them twice */
		if (weft_test_random(&random) % 4 == 0)
			for (size_t j = 0; j < sizeof(slot->addr); j++)
				slot->addr[j] =
					(uint8_t)weft_test_random(&random);
		if (!fi_av_lookup(t.av, at_slot, &found, &len))
			CHECK(found.ss_family == AF_INET ||
			      found.ss_family == AF_INET6);
		weft_test_progress();
	}
	header->top = UINT32_MAX;
	header->changes++;
	CHECK_EQ(at(t.av, WF_AV_SHARED_SLOTS), 0);
	CHECK_EQ(at(t.av, UINT32_MAX), 0);
	weft_test_close(&t);
	munmap(base, WF_AV_SHARED_BYTES);
	close(fd);
	weft_test_close(&good);
}

int main(void)
{
	struct weft_test_traces before, after;
	struct weft_test t;

	weft_test_begin(110);
	snprintf(names[0], sizeof(names[0]), "weft test %d", (int)getpid());
	weft_test_open(&t, &usual); /* allocates what libraries keep for good */
	weft_test_close(&t);
	weft_test_look(&before);
	test_reading();
	test_changing();
	test_talking();
	test_names();
	test_killed();
	test_forked();
	test_other_user();
	test_hostile();
	weft_test_look(&after);
	CHECK_EQ(after.descriptors, before.descriptors);
	return 0;
}
