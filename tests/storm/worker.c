/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One process of the storm. It sends numbered messages to all others, reads and
 * writes their memory, takes what comes, and notes everything on the board. It
 * uses libfabric only. Whatever is wrong ends it with FAIL(), which the parent
 * notices.
 */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>

#include "common/fabric.h"
#include "common/net.h"
#include "storm.h"

#define RECEIVES 6
#define MULTIS 2
#define MULTI_SIZE 65536
#define KEY 0x77
#define PROVE_TRIES 5

enum what { AN_OP, A_RECEIVE, A_MULTI };

/* First in everything that is a context. */
struct head {
	struct fi_context2 context;
	enum what what;
};

struct op {
	struct head head;
	struct storm_op *note; /* on the board */
	struct storm_entry *entry;
	uint64_t expect_seed; /* of what is read */
	uint64_t fetched;
	uint64_t operand;
	uint8_t *buf;
};

struct receive {
	struct head head;
	bool posted;
	uint64_t post;
	uint8_t *buf;
};

/* This struct holds what this process knows of a peer's memory. */
struct slot {
	bool busy;  /* an operation on it is under way */
	bool known; /* what was written is still there ... */
	uint32_t life;
	uint64_t seed;
	uint32_t len;
};

struct worker {
	int me;
	uint64_t random;
	struct weft_test t;
	fi_addr_t addr[STORM_WORKERS];
	struct fid_mr *mr;
	uint8_t *memory; /* a slot for each peer, then a counter for each */
	struct op ops[STORM_OPS];
	struct receive receives[RECEIVES];
	struct receive multis[MULTIS];
	struct slot slots[STORM_WORKERS];
	/* The peer's life to which a message was surely delivered. Until then
	 * an ordinary one may end in a ring that the former life left. */
	uint32_t sure_life[STORM_WORKERS];
	uint64_t posts;
	bool sleeps;		   /* waits in fi_cq_sread() */
	bool one_by_one;	   /* reads one completion at a time */
	int proved[STORM_WORKERS]; /* attempts; -1: arrived */
	int descriptors;
};

static struct worker w;

static struct storm_worker *mine(void)
{
	return &storm_board->worker[w.me];
}

static uint32_t below(uint32_t n)
{
	return (uint32_t)(storm_random(&w.random) % n);
}

/* A call of libfabric: faults happen inside, and the parent sees that it is
 * under way. */
#define CALL(call)                                                             \
	({                                                                     \
		__typeof__(call) ret_;                                         \
                                                                               \
		mine()->doing = #call;                                         \
		mine()->beat_ms = storm_ms();                                  \
		storm_wild();                                                  \
		ret_ = (call);                                                 \
		storm_calm();                                                  \
		mine()->doing = NULL;                                          \
		ret_;                                                          \
	})

/* -- receiving -------------------------------------------------------------- */

static uint64_t tag_of(int from, int to, uint32_t life, uint32_t seq)
{
	return (uint64_t)from << 56 | (uint64_t)to << 48 |
	       (uint64_t)(life & 0xffff) << 32 | seq;
}

/* A neighbour of the same kind and the same two lives was taken by an earlier
 * receive if its number is lower, by a later one if it is higher. */
static void check_order(const struct storm_pair *pair,
			const struct storm_entry *e, int step)
{
	for (uint32_t i = 1; i <= STORM_WINDOW; i++) {
		uint32_t seq = e->seq + (uint32_t)step * i;
		const struct storm_entry *other = &pair->ring[seq % STORM_RING];

		if (other->seq != seq || other->from_life != e->from_life)
			return;
		if (other->kind != e->kind || other->got != 1 ||
		    other->got_life != e->got_life)
			continue;
		if (step < 0 ? other->post > e->post : other->post < e->post)
			FAIL("messages %u and %u overtook each other: taken by "
			     "receives %llu and %llu",
			     e->seq, seq, (unsigned long long)e->post,
			     (unsigned long long)other->post);
		return;
	}
}

