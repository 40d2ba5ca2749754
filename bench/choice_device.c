/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A driver for bench/choice whose device is a clock, so that choice by cost can be
 * measured without one: jobs gather in a batch, which takes a time of its own and
 * a time for each byte of plain data, one batch after the other. A result is
 * computed when its data are seen for the first time, and kept; from then on the
 * processor only finds and copies it, as it does for a real device.
 *
 *	CHOICE_DELAY_US   what a batch takes, however small
 *	CHOICE_GATHER_US  how long it stays open behind its first job
 *	CHOICE_PS         picoseconds for each byte of plain data
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include <weft/wd_comp_drv.h>

#define DEPTH 4096u
#define KEPT (1u << 15) /* results */

static uint64_t delay_ns, gather_ns, byte_ps;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* -- results --------------------------------------------------------------- */

struct kept {
	uint64_t hash;
	size_t src_len, consumed, produced;
	uint8_t *data;
};

static struct kept kept[KEPT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Four at a time, because the processor shall not have much to do. */
static uint64_t hash_of(const struct wd_comp_job *job)
{
	uint64_t lanes[4] = { 1, 2, 3, (uint64_t)job->inflate + 4 }, word = 0;
	size_t at = 0;

	for (; at + sizeof(lanes) <= job->src_len; at += sizeof(lanes)) {
		for (int i = 0; i < 4; i++) {
			memcpy(&word, job->src + at + 8 * i, 8);
			lanes[i] = (lanes[i] ^ word) * 0x9e3779b97f4a7c15u;
			lanes[i] ^= lanes[i] >> 29;
		}
	}
	for (; at < job->src_len; at++)
		lanes[at % 4] =
			(lanes[at % 4] ^ job->src[at]) * 0x9e3779b97f4a7c15u;
	for (int i = 1; i < 4; i++)
		lanes[0] = (lanes[0] ^ lanes[i]) * 0xff51afd7ed558ccdu;
	return lanes[0] ^ lanes[0] >> 32;
}

/* By zlib, into job->dst. */
static int compute(struct wd_comp_job *job)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)job->src,
		       .avail_in = (uInt)job->src_len,
		       .next_out = job->dst,
		       .avail_out = (uInt)job->dst_len };
	int ret;

	if (job->inflate ?
		    inflateInit2(&z, -15) :
		    deflateInit2(&z, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY))
		return -ENOMEM;
	ret = job->inflate ? inflate(&z, Z_FINISH) : deflate(&z, Z_FINISH);
	job->consumed = z.total_in;
	job->produced = z.total_out;
	job->inflate ? inflateEnd(&z) : deflateEnd(&z);
	return ret == Z_STREAM_END ? 0 : -ENOTSUP;
}

static void keep(struct kept *k, uint64_t hash, const struct wd_comp_job *job)
{
	uint8_t *data = malloc(job->produced + 1);

	if (!data)
		return;
	memcpy(data, job->dst, job->produced);
	free(k->data);
	*k = (struct kept){ .hash = hash,
			    .src_len = job->src_len,
			    .consumed = job->consumed,
			    .produced = job->produced,
			    .data = data };
}

/* Two pieces with the same hash would give wrong bytes, which bench/choice
 * reports. */
static int result_of(struct wd_comp_job *job)
{
	uint64_t hash = hash_of(job);
	struct kept *k = &kept[hash % KEPT];
	int ret = 0;

	pthread_mutex_lock(&lock);
	if (k->data && k->hash == hash && k->src_len == job->src_len &&
	    k->produced <= job->dst_len) {
		memcpy(job->dst, k->data, k->produced);
		job->consumed = k->consumed;
		job->produced = k->produced;
	} else {
		ret = compute(job);
		if (!ret)
			keep(k, hash, job);
	}
	pthread_mutex_unlock(&lock);
	job->ended = job->inflate && !ret;
	return ret;
}

/* -- the device ------------------------------------------------------------ */

struct chan {
	pthread_mutex_t lock;
	struct {
		struct wd_comp_job *job;
		uint64_t batch;
	} jobs[DEPTH];
	uint64_t head, tail;
	/* Of the last batch, and when the one before it ends. */
	uint64_t batch, closes, work_ns, ends_before;
	uint64_t ends[DEPTH]; /* of batches before the last */
};

