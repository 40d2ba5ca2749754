/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A compression driver as a plug-in: `make driver.so`, then
 *
 *	WD_DRIVER_PATH=$PWD WD_COMP_DRIVER=example weft gzip file
 *
 * or any program that uses zlib, with libweft-z.so preloaded. The device is a
 * thread here; what a real one needs is the same: a queue, a way to learn that a
 * job is done, and the promise that closing a channel lets go of all memory. It
 * looks for repetitions in one place only and uses the fixed codes of RFC 1951,
 * 3.2.6, so that all of it can be read at one go; it is no rival of zlib. It
 * decompresses what it makes, and leaves blocks with other codes to others.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weft/wd_comp_drv.h>

/* -- the work: one piece of raw deflate data -------------------------------- */

#define HASH_BITS 13
#define WINDOW 32768u
#define MATCH_MIN 4u
#define MATCH_MAX 258u
#define SYMBOL_BYTES 8u /* the longest one with what waits before it */

struct writer {
	uint8_t *at, *end;
	uint64_t bits;
	unsigned int count;
};

static void put(struct writer *w, unsigned int value, unsigned int count)
{
	w->bits |= (uint64_t)value << w->count;
	for (w->count += count; w->count >= 8; w->count -= 8) {
		*w->at++ = (uint8_t)w->bits;
		w->bits >>= 8;
	}
}

/* Huffman codes begin with their highest bit. */
static void put_code(struct writer *w, unsigned int code, unsigned int count)
{
	unsigned int turned = 0;

	for (unsigned int i = 0; i < count; i++)
		turned |= (code >> i & 1) << (count - 1 - i);
	put(w, turned, count);
}

static void put_symbol(struct writer *w, unsigned int symbol)
{
	if (symbol < 144)
		put_code(w, 0x30 + symbol, 8);
	else if (symbol < 256)
		put_code(w, 0x190 + symbol - 144, 9);
	else if (symbol < 280)
		put_code(w, symbol - 256, 7);
	else
		put_code(w, 0xc0 + symbol - 280, 8);
}

/* RFC 1951, 3.2.5: @per codes for each number of extra bits, after the first
 * 2 x @per, which have none. */
static unsigned int code_of(unsigned int value, unsigned int per_log2,
			    unsigned int *extra)
{
	unsigned int top = 31 - (unsigned int)__builtin_clz(value | 1);

	*extra = top > per_log2 ? top - per_log2 : 0;
	return (*extra << per_log2) + (value >> *extra);
}

static void put_match(struct writer *w, unsigned int length, unsigned int back)
{
	unsigned int extra, code;

	if (length == MATCH_MAX) {
		put_symbol(w, 285);
	} else {
		code = code_of(length - 3, 2, &extra);
		put_symbol(w, 257 + code);
		put(w, (length - 3) & ((1u << extra) - 1), extra);
	}
	code = code_of(back - 1, 1, &extra);
	put_code(w, code, 5);
	put(w, (back - 1) & ((1u << extra) - 1), extra);
}

static unsigned int hash_of(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return word * 2654435761u >> (32 - HASH_BITS);
}

/* How many bytes are the same, @most at most. */
static unsigned int same(const uint8_t *a, const uint8_t *b, size_t most)
{
	unsigned int n = 0;

	while (n < most && n < MATCH_MAX && a[n] == b[n])
		n++;
	return n;
}

static int compress_job(struct wd_comp_job *job)
{
	static _Thread_local const uint8_t *seen[1u << HASH_BITS];
	struct writer w = { job->dst, job->dst + job->dst_len, 0, 0 };
	const uint8_t *at = job->src, *end = at + job->src_len;
	bool last = job->flush == WD_COMP_FINISH;

	memset(seen, 0, sizeof(seen));
	if (job->dst_len < 2 * SYMBOL_BYTES)
		return -ENOSPC;
	put(&w, last, 1);
	put(&w, 1, 2); /* fixed codes */
	while (at < end) {
		unsigned int length = 0;
		const uint8_t *old = NULL;

		if ((size_t)(w.end - w.at) < 2 * SYMBOL_BYTES)
			return -ENOSPC;
		if (end - at >= (ptrdiff_t)MATCH_MIN) {
			unsigned int hash = hash_of(at);

			old = seen[hash];
			seen[hash] = at;
		}
		if (old && (size_t)(at - old) <= WINDOW)
			length = same(old, at, (size_t)(end - at));
		if (length >= MATCH_MIN) {
			put_match(&w, length, (unsigned int)(at - old));
			at += length;
		} else {
			put_symbol(&w, *at++);
		}
	}
	put_symbol(&w, 256); /* end of block */
	if (!last)
		put(&w, 0, 3); /* an empty stored block, up to a byte */
	put(&w, 0, (8 - w.count) & 7);
	if (!last) {
		put(&w, 0x0000, 16);
		put(&w, 0xffff, 16);
	}
	job->consumed = job->src_len;
	job->produced = (size_t)(w.at - job->dst);
	return 0;
}