/* A message has come, whole or (@err) not. */
static void take(uint64_t tag, const void *buf, size_t len, uint64_t post,
		 enum storm_kind kind, int err)
{
	int from = (int)(tag >> 56), to = (int)(tag >> 48 & 0xff);
	uint32_t seq = (uint32_t)tag;
	struct storm_pair *pair;
	struct storm_entry *e;

	if (from >= storm_board->workers || to != w.me) {
		if (err) {
			mine()->unknown++; /* which message failed */
			return;
		}
		FAIL("a message with tag %llx that nobody sent here",
		     (unsigned long long)tag);
	}
	pair = &storm_board->pair[from][to];
	e = &pair->ring[seq % STORM_RING];
	if (e->seq > seq)
		return; /* of a former life, and forgotten */
	if (e->seq != seq || !e->fate || e->kind != kind)
		FAIL("message %u of %d was never sent", seq, from);
	if (err) {
		e->got += 100;
		return;
	}
	if (len != e->len)
		FAIL("message %u of %d has %zu bytes, not %u", seq, from, len,
		     e->len);
	if (!weft_test_holds(buf, len, tag))
		FAIL("message %u of %d, %zu bytes, kind %d: not what was sent",
		     seq, from, len, (int)kind);
	e->got_life = (uint16_t)mine()->life;
	e->post = post;
	if (e->got++)
		FAIL("message %u of %d, %zu bytes, kind %d, came %d times", seq,
		     from, len, (int)kind, (int)e->got);
	check_order(pair, e, -1);
	check_order(pair, e, 1);
	mine()->received++;
}

static void post_receives(void)
{
	for (int i = 0; i < RECEIVES; i++) {
		struct receive *r = &w.receives[i];

		if (r->posted)
			continue;
		r->post = w.posts + 1;
		if (CALL(fi_trecv(w.t.ep, r->buf, STORM_LARGEST, NULL,
				  FI_ADDR_UNSPEC, 0, ~0ull, r)))
			return; /* again later, in this order */
		r->posted = true;
		w.posts++;
	}
	for (int i = 0; i < MULTIS; i++) {
		struct receive *r = &w.multis[i];
		struct iovec iov = { r->buf, MULTI_SIZE };
		struct fi_msg msg = { .msg_iov = &iov,
				      .iov_count = 1,
				      .addr = FI_ADDR_UNSPEC,
				      .context = r };

		if (r->posted)
			continue;
		r->post = w.posts + 1;
		if (CALL(fi_recvmsg(w.t.ep, &msg,
				    FI_MULTI_RECV | FI_COMPLETION)))
			return;
		r->posted = true;
		w.posts++;
	}
}

/* -- operations ------------------------------------------------------------- */

static struct op *free_op(void)
{
	for (int i = 0; i < STORM_OPS; i++)
		if (!w.ops[i].note->used)
			return &w.ops[i];
	return NULL;
}

static void note(struct op *op, enum storm_kind kind, int peer, uint32_t seq,
		 uint32_t len)
{
	op->note->kind = kind;
	op->note->peer = (uint8_t)peer;
	op->note->peer_life = (uint16_t)storm_board->worker[peer].life;
	op->note->seq = seq;
	op->note->len = len;
	op->note->since_ms = storm_ms();
	op->note->used = true;
}

/* 1 B to 256 KiB, small ones more often. */
static uint32_t draw_len(uint32_t max)
{
	uint32_t bits = below(19), len = 1 + below(1u << bits);

	return len > max ? max : len;
}

static ssize_t send_it(struct op *op, const struct storm_entry *e, int peer,
		       uint64_t tag)
{
	uint64_t flags = FI_COMPLETION;
	struct iovec iov = { op->buf, e->len };
	struct fi_msg_tagged tagged = { .msg_iov = &iov,
					.iov_count = 1,
					.addr = w.addr[peer],
					.tag = tag,
					.context = op };
	struct fi_msg msg = { .msg_iov = &iov,
			      .iov_count = 1,
			      .addr = w.addr[peer],
			      .data = tag,
			      .context = op };

	if (e->deliver)
		flags |= FI_DELIVERY_COMPLETE;
	if (e->kind == STORM_TAGGED)
		return CALL(fi_tsendmsg(w.t.ep, &tagged, flags));
	return CALL(fi_sendmsg(w.t.ep, &msg, flags | FI_REMOTE_CQ_DATA));
}

