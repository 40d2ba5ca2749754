/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that use another layout version, or send invalid data, as connecting
 * and as listening side: they are refused with an answer or an error, no
 * descriptor is kept, and other peers are served as before.
 */
#include "common/fabric.h"
#include "common/raw.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define REGION wf_shm_region_bytes(WEFT_TEST_RAW_SLOTS, WEFT_TEST_RAW_LINES)
#define ANSWER_MS 10000

struct place {
	uint16_t endpoint; /* port of the endpoint under test */
	uint16_t own;	   /* port of the peer that this test plays */
};

/* -- as the one who connects ----------------------------------------------- */

/* Sends @hello with a descriptor and expects to be refused with @status. */
static void refused(const struct place *place, const void *hello, size_t len,
		    int fd, int fds, int status)
{
	int sock = weft_test_raw_connect(place->endpoint);
	struct wf_shm_welcome welcome = { 0 };

	weft_test_raw_send(sock, hello, len, fd, fds);
	CHECK(weft_test_raw_recv(sock, &welcome, sizeof(welcome), ANSWER_MS) >=
	      (int)sizeof(welcome.greeting));
	CHECK_EQ(welcome.greeting.magic, WF_SHM_MAGIC);
	CHECK_EQ(welcome.greeting.layout, WF_SHM_LAYOUT);
	CHECK_EQ(welcome.greeting.status, status);
	/* ... and the endpoint closes the connection. */
	CHECK_EQ(weft_test_raw_recv(sock, &welcome, sizeof(welcome), ANSWER_MS),
		 0);
	close(sock);
}

static void bad_hellos(const struct place *place)
{
	struct wf_shm_hello good = weft_test_raw_hello(place->own), bad;
	int memfd = weft_test_raw_memfd(REGION, SEALS);

	bad = good;
	bad.greeting.layout++;
	refused(place, &bad, sizeof(bad), memfd, 1, EPROTO);
	/* A later version may send more or fewer bytes than we know. */
	refused(place, &bad, sizeof(bad.greeting), memfd, 1, EPROTO);
	refused(place, &bad, sizeof(bad.greeting), -1, 0, EPROTO);
	bad = good;
	bad.greeting.magic ^= 1;
	refused(place, &bad, sizeof(bad), memfd, 1, EPROTO);
	refused(place, &good, 1, memfd, 1, EPROTO);
	refused(place, &good, sizeof(good.greeting), memfd, 1, EPROTO);
	refused(place, &good, sizeof(good) - 1, memfd, 1, EPROTO);
	refused(place, &good, sizeof(good), -1, 0, EPROTO);
	bad = good;
	memset(bad.addr, 0xee, sizeof(bad.addr));
	refused(place, &bad, sizeof(bad), memfd, 1, EPROTO);
	for (int log2 = 0; log2 < 256; log2++) {
		bad = good;
		bad.slots_log2 = (uint8_t)log2;
		if (log2 != WEFT_TEST_RAW_SLOTS)
			refused(place, &bad, sizeof(bad), memfd, 1, EPROTO);
		bad = good;
		bad.lines_log2 = (uint8_t)log2;
		if (log2 != WEFT_TEST_RAW_LINES)
			refused(place, &bad, sizeof(bad), memfd, 1, EPROTO);
	}
	close(memfd);
}

static void bad_descriptors(const struct place *place)
{
	struct wf_shm_hello hello = weft_test_raw_hello(place->own);
	int ends[2], fd;

	fd = weft_test_raw_memfd(REGION, 0); /* could be shrunk under us */
	refused(place, &hello, sizeof(hello), fd, 1, EPROTO);
	close(fd);
	fd = weft_test_raw_memfd(REGION - 4096, SEALS);
	refused(place, &hello, sizeof(hello), fd, 1, EPROTO);
	close(fd);
	fd = weft_test_raw_memfd(REGION, 0);
	CHECK_EQ(pwrite(fd, "\0\0", 2, 4), 2); /* layout 0 in the header */
	CHECK_SYS(fcntl(fd, F_ADD_SEALS, SEALS));
	refused(place, &hello, sizeof(hello), fd, 1, EPROTO);
	close(fd);
	CHECK_SYS(pipe(ends));
	refused(place, &hello, sizeof(hello), ends[0], 1, EPROTO);
	refused(place, &hello, sizeof(hello), ends[0], 100, EPROTO);
	close(ends[0]);
	close(ends[1]);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	CHECK_SYS(fd);
	refused(place, &hello, sizeof(hello), fd, 1, EPROTO);
	close(fd);
}

