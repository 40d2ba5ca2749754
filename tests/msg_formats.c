/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The four formats of completion queues: the right members, several entries at
 * once, no byte beyond the requested ones, and errors between completions.
 */
#include "msg_util.h"

#define COUNT 5
#define DATA 0xabcdef0123456789ull

static const struct {
	enum fi_cq_format format;
	size_t size;
} formats[] = {
	{ FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry) },
	{ FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry) },
	{ FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry) },
	{ FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry) },
};

/* Reads exactly @count entries, in one call or in several. */
static void read_all(struct fid_cq *cq, char *to, size_t size, size_t count)
{
	size_t have = 0;

	while (have < count) {
		ssize_t got = fi_cq_read(cq, to + have * size, count - have);

		if (got == -FI_EAGAIN) {
			weft_test_progress();
			continue;
		}
		CHECK(got > 0);
		have += (size_t)got;
	}
}

static void check_entry(enum fi_cq_format format, const void *at, size_t i,
			struct fi_context *contexts, const char *bufs)
{
	struct fi_cq_tagged_entry e = { 0 };

	memcpy(&e, at, formats[format - 1].size);
	CHECK(e.op_context == &contexts[i]);
	if (format == FI_CQ_FORMAT_CONTEXT)
		return;
	CHECK_EQ(e.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
	CHECK_EQ(e.len, 10 * i);
	if (format == FI_CQ_FORMAT_MSG)
		return;
	CHECK(e.buf == bufs + 100 * i);
	CHECK_EQ(e.data, DATA + i);
	if (format == FI_CQ_FORMAT_TAGGED)
		CHECK_EQ(e.tag, 1000 + i);
}

static void test_format(enum fi_cq_format format, size_t size)
{
	struct weft_test_opts opts = { .cq_format = format };
	struct fi_context contexts[COUNT];
	char room[(COUNT + 1) * sizeof(struct fi_cq_tagged_entry)];
	char bufs[COUNT * 100], from[100] = { 0 };
	struct weft_test a, b;
	fi_addr_t to;

	CHECK_EQ(formats[format - 1].format, format);
	weft_test_open(&a, &opts);
	weft_test_open(&b, &opts);
	to = weft_test_know(&a, &b);
	for (size_t i = 0; i < COUNT; i++) {
		POST(fi_trecv(b.ep, bufs + 100 * i, 100, NULL, FI_ADDR_UNSPEC,
			      1000 + i, 0, &contexts[i]));
		POST(fi_tsenddata(a.ep, from, 10 * i, NULL, DATA + i, to,
				  1000 + i, &contexts[i]));
	}
	memset(room, 0x55, sizeof(room));
	read_all(b.rxcq, room, size, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		check_entry(format, room + i * size, i, contexts, bufs);
	for (size_t i = COUNT * size; i < sizeof(room); i++)
		CHECK_EQ(room[i], 0x55);
	memset(room, 0x55, sizeof(room));
	read_all(a.txcq, room, size, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		CHECK(((struct fi_cq_entry *)(room + i * size))->op_context ==
		      &contexts[i]);
	CHECK_EQ(room[COUNT * size], 0x55);
	weft_test_close(&a);
	weft_test_close(&b);
}

/* Returns what comes first, completion or error. */
static ssize_t read_next(struct fid_cq *cq, void *entries, size_t count)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	ssize_t ret;

	do {
		weft_test_progress();
		ret = fi_cq_read(cq, entries, count);
	} while (ret == -FI_EAGAIN && weft_test_ms() < end);
	return ret;
}

/* An error keeps its position: fi_cq_read() stops before it, and
 * fi_cq_readerr() takes it. */
static void test_error_between(void)
{
	struct fi_cq_tagged_entry entries[4];
	struct fi_cq_err_entry err = { 0 };
	struct fi_context contexts[3];
	char to_buf[8], from[8] = { 0 };
	struct weft_test a, b;
	fi_addr_t to;
	char text[64];

	weft_test_open(&a, NULL);
	weft_test_open(&b, NULL);
	to = weft_test_know(&a, &b);
	CHECK_EQ(fi_cq_readerr(b.rxcq, &err, 0), -FI_EAGAIN);
	for (int i = 0; i < 3; i++) {
		CHECK_OK(weft_test_recv(&b, to_buf, i == 1 ? 4 : 8,
					&contexts[i]));
		CHECK_OK(weft_test_send(&a, from, 8, to, NULL));
	}
	CHECK_EQ(read_next(b.rxcq, entries, 4), 1);
	CHECK(entries[0].op_context == &contexts[0]);
	CHECK_EQ(read_next(b.rxcq, entries, 4), -FI_EAVAIL);
	CHECK_EQ(fi_cq_read(b.rxcq, entries, 4), -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(b.rxcq, &err, 0), 1);
	CHECK(err.op_context == &contexts[1]);
	/* Bug of libfabric's shm: a negative errno in an entry. */
	CHECK_EQ(err.err, FI_ETRUNC);
	CHECK(fi_cq_strerror(b.rxcq, err.prov_errno, err.err_data, text,
			     sizeof(text)));
	CHECK_EQ(read_next(b.rxcq, entries, 4), 1);
	CHECK(entries[0].op_context == &contexts[2]);
	CHECK_EQ(fi_cq_read(b.rxcq, entries, 4), -FI_EAGAIN);
	weft_test_close(&a);
	weft_test_close(&b);
}

int main(void)
{
	weft_test_begin(60);
	for (size_t i = 0; i < COUNT_OF(formats); i++)
		test_format(formats[i].format, formats[i].size);
	test_error_between();
	return 0;
}
