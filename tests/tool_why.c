/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft why` names the culprit: processes that all receive, or all send, in a
 * circle; one that is stopped, one that computes, one that does not read its
 * completions, one that sent another tag; an address that nobody has. The
 * command is told nothing: it looks at all processes, as a user would.
 */
#include "common/fabric.h"

#include <signal.h>
#include <time.h>

#include "common/tool.h"

#define TEXT_MAX (1 << 18)
#define LARGE (1 << 20)
#define MANY 20000 /* more than a completion queue holds */
#define MOST 3
#define TALK 4 /* messages, more than go without a channel */

enum role {
	RECEIVES, /* a message from the next one, which nobody sends */
	SENDS_LARGE,
	FLOODS,
	NEVER_READS, /* its completions */
	SENDS_TAG_6,
	POLLS,
	COMPUTES,
	SLEEPS, /* in fi_cq_sread(), for a message from the next one */
	TALKS,	/* messages to and from the next one, then it polls */
	TALKS_AND_RECEIVES, /* the same, then receives from anyone */
};

static const struct weft_test_opts opts = {
	.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV,
};
static const struct weft_test_opts sleeping = {
	.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV,
	.wait_obj = FI_WAIT_UNSPEC,
};

/* Until the parent kills us: the peer's device takes some that its endpoint has no
 * room for. */
static void flood(struct weft_test *t, fi_addr_t peer)
{
	uint64_t value = 0;

	for (;;) {
		if (fi_tinject(t->ep, &value, sizeof(value), peer, 5) ==
		    -FI_EAGAIN)
			weft_test_progress();
	}
}

static void receive_many(struct weft_test *t)
{
	static uint64_t value;

	for (int i = 0; i < MANY; i++)
		CHECK_OK(fi_trecv(t->ep, &value, sizeof(value), NULL,
				  FI_ADDR_UNSPEC, 5, 0, NULL));
}

/* All messages have been delivered at the end, so no send waits for a peer by name. */
static void talk(struct weft_test *t, fi_addr_t peer)
{
	uint64_t out = 1, in;

	for (int i = 0; i < TALK; i++) {
		CHECK_OK(weft_test_trecv(t, &in, sizeof(in), 7, 0, NULL));
		CHECK_OK(weft_test_tdeliver(t, &out, sizeof(out), peer, 7,
					    NULL));
		weft_test_wait_ok(t->txcq, NULL);
		weft_test_wait_ok(t->rxcq, NULL);
	}
}

static void act(enum role role, struct weft_test *t, fi_addr_t peer)
{
	static uint8_t large[LARGE];
	struct fi_cq_tagged_entry entry;
	uint64_t value = 0;

	switch (role) {
	case SLEEPS:
	case RECEIVES:
		CHECK_OK(fi_trecv(t->ep, large, sizeof(large), NULL, peer, 5, 0,
				  NULL));
		while (role == SLEEPS)
			fi_cq_sread(t->rxcq, &entry, 1, NULL, -1);
		break;
	case SENDS_LARGE:
		CHECK_OK(weft_test_tsend(t, large, sizeof(large), peer, 5,
					 NULL));
		break;
	case FLOODS:
		flood(t, peer);
		break;
	case NEVER_READS:
		receive_many(t);
		break;
	case SENDS_TAG_6:
		CHECK_OK(weft_test_tsend(t, &value, sizeof(value), peer, 6,
					 NULL));
		break;
	case TALKS:
	case TALKS_AND_RECEIVES:
		talk(t, peer);
		if (role == TALKS_AND_RECEIVES)
			CHECK_OK(weft_test_trecv(t, large, sizeof(large), 5, 0,
						 NULL));
		break;
	case COMPUTES:
		for (;;)
			__asm__ volatile("" ::: "memory");
	case POLLS:
		break;
	}
}

static void actor(struct weft_test_line *line, void *arg)
{
	enum role role = *(enum role *)arg;
	struct weft_test t;
	fi_addr_t peer;
	char end;

	weft_test_open(&t, role == SLEEPS ? &sleeping : &opts);
	peer = weft_test_meet(&t, line);
	act(role, &t, peer);
	if (role >= TALKS)
		weft_test_put(line, &role, 1);
	weft_test_get_driving(line, &end, 1);
}

struct play {
	int count;
	struct weft_test_line lines[MOST];
};

/* Each knows the next one; the last one the first, or @name. */
static void begin(struct play *play, int count, enum role *roles,
		  const uint8_t *name)
{
	uint8_t names[MOST][WEFT_TEST_NAME_MAX];

	play->count = count;
	for (int i = 0; i < count; i++)
		weft_test_fork(&play->lines[i], actor, &roles[i]);
	for (int i = 0; i < count; i++)
		CHECK(weft_test_get(&play->lines[i], names[i],
				    sizeof(names[i])));
	for (int i = 0; i < count; i++)
		weft_test_put(&play->lines[i],
			      name ? name : names[(i + 1) % count],
			      sizeof(names[i]));
}

static void end(struct play *play)
{
	for (int i = 0; i < play->count; i++)
		weft_test_kill(&play->lines[i]);
}

static int why(const char *arguments, char *text)
{
	char command[300];

	snprintf(command, sizeof(command), "why %s", arguments);
	return weft_test_tool(command, text, TEXT_MAX);
}

/* The first culprit, in JSON: its reason and processes. */
static bool names_culprit(const char *json, const char *reason, pid_t *pids,
			  int count)
{
	const char *at = strstr(json, "\"reason\": ");
	const char *list = at ? strstr(at, "\"pids\": [") : NULL;
	const char *stop = list ? strchr(list, ']') : NULL;
	char key[64];

	snprintf(key, sizeof(key), "\"reason\": \"%s\"", reason);
	if (!stop || strncmp(at, key, strlen(key)))
		return false;
	for (int i = 0; i < count; i++) {
		const char *found;

		snprintf(key, sizeof(key), " %d", (int)pids[i]);
		found = strstr(list, key);
		if (!found || found > stop)
			return false;
	}
	return true;
}

static const char *missing(const char *text, const char *const *words)
{
	while (*words && strstr(text, *words))
		words++;
	return *words;
}

/* Until the command blames @reason and @pids, and what it says in words holds
 * all of @words: waits of all processes must have become old enough. */
static void expect(const char *reason, pid_t *pids, int count,
		   const char *const *words)
{
	static char json[TEXT_MAX], text[TEXT_MAX];
	uint64_t give_up = weft_test_ms() + 60000;
	const struct timespec pause = { 0, 100000000 };

	for (;;) {
		int code = why("--json -t 300ms", json);

		if (code == 3 && names_culprit(json, reason, pids, count) &&
		    why("-t 300ms", text) == 3 && !missing(text, words))
			return;
		if (weft_test_ms() > give_up)
			FAIL("not %s, or no '%s': exit code %d\n%s\n%s", reason,
			     missing(text, words), code, json, text);
		nanosleep(&pause, NULL);
	}
}

/* -- the cases ---------------------------------------------------------------- */

static void test_both_receive(void)
{
	enum role roles[] = { RECEIVES, RECEIVES };
	const char *words[] = { "2 processes wait for each other",
				"waits to receive a message with tag 0x5 from",
				NULL };
	struct play play;

	begin(&play, 2, roles, NULL);
	expect("cycle", (pid_t[]){ play.lines[0].pid, play.lines[1].pid }, 2,
	       words);
	end(&play);
}

static void test_three_send(void)
{
	enum role roles[] = { SENDS_LARGE, SENDS_LARGE, SENDS_LARGE };
	const char *words[] = { "3 processes wait for each other",
				"sends 1.0 MiB with tag 0x5 to",
				"waits for a matching receive there", NULL };
	struct play play;

	begin(&play, 3, roles, NULL);
	expect("cycle",
	       (pid_t[]){ play.lines[0].pid, play.lines[1].pid,
			  play.lines[2].pid },
	       3, words);
	end(&play);
}

/* The chain: the first waits for the second, which waits for one that is
 * stopped. */
static void test_stopped(void)
{
	enum role roles[] = { RECEIVES, SENDS_LARGE, POLLS };
	const char *words[] = { "is stopped by a signal", "kill -CONT",
				"2 processes wait for it", NULL };
	struct play play;

	begin(&play, 3, roles, NULL);
	CHECK_SYS(kill(play.lines[2].pid, SIGSTOP));
	expect("stopped", &play.lines[2].pid, 1, words);
	end(&play);
}

static void test_computes(void)
{
	enum role roles[] = { SLEEPS, COMPUTES };
	const char *words[] = { "makes no progress", "sleeps until a peer",
				NULL };
	struct play play;

	begin(&play, 2, roles, NULL);
	expect("no_progress", &play.lines[1].pid, 1, words);
	end(&play);
}

static void test_full_queue(void)
{
	enum role roles[] = { FLOODS, NEVER_READS };
	const char *words[] = { "does not read a completion queue",
				weft_test_by_packets() ?
					"the peer has not acknowledged" :
					"waits for room in the peer's ring",
				NULL };
	struct play play;

	begin(&play, 2, roles, NULL);
	expect("full_cq", &play.lines[1].pid, 1, words);
	end(&play);
}

static void test_other_tag(void)
{
	enum role roles[] = { RECEIVES, SENDS_TAG_6 };
	const char *words[] = { "has not sent the message with tag 0x5",
				"has a message of 8 bytes with tag 0x6",
				"that no receive takes", NULL };
	struct play play;

	begin(&play, 2, roles, NULL);
	expect("not_sent", &play.lines[1].pid, 1, words);
	end(&play);
}

static void test_no_receive(void)
{
	enum role roles[] = { SENDS_LARGE, POLLS };
	const char *words[] = { "has posted no receive for the message with "
				"tag 0x5",
				NULL };
	struct play play;

	begin(&play, 2, roles, NULL);
	expect("not_received", &play.lines[1].pid, 1, words);
	end(&play);
}

static void test_nobody(void)
{
	enum role roles[] = { SENDS_LARGE };
	const char *words[] = { "No endpoint on this host has the address "
				"127.0.0.1:9",
				"nobody answers there", NULL };
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct play play;

	weft_test_name_of_port(name, 9);
	begin(&play, 1, roles, name);
	expect("nobody", NULL, 0, words);
	end(&play);
}

/* Receives from anyone name no peer. A bug: the one that waits was blamed, and the
 * one that was stopped was not mentioned. */
static void begin_talk(struct play *play)
{
	enum role roles[] = { TALKS_AND_RECEIVES, TALKS };
	char mark;

	begin(play, 2, roles, NULL);
	for (int i = 0; i < 2; i++)
		CHECK(weft_test_get(&play->lines[i], &mark, 1));
}

/* Until the command says all of @words and none of @absent: a busy machine may
 * keep a process from making progress for a while. */
static void expect_text(const char *arguments, const char *const *words,
			const char *const *absent)
{
	static char text[TEXT_MAX];
	uint64_t give_up = weft_test_ms() + 60000;
	const struct timespec pause = { 0, 100000000 };

	for (;;) {
		bool right = why(arguments, text) == 3 && !missing(text, words);

		for (int i = 0; absent[i]; i++)
			right &= !strstr(text, absent[i]);
		if (right)
			return;
		if (weft_test_ms() > give_up)
			FAIL("weft why %s: %s", arguments, text);
		nanosleep(&pause, NULL);
	}
}

static void test_anyone_stopped(void)
{
	const char *words[] = { "suspect",
				"is stopped by a signal",
				"kill -CONT",
				"waits for a message from anyone, perhaps from "
				"it: ",
				weft_test_by_packets() ? "" :
							 "they share memory",
				NULL };
	const char *absent[] = { "culprit", "idle", NULL };
	struct play play;
	char arguments[64];

	begin_talk(&play);
	CHECK_SYS(kill(play.lines[1].pid, SIGSTOP));
	expect("stopped", &play.lines[1].pid, 1, words);
	/* Nobody else is to blame, and who asks for the one that waits learns of
	 * the other. */
	snprintf(arguments, sizeof(arguments), "-t 300ms %d",
		 (int)play.lines[0].pid);
	expect_text(arguments, words, absent);
	end(&play);
}

/* Nothing is known to be wrong with a process that it talks to. */
static void test_anyone_idle(void)
{
	const char *words[] = { "idle", "waits for a message from anyone",
				NULL };
	const char *json[] = { "\"culprits\": []", "\"idle\": [",
			       "\"reason\": \"anyone\"", NULL };
	const char *absent[] = { "culprit", "suspect", NULL };
	const char *none[] = { NULL };
	struct play play;

	begin_talk(&play);
	expect_text("-t 300ms", words, absent);
	expect_text("--json -t 300ms", json, none);
	end(&play);
}

/* A process that waits for nothing is not blamed, and asking for one process
 * leaves others out. */
static void test_quiet(void)
{
	enum role roles[] = { POLLS, POLLS };
	static char text[TEXT_MAX];
	char arguments[64];
	struct play play;

	begin(&play, 2, roles, NULL);
	CHECK_EQ(why("", text), 0);
	CHECK(strstr(text, "Nothing waits for longer than 1.0 s."));
	snprintf(arguments, sizeof(arguments), "--all %d",
		 (int)play.lines[0].pid);
	CHECK_EQ(why(arguments, text), 0);
	snprintf(arguments, sizeof(arguments), "pid %d ",
		 (int)play.lines[0].pid);
	CHECK(strstr(text, arguments));
	snprintf(arguments, sizeof(arguments), "pid %d ",
		 (int)play.lines[1].pid);
	CHECK(!strstr(text, arguments));
	end(&play);
	CHECK_EQ(why("2>/dev/null", text), 1);
	/* A bug: without an endpoint there was no document. */
	CHECK_EQ(why("--json 2>/dev/null", text), 1);
	CHECK(strstr(text, "\"culprits\": []"));
	CHECK_EQ(why("1x 2>/dev/null", text), 2);
	CHECK_EQ(why("--longer-than nothing 2>/dev/null", text), 2);
}

int main(void)
{
	weft_test_begin(280);
	weft_test_load();
	test_quiet();
	test_both_receive();
	test_three_send();
	test_stopped();
	test_anyone_stopped();
	test_anyone_idle();
	test_computes();
	test_full_queue();
	test_other_tag();
	test_no_receive();
	test_nobody();
	return 0;
}
