/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls inflate* of weft and of zlib with the same arguments and compares each
 * call: return codes and messages, bytes consumed and produced, and every byte
 * of the output buffer and of 64 bytes behind it. Streams are valid, damaged
 * and deliberately invalid; they are cut everywhere, and every query is made
 * between two calls.
 */
#include "target.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#include "deflate_writer.h"
#include "zreal/real.h"

#define PACKED (48u << 10)
#define ROOM (72u << 10)
#define BEHIND 64u
#define DICT 40000u
#define NAME_ROOM 40

struct wf_fuzz_stats wf_fuzz_stats;

static uint8_t packed[PACKED], room[2][ROOM + 16 + BEHIND], dict[DICT];
static uint8_t plain[1 << 20];

#define next wf_fuzz_next
#define rarely wf_fuzz_rarely

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "line %d: %s\n", __LINE__, #cond);     \
			abort();                                               \
		}                                                              \
	} while (0)

/* One library: the real one (1), or weft by zlib's names (0). */
struct side {
	const struct wf_zreal *z;
	int which;
	int allocs; /* allocations that succeed */
	z_stream s;
	gz_header head;
	uint8_t texts[3][NAME_ROOM + 1];
};

#define CALL(side, name, ...)                                                  \
	((side)->which ? (side)->z->name(__VA_ARGS__) : name(__VA_ARGS__))
#define BOTH(ret, name, ...)                                                   \
	do {                                                                   \
		for (int i = 0; i < 2; i++) {                                  \
			struct side *d = &sides[i];                            \
                                                                               \
			(ret)[i] = CALL(d, name, __VA_ARGS__);                 \
		}                                                              \
	} while (0)

static void *quota_alloc(void *opaque, unsigned int items, unsigned int size)
{
	struct side *d = opaque;

	return d->allocs-- > 0 ? malloc((size_t)items * size) : NULL;
}

static void quota_free(void *opaque, void *ptr)
{
	(void)opaque;
	free(ptr);
}

static unsigned int size(struct wf_fuzz_program *p, unsigned int most)
{
	static const unsigned int scale[] = { 4, 40, 600, 5000 };
	unsigned int n = next(p, 6);

	n = n < 4 ? next(p, scale[n]) : most;
	return n < most ? n : most;
}

static void same(const struct side sides[2])
{
	const z_stream *a = &sides[0].s, *b = &sides[1].s;
	const gz_header *g = &sides[0].head, *h = &sides[1].head;

	CHECK(a->avail_in == b->avail_in);
	CHECK(a->avail_out == b->avail_out);
	CHECK(a->total_in == b->total_in);
	CHECK(a->total_out == b->total_out);
	CHECK(a->adler == b->adler);
	CHECK(a->data_type == b->data_type);
	CHECK(!a->msg == !b->msg);
	CHECK(!a->msg || !strcmp(a->msg, b->msg));
	CHECK(g->text == h->text && g->time == h->time && g->os == h->os);
	CHECK(g->xflags == h->xflags && g->extra_len == h->extra_len);
	CHECK(!g->extra == !h->extra && !g->name == !h->name);
	CHECK(!g->comment == !h->comment && g->hcrc == h->hcrc);
	CHECK(g->done == h->done);
	CHECK(!memcmp(sides[0].texts, sides[1].texts, sizeof(sides[0].texts)));
}

static void same_dict(struct side sides[2])
{
	static uint8_t windows[2][32768];
	uInt len[2];
	int ret[2];

	BOTH(ret, inflateGetDictionary, &d->s, windows[i], &len[i]);
	CHECK(ret[0] == ret[1]);
	CHECK(len[0] == len[1]);
	CHECK(!memcmp(windows[0], windows[1], len[0]));
}