/* Only the first of many descriptors is kept, and only while connected. */
static void many_descriptors(const struct place *place)
{
	static const int counts[] = { 2, 4, 5, 253 };
	struct wf_shm_hello hello = weft_test_raw_hello(place->own);
	int memfd = weft_test_raw_memfd(REGION, SEALS);

	for (int i = 0; i < 4; i++) {
		int sock = weft_test_raw_connect(place->endpoint);
		struct wf_shm_welcome welcome = { 0 };

		weft_test_raw_send(sock, &hello, sizeof(hello), memfd,
				   counts[i]);
		CHECK_EQ(weft_test_raw_recv(sock, &welcome, sizeof(welcome),
					    ANSWER_MS),
			 sizeof(welcome));
		CHECK_EQ(welcome.greeting.status, 0);
		/* A second hello only wakes the endpoint; descriptors that come
		 * with it are not kept. */
		weft_test_raw_send(sock, &hello, sizeof(hello), memfd, 3);
		CHECK_EQ(weft_test_raw_recv(sock, &welcome, sizeof(welcome),
					    100),
			 -1);
		close(sock);
	}
	close(memfd);
}

/* Offers of a second ring (shm/offer.h): of one that is not there, and without the
 * descriptors that belong to it, or with wrong ones. The channel is opened, and
 * the offer is declined. */
static void bad_offers(const struct place *place)
{
	struct wf_shm_hello hello = weft_test_raw_hello(place->own);
	struct wf_shm_header header = {
		.magic = WF_SHM_MAGIC,
		.layout = WF_SHM_LAYOUT,
		.slots_log2 = 8, /* as the endpoint's own */
		.lines_log2 = 10,
	};
	size_t bytes;
	int memfd;

	hello.offers = 1;
	hello.bell = UINT32_MAX;
	hello.slots_log2 = header.slots_log2;
	hello.lines_log2 = header.lines_log2;
	bytes = wf_shm_region_bytes(header.slots_log2, header.lines_log2);
	for (size_t rings = 1; rings < 4; rings++) {
		memfd = weft_test_raw_memfd(rings * bytes, 0);
		CHECK_EQ(pwrite(memfd, &header, sizeof(header), 0),
			 sizeof(header));
		CHECK_SYS(fcntl(memfd, F_ADD_SEALS, SEALS));
		if (rings != 2)
			refused(place, &hello, sizeof(hello), memfd, 3, EPROTO);
		for (int fds = 1; fds < 4 && rings == 2; fds++) {
			int sock = weft_test_raw_connect(place->endpoint);
			struct wf_shm_welcome welcome = { 0 };

			weft_test_raw_send(sock, &hello, sizeof(hello), memfd,
					   fds);
			CHECK_EQ(weft_test_raw_recv(sock, &welcome,
						    sizeof(welcome), ANSWER_MS),
				 sizeof(welcome));
			CHECK_EQ(welcome.greeting.status, 0);
			CHECK_EQ(welcome.declines, 1);
			close(sock);
		}
		close(memfd);
	}
}

/* Bug: the descriptor of an empty message was kept. */
static void empty_message(const struct place *place)
{
	int sock = weft_test_raw_connect(place->endpoint);
	int memfd = weft_test_raw_memfd(REGION, SEALS);
	char byte;

	weft_test_raw_send(sock, &byte, 0, memfd, 1);
	CHECK_EQ(weft_test_raw_recv(sock, &byte, 1, ANSWER_MS), 0);
	close(sock);
	close(memfd);
}

/* A connection without a hello is closed after a while. */
static void silent_guests(const struct place *place)
{
	int socks[20];
	char byte;

	for (int i = 0; i < 20; i++)
		socks[i] = weft_test_raw_connect(place->endpoint);
	CHECK_EQ(weft_test_raw_recv(socks[0], &byte, 1, 100), -1);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(weft_test_raw_recv(socks[i], &byte, 1, ANSWER_MS), 0);
		close(socks[i]);
	}
}

/* Claims to be the endpoint's own process and has it read at an arbitrary
 * address. Bug: the endpoint read its own memory there and crashed. */
