/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call of fi_msg(3) and fi_tagged(3) between two processes: each way to
 * send is combined with each way to receive, in all sizes, with the receive
 * posted before and after the message arrives. Every member of the completions
 * is checked.
 */
#include "msg_util.h"

#define DATA 0x8123456789abcdefull /* uses all 64 bits */
#define TAG 0xfedcba9876543210ull

enum how_sent {
	SEND,
	SENDV,
	SENDMSG,
	SENDMSG_DATA,
	SENDDATA,
	INJECT,
	INJECTDATA,
	SENDMSG_INJECT,
	SENDS,
};

enum how_received { RECV, RECVV, RECVMSG, RECVS };

static const size_t sizes[] = {
	0, 1, 40, 41, 104, 105, 320, 4096, 4097, 200000
};

/* One of all combinations; both sides enumerate them in the same order. */
struct way {
	enum how_sent sent;
	enum how_received received;
	bool tagged;
	bool late; /* the receive is posted after the message has arrived */
	size_t len;
	uint64_t seed;
};

static bool injects(enum how_sent how)
{
	return how == INJECT || how == INJECTDATA || how == SENDMSG_INJECT;
}

static bool has_data(enum how_sent how)
{
	return how == SENDMSG_DATA || how == SENDDATA || how == INJECTDATA;
}

/* @step: how many combinations to skip each time. */
static bool next_way(struct way *w, size_t *at, size_t step)
{
	size_t i = *at;

	*at += step;

	w->seed = i;
	w->sent = i % SENDS;
	i /= SENDS;
	w->received = i % RECVS;
	i /= RECVS;
	w->tagged = i % 2;
	i /= 2;
	w->late = i % 2;
	i /= 2;
	if (i >= COUNT_OF(sizes))
		return false;
	w->len = sizes[i];
	return true;
}

/* -- sending --------------------------------------------------------------- */

/* Cuts a buffer into parts of different sizes. */
static size_t cut(struct iovec *iov, void *buf, size_t len)
{
	size_t at = 0;

	for (size_t i = 0; i < 4; i++) {
		size_t part = i == 3 ? len - at : (len - at) * (i + 1) / 7;

		iov[i] = (struct iovec){ (char *)buf + at, part };
		at += part;
	}
	return 4;
}

static void send_msg(struct fid_ep *ep, const struct way *w, void *buf,
		     fi_addr_t to, void *context)
{
	struct iovec iov[4];
	struct fi_msg msg = {
		.msg_iov = iov,
		.iov_count = cut(iov, buf, w->len),
		.addr = to,
		.context = context,
		.data = DATA,
	};

	switch (w->sent) {
	case SEND:
		POST(fi_send(ep, buf, w->len, NULL, to, context));
		break;
	case SENDV:
		POST(fi_sendv(ep, iov, NULL, 4, to, context));
		break;
	case SENDMSG:
		POST(fi_sendmsg(ep, &msg, 0));
		break;
	case SENDMSG_DATA:
		POST(fi_sendmsg(ep, &msg, FI_REMOTE_CQ_DATA));
		break;
	case SENDDATA:
		POST(fi_senddata(ep, buf, w->len, NULL, DATA, to, context));
		break;
	case INJECT:
		POST(fi_inject(ep, buf, w->len, to));
		break;
	case INJECTDATA:
		POST(fi_injectdata(ep, buf, w->len, DATA, to));
		break;
	default:
		POST(fi_sendmsg(ep, &msg, FI_INJECT));
	}
}

static void send_tagged(struct fid_ep *ep, const struct way *w, void *buf,
			fi_addr_t to, void *context)
{
	struct iovec iov[4];
	struct fi_msg_tagged msg = {
		.msg_iov = iov,
		.iov_count = cut(iov, buf, w->len),
		.addr = to,
		.tag = TAG,
		.context = context,
		.data = DATA,
	};

	switch (w->sent) {
	case SEND:
		POST(fi_tsend(ep, buf, w->len, NULL, to, TAG, context));
		break;
	case SENDV:
		POST(fi_tsendv(ep, iov, NULL, 4, to, TAG, context));
		break;
	case SENDMSG:
		POST(fi_tsendmsg(ep, &msg, 0));
		break;
	case SENDMSG_DATA:
		POST(fi_tsendmsg(ep, &msg, FI_REMOTE_CQ_DATA));
		break;
	case SENDDATA:
		POST(fi_tsenddata(ep, buf, w->len, NULL, DATA, to, TAG,
				  context));
		break;
	case INJECT:
		POST(fi_tinject(ep, buf, w->len, to, TAG));
		break;
	case INJECTDATA:
		POST(fi_tinjectdata(ep, buf, w->len, DATA, to, TAG));
		break;
	default:
		POST(fi_tsendmsg(ep, &msg, FI_INJECT));
	}
}

