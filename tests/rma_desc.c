/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the application has registered and names in its calls (desc). On
 * an EFA device no operation registers such memory again, but for messages that
 * their receiver reads, which is counted here. The contents of the descriptor
 * are never trusted: memory that is partly or wholly outside of the
 * registration, that may not be used so, or whose registration was closed, is
 * sent and received all the same. Without such a device descriptors mean
 * nothing.
 */
#include <dlfcn.h>
#include <stdatomic.h>

#include "rma_util.h"

#define LEN (1u << 20) /* read by the receiver */
#define MEDIUM 60000u  /* in packets, not copied into them */
#define ROUNDS 4

#define MODE (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define LOCAL (FI_SEND | FI_RECV | FI_READ | FI_WRITE)

struct ibv_mr;
struct ibv_pd;
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len,
			  int access);

/* Calls of weft, which looks for the function in the program first. */
static atomic_uint registered;

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct ibv_mr *(*next)(struct ibv_pd *, void *, size_t, int);
	void *found = dlsym(RTLD_NEXT, "ibv_reg_mr");

	CHECK(found);
	memcpy(&next, &found, sizeof(next));
	atomic_fetch_add(&registered, 1);
	return next(pd, addr, len, access);
}

struct side {
	struct weft_test t;
	fi_addr_t peer;
	uint8_t *memory; /* 2 * LEN, of which LEN is registered */
	struct fid_mr *mr;
	void *desc;
};

static bool on_efa(void)
{
	const char *nic = getenv("FI_WEFT_NIC");

	return nic && !strcmp(nic, "efa");
}

static void enter(struct side *side, uint64_t access)
{
	CHECK_OK(fi_mr_reg(side->t.domain, side->memory, LEN, access, 0, 1, 0,
			   &side->mr, NULL));
	side->desc = fi_mr_desc(side->mr);
	CHECK(side->desc);
}

static void renew(struct side *side, uint64_t access)
{
	CHECK_OK(fi_close(&side->mr->fid));
	enter(side, access);
}

static void open_sides(struct side side[2])
{
	const struct weft_test_opts opts = { .caps = RMA_CAPS,
					     .mr_mode = MODE };

	for (int i = 0; i < 2; i++) {
		weft_test_open(&side[i].t, &opts);
		CHECK_EQ(!!(side[i].t.info->domain_attr->mr_mode & FI_MR_LOCAL),
			 on_efa());
		side[i].memory = msg_alloc(2 * LEN);
		enter(&side[i], LOCAL | RMA_ACCESS);
	}
	side[0].peer = weft_test_know(&side[0].t, &side[1].t);
	side[1].peer = weft_test_know(&side[1].t, &side[0].t);
}

static void close_sides(struct side side[2])
{
	for (int i = 0; i < 2; i++) {
		CHECK_OK(fi_close(&side[i].mr->fid));
		weft_test_close(&side[i].t);
		free(side[i].memory);
	}
}

/* How many registrations there were since the last call. */
static unsigned int count(void)
{
	return atomic_exchange(&registered, 0);
}

/* Messages of @len bytes from @from on, and how often memory was registered for
 * them. */
static unsigned int exchange(struct side side[2], size_t from, size_t len,
			     void *send_desc, void *recv_desc)
{
	count();
	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct fi_context sent, got;

		weft_test_fill(side[0].memory + from, len, i + len);
		memset(side[1].memory + from, 0, len);
		POST(fi_trecv(side[1].t.ep, side[1].memory + from, len,
			      recv_desc, FI_ADDR_UNSPEC, i, 0, &got));
		POST(fi_tsend(side[0].t.ep, side[0].memory + from, len,
			      send_desc, side[0].peer, i, &sent));
		weft_test_wait_ok(side[1].t.rxcq, &got);
		weft_test_wait_ok(side[0].t.txcq, &sent);
		CHECK(weft_test_holds(side[1].memory + from, len, i + len));
	}
	return count();
}

static void check_messages(struct side side[2])
{
	unsigned int once = on_efa() ? ROUNDS : 0;
	void *mine = side[0].desc, *theirs = side[1].desc;

	exchange(side, 0, 64, NULL, NULL); /* both know each other */
	/* The receiver gets a key of the message alone. */
	CHECK_EQ(exchange(side, 0, LEN, mine, theirs), once);
	CHECK_EQ(exchange(side, 5000, MEDIUM, mine, theirs), 0);
	CHECK_EQ(exchange(side, LEN - MEDIUM, MEDIUM, mine, theirs), 0);
	if (!on_efa())
		return;
	/* None, and none on one side. */
	CHECK_EQ(exchange(side, 0, LEN, NULL, NULL), 2 * ROUNDS);
	CHECK_EQ(exchange(side, 0, LEN, mine, NULL), 2 * ROUNDS);
	CHECK_EQ(exchange(side, 0, LEN, NULL, theirs), ROUNDS);
	CHECK_EQ(exchange(side, 0, MEDIUM, NULL, NULL), ROUNDS);
}

