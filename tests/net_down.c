/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link between two hosts fails for two seconds, at one end and then at the
 * other, while operations of every kind are in flight: nothing fails, nothing
 * is lost, and the operations continue by themselves.
 */
#include "common/net.h"
#include "rma_util.h"

#define ROUNDS 2
#define MESSAGES 64
#define LARGE 500000
#define DOWN_MS 2000

static uint8_t *out, *in[MESSAGES];
static struct fi_context sends[MESSAGES], recvs[MESSAGES], reads[MESSAGES];

static size_t size_of(int i)
{
	return i % 3 ? (size_t)(i * 37 + 1) : LARGE;
}

static void start(struct weft_test *t, fi_addr_t peer,
		  const struct rma_target *target, uint64_t *words)
{
	for (int i = 0; i < MESSAGES; i++)
		CHECK_OK(weft_test_recv(t, in[i], LARGE, &recvs[i]));
	for (int i = 0; i < MESSAGES; i++) {
		CHECK_OK(weft_test_send(t, out, size_of(i), peer, &sends[i]));
		POST(fi_read(t->ep, &words[i], 8, NULL, peer, target->base,
			     target->key, &reads[i]));
	}
}

/* At least one message is on its way meanwhile. */
static void interrupt(struct weft_test *t, fi_addr_t peer, int host)
{
	static struct fi_context late;
	static uint64_t word;

	net_ip(host, "link set link0 down");
	CHECK_OK(weft_test_tsend(t, &word, sizeof(word), peer, 1, &late));
	weft_test_progress_for(DOWN_MS);
	net_ip(host, "link set link0 up");
}

static void finish(struct weft_test *t, int sent)
{
	struct weft_test_comp comp;

	for (int i = 0; i < sent; i++)
		weft_test_wait_ok(t->txcq, NULL);
	for (int i = 0; i < MESSAGES; i++) {
		weft_test_wait(t->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
	}
	for (int i = 0; i < MESSAGES; i++)
		CHECK(weft_test_holds(in[i], size_of(i), 5));
}

static void side(struct weft_test *t, fi_addr_t peer,
		 struct weft_test_line *line, void *arg)
{
	static uint64_t word, got, words[MESSAGES];
	struct rma_target target;
	struct fid_mr *mr;

	(void)arg;
	out = msg_alloc(LARGE);
	weft_test_fill(out, LARGE, 5);
	for (int i = 0; i < MESSAGES; i++)
		in[i] = msg_alloc(LARGE);
	word = 0x77;
	rma_offer(t, line, &word, sizeof(word), &mr);
	target = rma_learn(line);
	for (int round = 0; round < ROUNDS; round++) {
		memset(words, 0, sizeof(words));
		weft_test_sync(line);
		start(t, peer, &target, words);
		if (line->pid)
			interrupt(t, peer, round % NET_HOSTS);
		finish(t, 2 * MESSAGES + !!line->pid);
		if (!line->pid) {
			CHECK_OK(weft_test_trecv(t, &got, sizeof(got), 1, 0,
						 &got));
			weft_test_wait_ok(t->rxcq, &got);
		}
		for (int i = 0; i < MESSAGES; i++)
			CHECK_EQ(words[i], 0x77);
		weft_test_sync(line);
	}
	CHECK_OK(fi_close(&mr->fid));
	for (int i = 0; i < MESSAGES; i++)
		free(in[i]);
	free(out);
}

int main(void)
{
	const struct weft_test_opts opts = { .caps = RMA_CAPS };

	weft_test_begin(100);
	net_begin(1500);
	weft_test_pair(&opts, side, side, NULL);
	return 0;
}