static void check_sent(struct weft_test *t, const struct way *w, void *context)
{
	struct weft_test_comp comp;

	if (w->sent == INJECT || w->sent == INJECTDATA) {
		CHECK(!weft_test_poll(t->txcq, &comp));
		return;
	}
	weft_test_wait(t->txcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK(comp.entry.op_context == context);
	CHECK_EQ(comp.entry.flags, FI_SEND | (w->tagged ? FI_TAGGED : FI_MSG));
}

static void sender(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	struct fi_context context;
	struct way w;
	size_t at = 0;

	while (next_way(&w, &at, *(size_t *)arg)) {
		void *buf;

		if (injects(w.sent) && w.len > t->info->tx_attr->inject_size)
			continue;
		buf = msg_alloc(w.len);
		weft_test_fill(buf, w.len, w.seed);
		if (!w.late)
			weft_test_sync(line);
		if (w.tagged)
			send_tagged(t->ep, &w, buf, peer, &context);
		else
			send_msg(t->ep, &w, buf, peer, &context);
		/* The buffer of an injected message can be changed at once. */
		if (injects(w.sent))
			memset(buf, 0, w.len);
		if (w.late)
			weft_test_sync(line);
		check_sent(t, &w, &context);
		free(buf);
	}
	weft_test_sync(line);
}

/* -- receiving ------------------------------------------------------------- */

static void receive(struct fid_ep *ep, const struct way *w, void *buf,
		    void *context)
{
	struct iovec iov[4];
	struct fi_msg msg = {
		.msg_iov = iov,
		.iov_count = cut(iov, buf, w->len),
		.addr = FI_ADDR_UNSPEC,
		.context = context,
	};
	struct fi_msg_tagged tagged = {
		.msg_iov = iov,
		.iov_count = 4,
		.addr = FI_ADDR_UNSPEC,
		.tag = TAG,
		.context = context,
	};

	switch (w->received) {
	case RECV:
		if (w->tagged)
			POST(fi_trecv(ep, buf, w->len, NULL, FI_ADDR_UNSPEC,
				      TAG, 0, context));
		else
			POST(fi_recv(ep, buf, w->len, NULL, FI_ADDR_UNSPEC,
				     context));
		break;
	case RECVV:
		if (w->tagged)
			POST(fi_trecvv(ep, iov, NULL, 4, FI_ADDR_UNSPEC,
				       TAG & ~0xffull, 0xff, context));
		else
			POST(fi_recvv(ep, iov, NULL, 4, FI_ADDR_UNSPEC,
				      context));
		break;
	default:
		if (w->tagged)
			POST(fi_trecvmsg(ep, &tagged, 0));
		else
			POST(fi_recvmsg(ep, &msg, 0));
	}
}

static void check_received(struct weft_test *t, const struct way *w, void *buf,
			   void *context, fi_addr_t peer)
{
	struct weft_test_comp comp;

	weft_test_wait(t->rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK(comp.entry.op_context == context);
	CHECK_EQ(comp.entry.flags,
		 FI_RECV | (w->tagged ? FI_TAGGED : FI_MSG) |
			 (has_data(w->sent) ? FI_REMOTE_CQ_DATA : 0));
	CHECK_EQ(comp.entry.len, w->len);
	if (has_data(w->sent))
		CHECK_EQ(comp.entry.data, DATA);
	if (w->tagged)
		CHECK_EQ(comp.entry.tag, TAG);
	CHECK_EQ(comp.src, peer);
	CHECK(weft_test_holds(buf, w->len, w->seed));
	CHECK_EQ(((uint8_t *)buf)[w->len], 0xee);
}

static void receiver(struct weft_test *t, fi_addr_t peer,
		     struct weft_test_line *line, void *arg)
{
	struct fi_context context;
	struct way w;
	size_t at = 0;

	while (next_way(&w, &at, *(size_t *)arg)) {
		void *buf;

		if (injects(w.sent) && w.len > t->info->tx_attr->inject_size)
			continue;
		buf = msg_alloc(w.len);
		if (w.late)
			weft_test_sync(line);
		receive(t->ep, &w, buf, &context);
		if (!w.late)
			weft_test_sync(line);
		check_received(t, &w, buf, &context, peer);
		free(buf);
	}
	weft_test_sync(line);
}

int main(void)
{
	struct weft_test_opts opts = {
		.caps = FI_MSG | FI_TAGGED | FI_SOURCE,
	};
	size_t step = 1;

	weft_test_begin(60);
	weft_test_pair(&opts, sender, receiver, &step);
	/* With the lock the provider uses other functions that take the same
	 * steps: run every call again, but not every combination. */
	opts.threading = FI_THREAD_SAFE;
	step = 7;
	weft_test_pair(&opts, sender, receiver, &step);
	return 0;
}