/* Compressed by zlib, from data with some repetition. */
static size_t pack_real(struct wf_fuzz_program *p, const struct wf_zreal *z,
			bool with_dict)
{
	unsigned int len = next(p, rarely(p, 4) ? 60000 : 3000), at = 0;
	unsigned int alphabet = 1 + next(p, 256);
	z_stream s = { 0 };

	for (unsigned int i = 0; i < len; i++) {
		plain[i] = (uint8_t)next(p, alphabet);
		if (i > 300 && rarely(p, 16)) {
			unsigned int back = 1 + next(p, 300), n = next(p, 300);

			for (; n && i < len; n--, i++)
				plain[i] = plain[i - back];
		}
	}
	CHECK(z->deflateInit2_(&s, (int)next(p, 10), Z_DEFLATED, -15,
			       1 + (int)next(p, 9), (int)next(p, 5),
			       ZLIB_VERSION, sizeof(s)) == Z_OK);
	if (with_dict)
		z->deflateSetDictionary(&s, dict, 3000);
	s.next_out = packed + 400;
	s.avail_out = PACKED - 500;
	while (at < len) {
		unsigned int n = 1 + size(p, len - at - 1);

		s.next_in = plain + at;
		s.avail_in = n;
		z->deflate(&s, rarely(p, 3) ? (int)next(p, 4) : Z_NO_FLUSH);
		at += n;
	}
	z->deflate(&s, Z_FINISH);
	z->deflateEnd(&s);
	return s.total_out;
}

static unsigned int add_header(struct wf_fuzz_program *p, uint8_t *to, int wrap,
			       bool with_dict, const struct wf_zreal *z)
{
	uint8_t *at = to;
	unsigned int flags;

	if (wrap == 1) {
		unsigned int word = 0x0800 + (next(p, 8) << 12) +
				    (with_dict ? 0x20 : 0) + (next(p, 4) << 6);

		word += 31 - word % 31;
		*at++ = (uint8_t)(word >> 8);
		*at++ = (uint8_t)word;
		if (with_dict) {
			uLong id = z->adler32_z(1, dict, 3000);

			for (int i = 24; i >= 0; i -= 8)
				*at++ = (uint8_t)(id >> i);
		}
	} else if (wrap == 2) {
		flags = rarely(p, 2) ? next(p, 32) : 0;
		memcpy(at, "\x1f\x8b\x08", 3);
		at[3] = (uint8_t)flags;
		for (int i = 4; i < 10; i++)
			at[i] = (uint8_t)next(p, 256);
		at += 10;
		if (flags & 4) {
			unsigned int n = next(p, 60);

			*at++ = (uint8_t)n;
			*at++ = 0;
			while (n--)
				*at++ = (uint8_t)next(p, 256);
		}
		for (unsigned int text = 8; text <= 16; text *= 2) {
			unsigned int n = next(p, 60);

			if (!(flags & text))
				continue;
			while (n--)
				*at++ = (uint8_t)(1 + next(p, 255));
			*at++ = 0;
		}
		if (flags & 2) {
			uLong crc = z->crc32_z(0, to, (size_t)(at - to));

			*at++ = (uint8_t)crc;
			*at++ = (uint8_t)(crc >> 8);
		}
	}
	return (unsigned int)(at - to);
}

/* The checksum of the data that raw data unpacks to, if it does. */
static void add_trailer(struct wf_fuzz_program *p, const struct wf_zreal *z,
			size_t *len, int wrap, bool with_dict)
{
	uint8_t *at = packed + 400 + *len;
	uLong check, total;
	z_stream s = { 0 };

	CHECK(z->inflateInit2_(&s, -15, ZLIB_VERSION, sizeof(s)) == Z_OK);
	if (with_dict)
		z->inflateSetDictionary(&s, dict, 3000);
	s.next_in = packed + 400;
	s.avail_in = (uInt)*len;
	s.next_out = plain;
	s.avail_out = sizeof(plain);
	z->inflate(&s, Z_FINISH);
	*len -= s.avail_in;
	at -= s.avail_in;
	total = s.total_out;
	z->inflateEnd(&s);
	check = wrap == 1 ? z->adler32_z(1, plain, total) :
			    z->crc32_z(0, plain, total);
	if (rarely(p, 20))
		check ^= 1u << next(p, 32);
	if (rarely(p, 20))
		total ^= 1u << next(p, 32);
	for (int i = 0; i < 4; i++)
		*at++ = (uint8_t)(check >> (wrap == 1 ? 24 - 8 * i : 8 * i));
	for (int i = 0; i < 4 && wrap == 2; i++)
		*at++ = (uint8_t)(total >> (8 * i));
	*len = (size_t)(at - packed - 400);
}