struct reader {
	const uint8_t *at, *end;
	unsigned int bits, count; /* fewer than 8 are left over */
	bool short_of;		  /* the input has ended */
};

static unsigned int get(struct reader *r, unsigned int count)
{
	unsigned int value;

	while (r->count < count) {
		r->short_of = r->short_of || r->at == r->end;
		r->bits |= (r->short_of ? 0u : *r->at++) << r->count;
		r->count += 8;
	}
	value = r->bits & ((1u << count) - 1);
	r->bits >>= count;
	r->count -= count;
	return value;
}

static unsigned int get_code(struct reader *r, unsigned int code,
			     unsigned int count)
{
	while (count--)
		code = code << 1 | get(r, 1);
	return code;
}

/* The opposite of put_symbol(). */
static unsigned int get_symbol(struct reader *r)
{
	unsigned int code = get_code(r, 0, 7);

	if (code < 0x18)
		return 256 + code;
	code = get_code(r, code, 1);
	if (code < 0xc0)
		return code - 0x30;
	if (code < 0xc8)
		return 280 + code - 0xc0;
	return 144 + get_code(r, code, 1) - 0x190;
}

/* The opposite of code_of(). */
static unsigned int value_of(struct reader *r, unsigned int code,
			     unsigned int per_log2)
{
	unsigned int per = 1u << per_log2, extra;

	if (code < 2 * per)
		return code;
	extra = (code >> per_log2) - 1;
	return ((per + (code & (per - 1))) << extra) + get(r, extra);
}

/* A length symbol has been read: the rest of the match. */
static int get_match(struct reader *r, unsigned int symbol, struct writer *w,
		     const uint8_t *first)
{
	unsigned int length = MATCH_MAX, code, back;

	if (symbol > 285)
		return -EBADMSG;
	if (symbol < 285)
		length = 3 + value_of(r, symbol - 257, 2);
	code = get_code(r, 0, 5);
	if (r->short_of)
		return -ENODATA;
	if (code > 29)
		return -EBADMSG;
	back = 1 + value_of(r, code, 1);
	if (r->short_of)
		return -ENODATA;
	if (back > (size_t)(w->at - first))
		return -EBADMSG;
	if (length > (size_t)(w->end - w->at))
		return -ENOSPC;
	for (; length; length--, w->at++)
		*w->at = w->at[-(ptrdiff_t)back];
	return 0;
}

static int get_fixed(struct reader *r, struct writer *w, const uint8_t *first)
{
	for (;;) {
		unsigned int symbol = get_symbol(r);
		int err = 0;

		if (r->short_of)
			return -ENODATA;
		if (symbol == 256)
			return 0;
		if (symbol > 256)
			err = get_match(r, symbol, w, first);
		else if (w->at == w->end)
			err = -ENOSPC;
		else
			*w->at++ = (uint8_t)symbol;
		if (err)
			return err;
	}
}

static int get_stored(struct reader *r, struct writer *w)
{
	unsigned int length, inverse;

	r->count = 0; /* the next byte */
	r->bits = 0;
	length = get(r, 16);
	inverse = get(r, 16);
	if (r->short_of)
		return -ENODATA;
	if ((length ^ inverse) != 0xffff)
		return -EBADMSG;
	if (length > (size_t)(w->end - w->at))
		return -ENOSPC;
	if (length > (size_t)(r->end - r->at))
		return -ENODATA;
	memcpy(w->at, r->at, length);
	w->at += length;
	r->at += length;
	return 0;
}