static int open_chan(void **chan, struct wd_chan *ch, unsigned int can)
{
	struct chan *c = ch ? NULL : calloc(1, sizeof(*c));

	(void)can;
	if (!c)
		return ch ? -ENOTSUP : -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	*chan = c;
	return 0;
}

static void close_chan(void *chan)
{
	free(chan);
}

/* When the last batch ends if no job comes to it. */
static uint64_t end_of(const struct chan *c)
{
	uint64_t from = c->closes > c->ends_before ? c->closes : c->ends_before;

	return from + delay_ns + c->work_ns;
}

static void begin_batch(struct chan *c, uint64_t now)
{
	if (c->batch)
		c->ends_before = end_of(c);
	c->ends[c->batch % DEPTH] = c->ends_before;
	c->batch++;
	c->closes = now + gather_ns;
	c->work_ns = 0;
}

static int submit(void *chan, struct wd_comp_job *const *jobs, unsigned int n)
{
	struct chan *c = chan;
	uint64_t now = now_ns();
	unsigned int taken = 0;

	pthread_mutex_lock(&c->lock);
	if (c->tail - c->head < DEPTH &&
	    (!c->batch || (now > c->closes && now > c->ends_before)))
		begin_batch(c, now);
	for (; taken < n && c->tail - c->head < DEPTH; taken++) {
		struct wd_comp_job *job = jobs[taken];
		size_t plain = job->inflate ? job->dst_len : job->src_len;

		c->jobs[c->tail % DEPTH].job = job;
		c->jobs[c->tail++ % DEPTH].batch = c->batch;
		c->work_ns += plain * byte_ps / 1000;
	}
	pthread_mutex_unlock(&c->lock);
	return (int)taken;
}

static uint64_t end_of_first(const struct chan *c)
{
	uint64_t batch = c->jobs[c->head % DEPTH].batch;

	return batch == c->batch ? end_of(c) : c->ends[batch % DEPTH];
}

static int poll(void *chan, struct wd_comp_job **done, unsigned int n)
{
	struct chan *c = chan;
	uint64_t now = now_ns();
	unsigned int count = 0;

	pthread_mutex_lock(&c->lock);
	while (count < n && c->head < c->tail && end_of_first(c) <= now)
		done[count++] = c->jobs[c->head++ % DEPTH].job;
	pthread_mutex_unlock(&c->lock);
	for (unsigned int i = 0; i < count; i++)
		done[i]->result = result_of(done[i]);
	return (int)count;
}

static int wait(void *chan, int timeout_ms)
{
	struct chan *c = chan;
	uint64_t now = now_ns(), end = now + (uint64_t)timeout_ms * 1000000u;
	struct timespec left = { 0 };

	pthread_mutex_lock(&c->lock);
	if (c->head < c->tail && end_of_first(c) < end)
		end = end_of_first(c);
	pthread_mutex_unlock(&c->lock);
	/* To sleep takes about 60 us longer: the last part is spun. */
	if (end > now + 100000)
		left.tv_nsec = (long)((end - now - 80000) % 1000000000u);
	if (left.tv_nsec)
		nanosleep(&left, NULL);
	return 0;
}

static uint64_t number(const char *name)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 0) : 0;
}

static int init(void)
{
	delay_ns = 1000 * number("CHOICE_DELAY_US");
	gather_ns = 1000 * number("CHOICE_GATHER_US");
	byte_ps = number("CHOICE_PS");
	return getenv("CHOICE_DELAY_US") ? 0 : -ENODEV;
}

static const struct wd_alg_comp table = {
	.name = "clock",
	.priority = 40,
	.node = -1,
	.can = WD_COMP_CAN_DEFLATE | WD_COMP_CAN_INFLATE | WD_COMP_SIZED,
	.levels = 2,
	.min_window = 15,
	.init = init,
	.version = WD_COMP_DRV_VERSION,
	.size = sizeof(struct wd_alg_comp),
	.about = "a device that is a clock, to measure choice by cost",
	.limits = { .in_flight = DEPTH, .memory = WD_COMP_MEM_PROCESS },
	.open_chan = open_chan,
	.close_chan = close_chan,
	.submit = submit,
	.poll = poll,
	.wait = wait,
};

static const struct wd_alg_comp *const tables[] = { &table, NULL };

__attribute__((visibility("default"))) const struct wd_driver wd_driver = {
	.version = WD_DRIVER_VERSION,
	.size = sizeof(struct wd_driver),
	.comp = tables,
};