/* Writes a stream to packed; returns its length. */
static size_t make_stream(struct wf_fuzz_program *p, const struct wf_zreal *z,
			  int wrap, bool with_dict)
{
	static const unsigned int wrongs[] = { 0, 0, 8, 40, 200 };
	uint8_t header[300];
	size_t len, made, head;

	if (rarely(p, 3))
		len = pack_real(p, z, with_dict);
	else
		len = wf_fuzz_write_deflate(p, packed + 400, 6000,
					    next(p, 3000), with_dict ? 3000 : 0,
					    wrongs[next(p, 5)], &made);
	if (wrap)
		add_trailer(p, z, &len, wrap, with_dict);
	head = add_header(p, header, wrap, with_dict, z);
	memmove(packed + head, packed + 400, len);
	memcpy(packed, header, head);
	len += head;
	if (rarely(p, 3)) {
		unsigned int flips = 1 + next(p, 3);

		while (flips--)
			packed[next(p, (unsigned int)len)] ^=
				(uint8_t)(1u << next(p, 8));
	}
	if (rarely(p, 6))
		len = next(p, (unsigned int)len + 1);
	for (unsigned int n = next(p, 40); n && len < PACKED; n--)
		packed[len++] = (uint8_t)next(p, 256);
	return len;
}

/* inflateSync() of zlib before 1.3 looks for the wrong bits. */
static bool sync_is_right(const struct side *d)
{
	unsigned int bits = (unsigned int)d->s.data_type & 63;

	return bits < 8 || !(bits & 7) ||
	       strcmp(d->z->zlibVersion(), "1.3") >= 0;
}

/* A query or change between two calls. Returns the amount of input used. */
static size_t ask(struct wf_fuzz_program *p, struct side sides[2], int bits)
{
	unsigned int what = next(p, 12), n = next(p, 17);
	unsigned int have = (unsigned int)sides[0].s.data_type & 63;
	int value = (int)next(p, 65536);
	long ret[2] = { 0, 0 };
	size_t before = sides[0].s.avail_in;
	z_stream copies[2];

	switch (what) {
	case 0:
		BOTH(ret, inflateSyncPoint, &d->s);
		break;
	case 1:
		BOTH(ret, inflateValidate, &d->s, value & 1);
		break;
	case 2:
		/* With more bits, zlib returns bytes that it never had. */
		if (have + n < 8)
			BOTH(ret, inflatePrime, &d->s, (int)n, value);
		break;
	case 3:
		if (sync_is_right(&sides[1]) && rarely(p, 3))
			BOTH(ret, inflateSync, &d->s);
		break;
	case 4:
		if (!rarely(p, 4))
			break;
		if (value & 1)
			BOTH(ret, inflateReset, &d->s);
		else
			BOTH(ret, inflateResetKeep, &d->s);
		break;
	case 5:
		if (rarely(p, 8))
			BOTH(ret, inflateReset2, &d->s,
			     value & 1 ? bits : (int)n * 3 - 16);
		break;
	case 6:
		BOTH(ret, inflateCopy, &copies[i], &d->s);
		if (ret[0] != Z_OK || ret[1] != Z_OK)
			break;
		for (int i = 0; i < 2; i++) {
			sides[i].allocs += 2;
			CALL(&sides[i], inflateEnd, &sides[i].s);
		}
		BOTH(ret, inflateCopy, &d->s, &copies[i]);
		for (int i = 0; i < 2; i++)
			CALL(&sides[i], inflateEnd, &copies[i]);
		break;
	case 7:
		BOTH(ret, inflateUndermine, &d->s, value & 1);
		break;
	case 8:
		if (rarely(p, 3))
			BOTH(ret, inflateSetDictionary, &d->s, dict,
			     value & 1 ? n : (uInt)value % DICT);
		break;
	case 9:
		if (rarely(p, 3))
			BOTH(ret, inflatePrime, &d->s, -1, 0);
		break;
	default:
		same_dict(sides);
		break;
	}
	CHECK(ret[0] == ret[1]);
	same(sides);
	return before - sides[0].s.avail_in;
}