static int decompress_job(struct wd_comp_job *job)
{
	struct reader r = { job->src, job->src + job->src_len, 0, 0, false };
	struct writer w = { job->dst, job->dst + job->dst_len, 0, 0 };
	int err = 0;

	while (!err && !job->ended) {
		bool last = get(&r, 1);

		switch (get(&r, 2)) {
		case 0:
			err = get_stored(&r, &w);
			break;
		case 1:
			err = get_fixed(&r, &w, job->dst);
			break;
		case 2: /* codes of its own: another driver does it */
			err = r.short_of ? -ENODATA : -ENOTSUP;
			break;
		default:
			err = r.short_of ? -ENODATA : -EBADMSG;
		}
		job->ended = !err && last;
	}
	job->consumed = (size_t)(r.at - job->src);
	job->produced = (size_t)(w.at - job->dst);
	return err;
}

/* -- the channel ------------------------------------------------------------ */

#define DEPTH 64

struct channel {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	bool stop;
	/* Counts of jobs: what was submitted, worked on and polled. */
	unsigned int in, worked, out;
	struct wd_comp_job *jobs[DEPTH];
};

static void *device(void *arg)
{
	struct channel *c = arg;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		struct wd_comp_job *job = c->jobs[c->worked % DEPTH];

		if (c->worked == c->in) {
			pthread_cond_wait(&c->work, &c->lock);
			continue;
		}
		pthread_mutex_unlock(&c->lock);
		job->result =
			job->inflate ? decompress_job(job) : compress_job(job);
		pthread_mutex_lock(&c->lock);
		c->worked++;
		pthread_cond_signal(&c->done);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static int open_channel(void **chan, struct wd_chan *ch, unsigned int can)
{
	struct channel *c = calloc(1, sizeof(*c));
	sigset_t all, old;
	int err;

	(void)can; /* it does both */
	(void)ch;  /* no device of ours has an api, so nobody gives us one */
	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	pthread_cond_init(&c->done, NULL);
	/* The program's signals are for the program's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&c->thread, NULL, device, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		free(c);
		return -err;
	}
	*chan = c;
	return 0;
}

static void close_channel(void *chan)
{
	struct channel *c = chan;

	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_signal(&c->work);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL); /* it touches no job any more */
	free(c);
}

static int submit_jobs(void *chan, struct wd_comp_job *const *jobs,
		       unsigned int n)
{
	struct channel *c = chan;
	unsigned int taken = 0;

	pthread_mutex_lock(&c->lock);
	while (taken < n && c->in - c->out < DEPTH)
		c->jobs[c->in++ % DEPTH] = jobs[taken++];
	pthread_cond_signal(&c->work);
	pthread_mutex_unlock(&c->lock);
	return (int)taken;
}

static int poll_jobs(void *chan, struct wd_comp_job **done, unsigned int n)
{
	struct channel *c = chan;
	unsigned int taken = 0;

	pthread_mutex_lock(&c->lock);
	while (taken < n && c->out != c->worked)
		done[taken++] = c->jobs[c->out++ % DEPTH];
	pthread_mutex_unlock(&c->lock);
	return (int)taken;
}

static int wait_jobs(void *chan, int timeout_ms)
{
	struct channel *c = chan;
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += timeout_ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	pthread_mutex_lock(&c->lock);
	if (c->out == c->worked)
		pthread_cond_timedwait(&c->done, &c->lock, &until);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

/* -- the tables ------------------------------------------------------------- */

static const struct wd_alg_comp table = {
	.name = "example",
	.priority = 10, /* below the libraries: it is used when asked for */
	.node = -1,
	.can = WD_COMP_CAN_DEFLATE | WD_COMP_CAN_INFLATE | WD_COMP_SIZED,
	.levels = 0x3fe, /* 1 to 9 */
	.min_window = 15,
	.version = WD_COMP_DRV_VERSION,
	.size = sizeof(struct wd_alg_comp),
	.about = "the example of weft: a thread, fixed codes",
	.limits = {
		.in_flight = DEPTH,
		.memory = WD_COMP_MEM_PROCESS,
	},
	.open_chan = open_channel,
	.close_chan = close_channel,
	.submit = submit_jobs,
	.poll = poll_jobs,
	.wait = wait_jobs,
};

static const struct wd_alg_comp *const tables[] = { &table, NULL };

const struct wd_driver wd_driver = {
	.version = WD_DRIVER_VERSION,
	.size = sizeof(struct wd_driver),
	.comp = tables,
};