/* Descriptors that do not fit the memory. */
static void check_wrong(struct side side[2])
{
	unsigned int most = on_efa() ? 2 * ROUNDS : 0;
	void *mine = side[0].desc, *theirs = side[1].desc;

	CHECK_EQ(exchange(side, 1, LEN, mine, theirs), most);
	CHECK_EQ(exchange(side, LEN, LEN, mine, theirs), most);
	/* Of the other domain: other memory. */
	CHECK_EQ(exchange(side, 0, LEN, theirs, mine), most);
	/* No descriptors at all. */
	CHECK_EQ(exchange(side, 0, LEN, side, &most), most);
	CHECK_EQ(exchange(side, 0, LEN, (void *)1, (void *)UINTPTR_MAX), most);
	/* Not for this. */
	renew(&side[0], FI_RECV);
	renew(&side[1], FI_SEND);
	CHECK_EQ(exchange(side, 0, LEN, side[0].desc, side[1].desc), most);
	/* Closed: it may be anybody's by now. */
	for (int i = 0; i < 2; i++) {
		renew(&side[0], LOCAL | RMA_ACCESS);
		renew(&side[1], LOCAL | RMA_ACCESS);
		mine = i ? mine : side[0].desc;
		theirs = i ? theirs : side[1].desc;
	}
	CHECK_EQ(exchange(side, 0, LEN, mine, theirs), most);
	CHECK_EQ(exchange(side, 0, LEN, side[0].desc, side[1].desc), most / 2);
}

/* Calls with several pieces, each with its own. */
static void check_vectors(struct side side[2])
{
	for (int i = 0; i < 2; i++) {
		unsigned int want = on_efa() ? (i ? 3 : 2) : 0;
		void *descs[2][2] = {
			{ side[0].desc, i ? NULL : side[0].desc },
			{ i ? NULL : side[1].desc, side[1].desc },
		};
		struct iovec iov[2][2];
		struct fi_context sent, got;
		struct fi_msg_tagged msg;

		for (int j = 0; j < 2; j++) {
			iov[j][0] = (struct iovec){ side[j].memory, LEN / 4 };
			iov[j][1] = (struct iovec){ side[j].memory + LEN / 2,
						    LEN / 4 };
		}
		weft_test_fill(side[0].memory, LEN, 77);
		memset(side[1].memory, 0, LEN);
		msg = (struct fi_msg_tagged){
			.msg_iov = iov[0],
			.desc = descs[0],
			.iov_count = 2,
			.addr = side[0].peer,
			.context = &sent,
		};
		count();
		POST(fi_trecvv(side[1].t.ep, iov[1], descs[1], 2,
			       FI_ADDR_UNSPEC, 0, 0, &got));
		POST(fi_tsendmsg(side[0].t.ep, &msg, FI_COMPLETION));
		weft_test_wait_ok(side[1].t.rxcq, &got);
		weft_test_wait_ok(side[0].t.txcq, &sent);
		CHECK_EQ(count(), want);
		for (int j = 0; j < 2; j++)
			CHECK(!memcmp(iov[0][j].iov_base, iov[1][j].iov_base,
				      LEN / 4));
	}
}

static void check_rma(struct side side[2])
{
	struct weft_test *t = &side[0].t;
	uint64_t key = fi_mr_key(side[1].mr);
	uint64_t addr = (uintptr_t)side[1].memory;

	for (int i = 0; i < 2; i++) {
		void *desc = i ? NULL : side[0].desc;
		unsigned int want = on_efa() && i ? 1 : 0;
		struct fi_context context;

		weft_test_fill(side[0].memory, LEN, 5);
		count();
		POST(fi_write(t->ep, side[0].memory, LEN, desc, side[0].peer,
			      addr, key, &context));
		rma_wait(t, &context, FI_RMA | FI_WRITE);
		CHECK_EQ(count(), want);
		memset(side[0].memory, 0, LEN);
		POST(fi_read(t->ep, side[0].memory, LEN, desc, side[0].peer,
			     addr, key, &context));
		rma_wait(t, &context, FI_RMA | FI_READ);
		CHECK_EQ(count(), want);
		CHECK(weft_test_holds(side[0].memory, LEN, 5));
	}
}