static void false_self(const struct place *place)
{
	struct wf_shm_hello hello = weft_test_raw_hello(place->own);
	struct wf_shm_welcome welcome;
	struct weft_test_raw raw;
	struct wf_shm_slot *slot;
	char byte;

	CHECK(weft_test_raw_open(&raw, place->endpoint, &hello, &welcome));
	weft_test_raw_close(&raw);
	hello.process = welcome.process;
	hello.probe_addr = welcome.probe_addr;
	hello.probe_value = welcome.probe_value;
	CHECK(weft_test_raw_open(&raw, place->endpoint, &hello, &welcome));
	slot = weft_test_raw_slot(&raw, 0);
	slot->tag = 77;
	slot->parked = (struct wf_shm_parked){
		.total = 100000,
		.op = 0,
		.iov_count = 1,
		.addr = 64,
	};
	weft_test_raw_publish(slot, 0, 0, WF_SHM_KIND_PARKED,
			      WF_SHM_SLOT_TAGGED);
	/* A slot of no known kind ends the channel. */
	weft_test_raw_publish(weft_test_raw_slot(&raw, 1), 1, 0, 99, 0);
	CHECK_EQ(weft_test_raw_recv(raw.sock, &byte, 1, ANSWER_MS), 0);
	weft_test_raw_close(&raw);
}

/* A build without guard pages announces the address of an ordinary word: its
 * memory is not touched, because nothing would prove that its pid is still its
 * own. */
static void without_guard(const struct place *place)
{
	struct wf_shm_hello hello = weft_test_raw_hello(place->own);
	static uint64_t probe[WF_SHM_GUARD_BYTES / 8]
		__attribute__((aligned(WF_SHM_GUARD_BYTES)));
	uint64_t end = weft_test_ms() + ANSWER_MS;
	struct wf_shm_welcome welcome;
	const struct wf_shm_reply *reply;
	struct weft_test_raw raw;
	struct wf_shm_slot *slot;

	probe[0] = hello.process;
	hello.probe_addr = (uint64_t)(uintptr_t)probe;
	hello.probe_value = probe[0];
	hello.greeting.features &= ~WF_SHM_FEATURE_GUARD;
	CHECK(weft_test_raw_open(&raw, place->endpoint, &hello, &welcome));
	CHECK(welcome.greeting.features & WF_SHM_FEATURE_GUARD);
	CHECK_EQ(welcome.probe_addr % WF_SHM_GUARD_BYTES, 0);
	slot = weft_test_raw_slot(&raw, 0);
	slot->tag = 78;
	slot->parked = (struct wf_shm_parked){
		.total = sizeof(probe),
		.op = 0,
		.iov_count = 1,
		.addr = (uint64_t)(uintptr_t)probe,
	};
	weft_test_raw_publish(slot, 0, 0, WF_SHM_KIND_PARKED,
			      WF_SHM_SLOT_TAGGED);
	reply = (const struct wf_shm_reply *)(raw.base +
					      wf_shm_replies_at(
						      WEFT_TEST_RAW_SLOTS,
						      WEFT_TEST_RAW_LINES));
	while (!atomic_load(&reply->seq))
		CHECK(weft_test_ms() < end);
	CHECK_EQ(reply->kind, WF_SHM_REPLY_STREAM);
	weft_test_raw_close(&raw);
}

static void connector(struct weft_test_line *line, void *arg)
{
	const struct place *place = arg;

	(void)line;
	bad_hellos(place);
	bad_descriptors(place);
	many_descriptors(place);
	bad_offers(place);
	empty_message(place);
	silent_guests(place);
	false_self(place);
	without_guard(place);
}

/* -- as the one who is connected to ----------------------------------------- */

struct reply {
	int len; /* 0: closes the connection */
	int status;
	int err; /* error of the sender's completion */
	struct wf_shm_greeting greeting;
};

#define GREETING(magic_, layout_)                                              \
	{                                                                      \
		.magic = (magic_), .layout = (layout_),                        \
		.size = sizeof(struct wf_shm_welcome)                          \
	}

static const struct reply replies[] = {
	{ sizeof(struct wf_shm_welcome), 0, EPROTO,
	  GREETING(WF_SHM_MAGIC, WF_SHM_LAYOUT + 1) },
	{ sizeof(struct wf_shm_greeting), EPROTO, EPROTO,
	  GREETING(WF_SHM_MAGIC, WF_SHM_LAYOUT + 1) },
	{ sizeof(struct wf_shm_welcome), 0, EPROTO,
	  GREETING(0, WF_SHM_LAYOUT) },
	{ sizeof(struct wf_shm_greeting), 0, EPROTO,
	  GREETING(WF_SHM_MAGIC, WF_SHM_LAYOUT) },
	{ 3, 0, EPROTO, GREETING(WF_SHM_MAGIC, WF_SHM_LAYOUT) },
	/* Bug: a negative error in a completion. */
	{ sizeof(struct wf_shm_welcome), -5, EPROTO,
	  GREETING(WF_SHM_MAGIC, WF_SHM_LAYOUT) },
	{ sizeof(struct wf_shm_welcome), EACCES, FI_EACCES,
	  GREETING(WF_SHM_MAGIC, WF_SHM_LAYOUT) },
	{ sizeof(struct wf_shm_welcome), ENOMEM, FI_ENOMEM,
	  GREETING(WF_SHM_MAGIC, WF_SHM_LAYOUT) },
	/* Bug: if the peer closed every connection, the sender tried for
	 * ever. */
	{ 0, 0, FI_ECONNRESET, GREETING(0, 0) },
};