static bool start_send(struct op *op, int peer, enum storm_kind kind)
{
	struct storm_pair *pair = &storm_board->pair[w.me][peer];
	uint32_t seq = pair->next;
	struct storm_entry *e = &pair->ring[seq % STORM_RING];
	uint64_t tag = tag_of(w.me, peer, mine()->life, seq);

	if (seq - pair->oldest >=
	    (peer == storm_board->victim ? STORM_FLOOD : STORM_WINDOW))
		return false;
	e->fate = 0;
	e->seq = seq;
	e->from_life = (uint16_t)mine()->life;
	e->to_life = (uint16_t)storm_board->worker[peer].life;
	e->kind = kind;
	e->deliver = below(2) == 0;
	e->unsure = !e->deliver && e->to_life > 1 &&
		    e->to_life != (uint16_t)w.sure_life[peer];
	e->got = 0;
	if (kind == STORM_TAGGED)
		e->len = draw_len(STORM_LARGEST);
	else
		e->len = draw_len(
			peer == storm_board->victim ? 4 : STORM_SMALLEST_MAX);
	e->since_ms = storm_ms();
	/* The number is taken even if the call fails: a process that is killed
	 * in it does not know. */
	pair->next = seq + 1;
	weft_test_fill(op->buf, e->len, tag);
	op->entry = e;
	note(op, kind, peer, seq, e->len);
	e->fate = STORM_PENDING;
	if (!send_it(op, e, peer, tag))
		return true;
	e->fate = STORM_FAILED;
	op->note->used = false;
	return false;
}

static bool start_write(struct op *op, int peer, struct slot *slot)
{
	uint32_t len = draw_len(STORM_SLOT);
	struct iovec iov = { op->buf, len };
	struct fi_rma_iov rma = { (uint64_t)w.me * STORM_SLOT, len, KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = w.addr[peer],
				  .rma_iov = &rma,
				  .rma_iov_count = 1,
				  .context = op };

	slot->known = false;
	slot->seed = storm_random(&w.random);
	slot->len = len;
	slot->life = storm_board->worker[peer].life;
	weft_test_fill(op->buf, len, slot->seed);
	note(op, STORM_WRITE, peer, 0, len);
	return !CALL(fi_writemsg(w.t.ep, &msg,
				 FI_COMPLETION | FI_DELIVERY_COMPLETE));
}

static bool start_read(struct op *op, int peer, const struct slot *slot)
{
	note(op, STORM_READ, peer, 0, slot->len);
	memset(op->buf, 0, slot->len);
	return !CALL(fi_read(w.t.ep, op->buf, slot->len, NULL, w.addr[peer],
			     (uint64_t)w.me * STORM_SLOT, KEY, op));
}

static bool start_add(struct op *op, int peer)
{
	uint64_t at = (uint64_t)storm_board->workers * STORM_SLOT +
		      (uint64_t)w.me * sizeof(uint64_t);
	struct storm_pair *pair = &storm_board->pair[w.me][peer];
	uint16_t life = (uint16_t)storm_board->worker[peer].life;

	if (pair->add_life != life) {
		pair->add_life = life;
		pair->add_done = 0;
		/* One of this life and one of a former one may have come to
		 * the peer before it said that it is a new one. */
		pair->add_maybe = 2;
	}
	op->operand = 1;
	op->fetched = ~0ull;
	note(op, STORM_ADD, peer, 0, 8);
	return !CALL(fi_fetch_atomic(w.t.ep, &op->operand, 1, NULL,
				     &op->fetched, NULL, w.addr[peer], at, KEY,
				     FI_UINT64, FI_SUM, op));
}

/* Everyone sends the victim more than it reads, until its completion queue
 * takes no more: thousands of small messages. */
static void flood(void)
{
	struct op *op = free_op();

	while (op && start_send(op, storm_board->victim, STORM_UNTAGGED))
		op = free_op();
}