static void compare_all(struct side sides[2])
{
	unsigned long used[2];
	long mark[2];

	same(sides);
	BOTH(mark, inflateMark, &d->s);
	CHECK(mark[0] == mark[1]);
	BOTH(used, inflateCodesUsed, &d->s);
	CHECK(used[0] == used[1]);
}

/* A copy of input directly before memory that cannot be read. */
static uint8_t *guarded(const uint8_t *from, size_t len)
{
	static uint8_t *end;

	if (!end) {
		uint8_t *map = mmap(NULL, PACKED * 2, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(map != MAP_FAILED);
		end = map + PACKED;
		CHECK(!mprotect(end, PACKED, PROT_NONE));
	}
	memcpy(end - len, from, len);
	return end - len;
}

static int one_call(struct wf_fuzz_program *p, struct side sides[2], size_t at,
		    size_t n)
{
	static const int flushes[] = { Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FINISH,
				       Z_NO_FLUSH, Z_BLOCK,	 Z_TREES };
	int flush = flushes[next(p, rarely(p, 2) ? 6 : 3)], ret[2];
	unsigned int skew = next(p, 16), len;
	uint8_t *in = guarded(packed + at, n);

	len = size(p, rarely(p, 4) ? ROOM : 8000);
	for (int i = 0; i < 2; i++) {
		struct side *d = &sides[i];

		memset(room[i] + skew, 0x5a, len + BEHIND);
		d->s.next_in = in;
		d->s.avail_in = (uInt)n;
		d->s.next_out = room[i] + skew;
		d->s.avail_out = len;
		ret[i] = CALL(d, inflate, &d->s, flush);
		CHECK(d->s.next_in == in + n - d->s.avail_in);
		CHECK(d->s.next_out == room[i] + skew + len - d->s.avail_out);
	}
	CHECK(ret[0] == ret[1]);
	CHECK(!memcmp(room[0] + skew, room[1] + skew, len + BEHIND));
	compare_all(sides);
	wf_fuzz_stats.slots++; /* calls */
	return ret[0];
}

static void run_calls(struct wf_fuzz_program *p, struct side sides[2],
		      size_t len, int bits)
{
	bool asks = rarely(p, 2), dribble = rarely(p, 5);
	unsigned int calls = 0, idle = 0;
	size_t at = 0;
	int ret = Z_OK;

	while (idle < 3 && calls++ < 300) {
		size_t n = dribble ? next(p, 3) :
				     size(p, (unsigned int)(len - at));
		uInt left;

		n = n < len - at ? n : len - at;
		ret = one_call(p, sides, at, n);
		left = sides[0].s.avail_in;
		idle = left == n && !(left && ret == Z_OK) ? idle + 1 : 0;
		at += n - left;
		if (ret == Z_STREAM_END || ret == Z_DATA_ERROR)
			idle++;
		if (ret == Z_NEED_DICT) {
			uInt dict_len = rarely(p, 8) ? 2999 : 3000;
			int rets[2];

			BOTH(rets, inflateSetDictionary, &d->s, dict, dict_len);
			CHECK(rets[0] == rets[1]);
			compare_all(sides);
		}
		if (asks && rarely(p, 3))
			at += ask(p, sides, bits);
	}
	same_dict(sides);
	if (ret == Z_STREAM_END)
		wf_fuzz_stats.completed++;
	else
		wf_fuzz_stats.failed++;
}

static int reader_bits(struct wf_fuzz_program *p, int wrap)
{
	int bits = 8 + (int)next(p, 8);

	if (!rarely(p, 3))
		bits = 15;
	if (rarely(p, 12))
		return (int)next(p, 70) - 18;
	if (wrap == 1 && rarely(p, 6))
		return 0;
	return wrap == 0    ? -bits :
	       rarely(p, 4) ? bits + 32 :
	       wrap == 1    ? bits :
			      bits + 16;
}

/* Decompresses the stream in packed once. */
static void run_stream(struct wf_fuzz_program *p, const struct wf_zreal *z,
		       size_t len, int wrap, bool with_dict)
{
	struct side sides[2] = { { .z = z }, { .z = z, .which = 1 } };
	int bits = reader_bits(p, wrap), ret[2];
	bool header = rarely(p, 2);
	int quota = rarely(p, 30) ? (int)next(p, 4) : 1000000;

	for (int i = 0; i < 2; i++) {
		struct side *d = &sides[i];

		d->allocs = quota;
		d->s.zalloc = quota_alloc;
		d->s.zfree = quota_free;
		d->s.opaque = d;
		ret[i] = CALL(d, inflateInit2_, &d->s, bits, ZLIB_VERSION,
			      (int)sizeof(z_stream));
		CHECK(!d->s.state == (ret[i] != Z_OK));
	}
	CHECK(ret[0] == ret[1]);
	same(sides);
	if (ret[0] != Z_OK)
		return;
	for (int i = 0; i < 2 && header; i++) {
		sides[i].head.extra = sides[i].texts[0];
		sides[i].head.name = sides[i].texts[1];
		sides[i].head.comment = sides[i].texts[2];
		sides[i].head.extra_max = sides[i].head.name_max =
			sides[i].head.comm_max = len % NAME_ROOM;
	}
	if (header) {
		BOTH(ret, inflateGetHeader, &d->s, &d->head);
		CHECK(ret[0] == ret[1]);
	}
	if (with_dict && bits < 0) {
		BOTH(ret, inflateSetDictionary, &d->s, dict, 3000);
		CHECK(ret[0] == ret[1]);
	}
	/* Passes a part of the first byte by inflatePrime(): the rest is
	 * shifted, and invalid. */
	if (bits < 0 && rarely(p, 20)) {
		int n = (int)next(p, 17), value = packed[0] | packed[1] << 8;

		BOTH(ret, inflatePrime, &d->s, n, value);
		CHECK(ret[0] == ret[1]);
	}
	compare_all(sides);
	run_calls(p, sides, len, bits);
	BOTH(ret, inflateEnd, &d->s);
	CHECK(ret[0] == Z_OK && ret[1] == Z_OK);
}

/* Each stream is cut in several ways, because making one takes longer than
 * reading it. */
static void run_inflate(struct wf_fuzz_program *p, const struct wf_zreal *z)
{
	int wrap = (int)next(p, 3);
	bool with_dict = wrap < 2 && rarely(p, 5);
	size_t len = make_stream(p, z, wrap, with_dict);

	for (unsigned int turns = 1 + next(p, 4); turns; turns--)
		run_stream(p, z, len, wrap, with_dict);
}

/* The input of inflateBack() in pieces, and its output. */
struct pipe {
	size_t at;
	size_t len;
	size_t piece;
	size_t out;
	uLong crc;
	unsigned int calls;
	unsigned int stop; /* out() fails at this call */
	const struct wf_zreal *z;
};

static unsigned int pipe_in(void *arg, z_const unsigned char **from)
{
	struct pipe *q = arg;
	size_t n = q->piece < q->len - q->at ? q->piece : q->len - q->at;

	*from = packed + q->at;
	q->at += n;
	return (unsigned int)n;
}

static int pipe_out(void *arg, unsigned char *data, unsigned int len)
{
	struct pipe *q = arg;

	q->crc = q->z->crc32_z(q->crc, data, len);
	q->out += len;
	return ++q->calls == q->stop || q->out > 4u << 20;
}

static bool is_too_far(const struct side *d)
{
	return d->s.msg && strstr(d->s.msg, "too far");
}

static void run_back(struct wf_fuzz_program *p, const struct wf_zreal *z)
{
	struct side sides[2] = { { .z = z }, { .z = z, .which = 1 } };
	size_t len = make_stream(p, z, 0, false), first = size(p, 300);
	int bits = rarely(p, 2) ? 15 : 8 + (int)next(p, 8), ret[2];
	struct pipe pipes[2];

	pipes[0] = (struct pipe){ .len = len,
				  .piece = 1 + size(p, 5000),
				  .stop = rarely(p, 8) ? 1 + next(p, 4) : 0,
				  .z = z };
	first = first < len ? first : len;
	pipes[0].at = first;
	pipes[1] = pipes[0];
	for (int i = 0; i < 2; i++) {
		struct side *d = &sides[i];

		memset(room[i], 0, 32768);
		memset(room[i] + (1u << bits), 0x5a, BEHIND);
		CHECK(CALL(d, inflateBackInit_, &d->s, bits, room[i],
			   ZLIB_VERSION, (int)sizeof(z_stream)) == Z_OK);
		d->s.next_in = packed;
		d->s.avail_in = (uInt)first;
		ret[i] = CALL(d, inflateBack, &d->s, pipe_in, &pipes[i],
			      pipe_out, &pipes[i]);
	}
	/* zlib's fast loop accepts some distances that its slow one rejects. */
	if (!is_too_far(&sides[0]) && !is_too_far(&sides[1])) {
		CHECK(ret[0] == ret[1]);
		CHECK(pipes[0].at == pipes[1].at);
		CHECK(pipes[0].out == pipes[1].out);
		CHECK(pipes[0].crc == pipes[1].crc);
		CHECK(pipes[0].calls == pipes[1].calls);
		CHECK(sides[0].s.next_in == sides[1].s.next_in);
		CHECK(sides[0].s.avail_in == sides[1].s.avail_in);
		CHECK(!sides[0].s.msg == !sides[1].s.msg);
		CHECK(!sides[0].s.msg ||
		      !strcmp(sides[0].s.msg, sides[1].s.msg));
		CHECK(!memcmp(room[0], room[1], 32768 + BEHIND));
	}
	BOTH(ret, inflateBackEnd, &d->s);
	CHECK(ret[0] == Z_OK && ret[1] == Z_OK);
}

static void run_whole(struct wf_fuzz_program *p, const struct wf_zreal *z)
{
	uLong src[2], dst[2];
	int ret[2];

	src[0] = make_stream(p, z, 1, false);
	dst[0] = size(p, ROOM);
	src[1] = src[0];
	dst[1] = dst[0];
	memset(room, 0x5a, sizeof(room));
	ret[0] = uncompress2(room[0], &dst[0], packed, &src[0]);
	ret[1] = z->uncompress2(room[1], &dst[1], packed, &src[1]);
	CHECK(ret[0] == ret[1]);
	CHECK(src[0] == src[1] && dst[0] == dst[1]);
	CHECK(!memcmp(room[0], room[1], sizeof(room[0])));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len)
{
	struct wf_fuzz_program p = { input, len, len + 1 };
	const struct wf_zreal *z = wf_zreal_get();

	CHECK(z);
	if (!dict[1]) {
		for (unsigned int i = 0; i < DICT; i++)
			dict[i] = (uint8_t)(i * 2654435761u >> 20);
		dict[1] = 1;
	}
	p.more = (uint64_t)next(&p, 1u << 12) << 32 | next(&p, 1u << 12);
	if (rarely(&p, 12))
		run_back(&p, z);
	else if (rarely(&p, 20))
		run_whole(&p, z);
	else
		run_inflate(&p, z);
	return 0;
}