#define REPLIES (sizeof(replies) / sizeof(replies[0]))

static void answer(int listening, const struct reply *reply)
{
	struct wf_shm_welcome welcome = { .greeting = reply->greeting };
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	struct wf_shm_hello hello;

	CHECK_SYS(fd);
	CHECK(weft_test_raw_recv(fd, &hello, sizeof(hello), ANSWER_MS) >= 0);
	welcome.greeting.status = reply->status;
	if (reply->len)
		send(fd, &welcome, (size_t)reply->len, MSG_NOSIGNAL);
	close(fd);
}

/* Gives every peer the answer that the parent chose last. */
static void listener(struct weft_test_line *line, void *arg)
{
	const struct place *place = arg;
	int sock = weft_test_raw_listen(place->own);
	struct pollfd pfds[2] = {
		{ .fd = line->fd, .events = POLLIN },
		{ .fd = sock, .events = POLLIN },
	};
	uint32_t which = 0;

	weft_test_put(line, &which, 1);
	for (;;) {
		CHECK_SYS(poll(pfds, 2, -1));
		/* The parent chooses before any peer connects. */
		if (pfds[0].revents)
			CHECK(weft_test_get(line, &which, sizeof(which)));
		else
			answer(sock, &replies[which]);
	}
}

static void bad_answers(struct weft_test *t, const struct place *place)
{
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct weft_test_traces before, after;
	struct weft_test_line line;
	fi_addr_t addr;
	char ready;

	weft_test_fork(&line, listener, (void *)(uintptr_t)place);
	CHECK(weft_test_get(&line, &ready, 1));
	weft_test_name_of_port(name, place->own);
	addr = weft_test_insert(t, name);
	weft_test_look(&before);
	for (uint32_t i = 0; i < REPLIES; i++) {
		struct fi_context context;

		weft_test_put(&line, &i, sizeof(i));
		CHECK_OK(weft_test_tsend(t, &i, sizeof(i), addr, 1, &context));
		weft_test_wait_err(t->txcq, &context, replies[i].err);
		weft_test_progress_for(2);
		weft_test_look(&after);
		CHECK_EQ(after.descriptors, before.descriptors);
		CHECK_EQ(after.rings, before.rings);
	}
	CHECK_OK(fi_av_remove(t->av, &addr, 1, 0));
	weft_test_kill(&line);
}

int main(void)
{
	struct weft_test_traces before;
	struct weft_test_line line;
	struct weft_test t, good;
	static uint8_t large[100000];
	struct fi_context rx;
	struct weft_test_comp comp;
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct place place;
	fi_addr_t addr, known;
	char byte;

	setenv("FI_WEFT_CONNECT_TIMEOUT", "200", 1);
	weft_test_begin(100);
	weft_test_open(&t, NULL);
	place.own = weft_test_port(&t);
	weft_test_close(&t);
	weft_test_open(&t, NULL);
	weft_test_open(&good, NULL);
	addr = weft_test_know(&t, &good);
	place.endpoint = weft_test_port(&t);
	weft_test_exchange(&t, addr, &good, 100, 1);
	weft_test_look(&before);

	CHECK_OK(weft_test_trecv(&t, large, sizeof(large), 77, 0, &rx));
	CHECK_OK(weft_test_trecv(&t, large, sizeof(large), 78, 0, &rx));
	/* Only peers with an address are let offer something. */
	weft_test_name_of_port(name, place.own);
	known = weft_test_insert(&t, name);
	weft_test_fork(&line, connector, &place);
	CHECK(!weft_test_get_driving(&line, &byte, 1)); /* until it ends */
	weft_test_join(&line);
	CHECK_OK(fi_av_remove(t.av, &known, 1, 0));
	/* The messages of the peer that claims to be us, and of the peer
	 * without a guard page. */
	for (int i = 0; i < 2; i++) {
		weft_test_wait(t.rxcq, &comp);
		CHECK(comp.ret < 0);
	}
	weft_test_progress_for(5);
	weft_test_check_clean(&before);
	weft_test_exchange(&t, addr, &good, 100, 2);

	bad_answers(&t, &place);
	weft_test_progress_for(5);
	weft_test_check_clean(&before);
	weft_test_exchange(&t, addr, &good, 100000, 3);
	weft_test_close(&t);
	weft_test_close(&good);
	return 0;
}