static void start_something(void)
{
	int peer = (int)below((uint32_t)storm_board->workers);
	struct slot *slot = &w.slots[peer];
	struct op *op = free_op();
	uint32_t what = below(10);
	bool begun;

	if (!op || (!storm_board->worker[peer].up && below(10)))
		return;
	if (what < 7) {
		start_send(op, peer, what < 5 ? STORM_TAGGED : STORM_UNTAGGED);
		return;
	}
	if (slot->busy)
		return;
	if (what == 7)
		begun = start_add(op, peer);
	else if (what == 8 && slot->known)
		begun = start_read(op, peer, slot);
	else
		begun = start_write(op, peer, slot);
	if (begun)
		slot->busy = true;
	else
		op->note->used = false;
}

/* -- completions ------------------------------------------------------------ */

static void sent(struct op *op, int err)
{
	int peer = op->note->peer;

	op->entry->fate = err ? STORM_FAILED : STORM_OK;
	mine()->sent += !err;
	if (!err && op->entry->deliver)
		w.sure_life[peer] = op->entry->to_life;
	if (storm_board->phase != STORM_PROVES)
		return;
	if (!err)
		w.proved[peer] = -1;
	else if (w.proved[peer] >= PROVE_TRIES)
		FAIL("after the storm: %d sends to %d failed, the last with %d "
		     "(%s)",
		     PROVE_TRIES, peer, err, fi_strerror(err));
}

static void onesided_done(struct op *op, int err)
{
	int peer = op->note->peer;
	struct storm_pair *pair = &storm_board->pair[w.me][peer];
	struct slot *slot = &w.slots[peer];
	bool same =
		(uint16_t)storm_board->worker[peer].life == op->note->peer_life;

	slot->busy = false;
	mine()->onesided += !err;
	switch (op->note->kind) {
	case STORM_WRITE:
		slot->known = !err && same;
		break;
	case STORM_READ:
		if (!same || slot->life != storm_board->worker[peer].life)
			slot->known = false;
		else if (!err &&
			 !weft_test_holds(op->buf, op->note->len, slot->seed))
			FAIL("read of %u bytes from %d: not what was written",
			     op->note->len, peer);
		break;
	default:
		if (!same)
			break;
		if (err) {
			pair->add_maybe++;
			break;
		}
		if (op->fetched < pair->add_done ||
		    op->fetched > pair->add_done + pair->add_maybe)
			FAIL("fetch-add at %d found %llu, not %llu to %llu",
			     peer, (unsigned long long)op->fetched,
			     (unsigned long long)pair->add_done,
			     (unsigned long long)(pair->add_done +
						  pair->add_maybe));
		pair->add_done++;
	}
}

static void op_done(struct op *op, int err)
{
	if (!op->note->used)
		FAIL("a completion of an operation that has ended");
	if (err) {
		mine()->failed++;
		mine()->errors[err & 255]++;
	}
	if (op->note->kind <= STORM_UNTAGGED)
		sent(op, err);
	else
		onesided_done(op, err);
	op->note->used = false;
}

static void done(const struct fi_cq_tagged_entry *c, int err)
{
	struct head *head = c->op_context;
	struct receive *r = c->op_context;

	if (!head) {
		if (err) /* a multi-receive's buffer that ended, say */
			return;
		FAIL("a completion without a context, flags %llx",
		     (unsigned long long)c->flags);
	}
	switch (head->what) {
	case AN_OP:
		op_done(c->op_context, err);
		break;
	case A_RECEIVE:
		if (!r->posted)
			FAIL("a receive completed twice");
		take(c->tag, r->buf, c->len, r->post, STORM_TAGGED, err);
		r->posted = false;
		break;
	case A_MULTI:
		if (!r->posted)
			FAIL("a multi-receive completed after its end");
		if (err || c->len)
			take(c->data, c->buf, c->len,
			     r->post << 20 |
				     (uint64_t)((uint8_t *)c->buf - r->buf),
			     STORM_UNTAGGED, err);
		if (c->flags & FI_MULTI_RECV)
			r->posted = false;
		break;
	}
}