/* Short accesses by the device alone: the application of the target, which has to
 * make progress for others, sleeps. */
static void check_short(struct side side[2])
{
	static const size_t lens[] = { 1, 8, 4096, 16384 };
	struct weft_test *t = &side[0].t;
	struct fi_cq_tagged_entry entry;
	struct fi_context context;

	for (size_t i = 0; on_efa() && i < COUNT_OF(lens) * 2; i++) {
		size_t len = lens[i / 2];
		uint64_t until = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
		uint64_t addr = (uintptr_t)side[1].memory;
		uint64_t key = fi_mr_key(side[1].mr);

		weft_test_fill(side[0].memory, len, i);
		if (i % 2)
			weft_test_fill(side[1].memory, len, i + 100);
		if (i % 2)
			CHECK_OK(fi_read(t->ep, side[0].memory, len,
					 side[0].desc, side[0].peer, addr, key,
					 &context));
		else
			CHECK_OK(fi_write(t->ep, side[0].memory, len,
					  side[0].desc, side[0].peer, addr, key,
					  &context));
		while (fi_cq_read(t->txcq, &entry, 1) != 1)
			CHECK(weft_test_ms() < until);
		CHECK(entry.op_context == &context);
		CHECK(!memcmp(side[0].memory, side[1].memory, len));
		CHECK(weft_test_holds(side[1].memory, len,
				      i % 2 ? i + 100 : i));
	}
	CHECK_EQ(count(), 0);
}

/* Pieces of one buffer that takes several messages. */
static void check_multi(struct side side[2])
{
	struct iovec iov = { side[1].memory, LEN };
	struct fi_context context, sent[3];
	struct fi_msg msg = {
		.msg_iov = &iov,
		.desc = &side[1].desc,
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.context = &context,
	};

	count();
	memset(side[1].memory, 0, LEN);
	POST(fi_recvmsg(side[1].t.ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
	for (int i = 0; i < 3; i++) {
		uint8_t *from = side[0].memory + (size_t)i * (LEN / 4);

		weft_test_fill(from, LEN / 4, 30 + (uint64_t)i);
		POST(fi_send(side[0].t.ep, from, LEN / 4, side[0].desc,
			     side[0].peer, &sent[i]));
		weft_test_wait_ok(side[1].t.rxcq, &context);
		weft_test_wait_ok(side[0].t.txcq, &sent[i]);
	}
	CHECK(!memcmp(side[0].memory, side[1].memory, LEN / 4 * 3));
	CHECK_EQ(count(), on_efa() ? 3 : 0);
	CHECK_OK(fi_cancel(&side[1].t.ep->fid, &context));
	weft_test_wait_err(side[1].t.rxcq, &context, FI_ECANCELED);
}

/* The registration is closed while the device still needs it. Both sides are told,
 * or the message has arrived, and the next one does. The sender's is not needed for
 * what the receiver reads. */
static void check_closed_in_use(struct side side[2], int closer)
{
	struct weft_test_comp out, in;
	struct fi_context sent, got;

	weft_test_fill(side[0].memory, LEN, 9);
	memset(side[1].memory, 0, LEN);
	POST(fi_tsend(side[0].t.ep, side[0].memory, LEN, side[0].desc,
		      side[0].peer, 3, &sent));
	if (closer == 0) {
		weft_test_progress_for(20);
		renew(&side[0], LOCAL | RMA_ACCESS);
	}
	POST(fi_trecv(side[1].t.ep, side[1].memory, LEN, side[1].desc,
		      FI_ADDR_UNSPEC, 3, 0, &got));
	if (closer == 1)
		renew(&side[1], LOCAL | RMA_ACCESS);
	weft_test_wait(side[1].t.rxcq, &in);
	weft_test_wait(side[0].t.txcq, &out);
	CHECK(in.entry.op_context == &got);
	CHECK(out.entry.op_context == &sent);
	CHECK_EQ(in.ret < 0, out.ret < 0);
	if (in.ret > 0)
		CHECK(weft_test_holds(side[1].memory, LEN, 9));
	else
		CHECK(on_efa());
	if (closer == 0)
		CHECK(out.ret > 0);
	CHECK_EQ(exchange(side, 0, LEN, side[0].desc, side[1].desc),
		 on_efa() ? ROUNDS : 0);
}

int main(void)
{
	struct side side[2] = { 0 };

	weft_test_begin(110);
	open_sides(side);
	check_messages(side);
	check_wrong(side);
	check_vectors(side);
	check_rma(side);
	check_short(side);
	check_multi(side);
	for (int i = 0; i < 6; i++)
		check_closed_in_use(side, i % 2);
	close_sides(side);
	return 0;
}