static void read_error(void)
{
	struct fi_cq_err_entry e = { 0 };
	struct fi_cq_tagged_entry c;

	if (CALL(fi_cq_readerr(w.t.txcq, &e, 0)) != 1)
		return;
	c = (struct fi_cq_tagged_entry){ .op_context = e.op_context,
					 .flags = e.flags,
					 .len = e.len,
					 .buf = e.buf,
					 .data = e.data,
					 .tag = e.tag };
	if (e.op_context && ((struct head *)e.op_context)->what != AN_OP) {
		mine()->receive_errors++;
		mine()->receive_errnos[e.err & 255]++;
	}
	done(&c, e.err);
}

/* False: there was nothing. */
static bool take_some(bool may_sleep)
{
	struct fi_cq_tagged_entry c[8];
	size_t room = w.one_by_one ? 1 : 8;
	ssize_t n;

	if (may_sleep && w.sleeps)
		n = CALL(fi_cq_sread(w.t.txcq, c, room, NULL, 5));
	else
		n = CALL(fi_cq_read(w.t.txcq, c, room));
	if (n == -FI_EAVAIL) {
		read_error();
		return true;
	}
	for (ssize_t i = 0; i < n; i++)
		done(&c[i], 0);
	return n > 0;
}

/* -- a life ----------------------------------------------------------------- */

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static const char *node_of(int worker)
{
	return storm_board->hosts ? net_addr(worker & 1) : "127.0.0.1";
}

static void know_peers(void)
{
	for (int i = 0; i < storm_board->workers; i++) {
		char service[12];

		snprintf(service, sizeof(service), "%u",
			 storm_board->port + (unsigned int)i);
		CHECK_EQ(fi_av_insertsvc(w.t.av, node_of(i), service,
					 &w.addr[i], 0, NULL),
			 1);
	}
}

static void open_endpoint(void)
{
	static const size_t sizes[] = { 0, 2, 8, 64 };
	size_t least = STORM_SMALLEST_MAX;
	char service[12];
	struct weft_test_opts opts = {
		.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV,
		.node = node_of(w.me),
		.service = service,
		.cq_size = sizes[below(4)],
		.one_cq = true,
		.msg_order = FI_ORDER_SAS,
	};

	w.sleeps = below(2);
	w.one_by_one = below(2) || w.me == storm_board->victim;
	opts.wait_obj = w.sleeps ? FI_WAIT_UNSPEC : FI_WAIT_NONE;
	snprintf(service, sizeof(service), "%u",
		 storm_board->port + (unsigned int)w.me);
	mine()->doing = "opening";
	weft_test_open(&w.t, &opts);
	CHECK_OK(fi_setopt(&w.t.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			   &least, sizeof(least)));
	know_peers();
	memset(w.memory, 0, (size_t)storm_board->workers * (STORM_SLOT + 8));
	CHECK_OK(fi_mr_reg(w.t.domain, w.memory,
			   (size_t)storm_board->workers * (STORM_SLOT + 8),
			   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &w.mr,
			   NULL));
	mine()->doing = NULL;
}

static void close_endpoint(void)
{
	mine()->up = false;
	mine()->doing = "closing";
	CHECK_OK(fi_close(&w.mr->fid));
	weft_test_close(&w.t);
	mine()->doing = NULL;
}

/* Nothing of a former life is under way: its endpoint is gone. */
static void begin_life(void)
{
	for (int i = 0; i < STORM_OPS; i++)
		w.ops[i].note->used = false;
	for (int i = 0; i < RECEIVES; i++)
		w.receives[i].posted = false;
	for (int i = 0; i < MULTIS; i++)
		w.multis[i].posted = false;
	for (int i = 0; i < storm_board->workers; i++) {
		struct storm_pair *pair = &storm_board->pair[w.me][i];

		w.slots[i] = (struct slot){ 0 };
		pair->add_maybe++; /* one may be under way */
		for (int k = 0; k < STORM_RING; k++)
			if (pair->ring[k].fate == STORM_PENDING)
				pair->ring[k].fate = STORM_FAILED;
	}
	/* Said before the endpoint is there: a process that reads its memory
	 * after that knows that it is not what was written to the one
	 * before. */
	mine()->life++;
	open_endpoint();
	mine()->up = true;
	storm_faults(storm_random(&w.random), below(2) ? 1 + below(10) : 0);
}

static void settle(void)
{
	for (int to = 0; to < storm_board->workers; to++) {
		struct storm_pair *pair = &storm_board->pair[w.me][to];

		while (pair->oldest != pair->next &&
		       storm_settled(w.me, to,
				     &pair->ring[pair->oldest % STORM_RING]))
			pair->oldest++;
	}
}

static bool is_quiet(void)
{
	for (int i = 0; i < STORM_OPS; i++)
		if (w.ops[i].note->used)
			return false;
	for (int to = 0; to < storm_board->workers; to++) {
		struct storm_pair *pair = &storm_board->pair[w.me][to];

		if (pair->oldest != pair->next)
			return false;
	}
	return true;
}

/* After the storm everyone reaches everyone. */
static bool prove(void)
{
	bool all = true;

	for (int to = 0; to < storm_board->workers; to++) {
		struct op *op = free_op();

		if (w.proved[to] < 0)
			continue;
		all = false;
		for (int i = 0; op && i < STORM_OPS; i++)
			if (w.ops[i].note->used && w.ops[i].note->peer == to)
				op = NULL; /* under way */
		if (op && start_send(op, to, STORM_TAGGED))
			w.proved[to]++;
	}
	return all;
}

/* False: the storm is over. */
static bool step(void)
{
	int phase = storm_board->phase;
	bool busy = false;

	mine()->injected = storm_injected();
	post_receives();
	if (phase == STORM_BLOWS) {
		for (uint32_t n = below(4); n; n--)
			start_something();
		if (storm_board->victim >= 0 && storm_board->victim != w.me)
			flood();
		if (!below(200))
			usleep(1000 * (1 + below(60))); /* it computes */
		if (!below(5000))
			usleep(1000 * (1 + below(1500)));
	} else {
		storm_faults(1, 0);
	}
	for (int i = w.me == storm_board->victim ? 3 : 0; i < 4; i++)
		if (take_some(false))
			busy = true;
	settle();
	if (phase == STORM_HEALS)
		mine()->quiet = is_quiet() ? phase : 0;
	if (phase == STORM_PROVES)
		mine()->quiet = prove() && is_quiet() ? phase : 0;
	if (!busy && (!w.sleeps || !take_some(true)))
		usleep(below(phase == STORM_BLOWS ? 300 : 2000));
	return phase != STORM_ENDS;
}

static void *take_memory(size_t len)
{
	void *memory = mmap(NULL, len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

void storm_work(int me, uint64_t seed)
{
	w.me = me;
	w.random = seed;
	w.memory = take_memory((size_t)storm_board->workers * (STORM_SLOT + 8));
	for (int i = 0; i < STORM_OPS; i++) {
		w.ops[i].head.what = AN_OP;
		w.ops[i].note = &mine()->ops[i];
		w.ops[i].buf = take_memory(STORM_LARGEST);
	}
	for (int i = 0; i < RECEIVES; i++) {
		w.receives[i].head.what = A_RECEIVE;
		w.receives[i].buf = take_memory(STORM_LARGEST);
	}
	for (int i = 0; i < MULTIS; i++) {
		w.multis[i].head.what = A_MULTI;
		w.multis[i].buf = take_memory(MULTI_SIZE);
	}
	/* The library owns what the first life leaves open. */
	open_endpoint();
	close_endpoint();
	w.descriptors = count_descriptors();
	begin_life();
	while (step()) {
		if (!atomic_exchange(&mine()->reopen, false) ||
		    storm_board->phase != STORM_BLOWS)
			continue;
		close_endpoint();
		CHECK_EQ(count_descriptors(), w.descriptors);
		mine()->reopened++;
		begin_life();
	}
	close_endpoint();
	CHECK_EQ(count_descriptors(), w.descriptors);
}
