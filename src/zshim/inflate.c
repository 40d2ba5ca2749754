/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inflate* of zlib, by deflate/inflate.h: this file turns a z_stream into its
 * terms and back, and checks what zlib checks before. If WD_COMP_DRIVER names a
 * driver, zshim/ahead.h lets it do what it can. The real zlib is not asked for
 * anything here.
 */
#include "zshim/state.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "alg/stats.h"
#include "base/cpu.h"
#include "deflate/back.h"
#include "deflate/inflate.h"
#include "zshim/ahead.h"

/* The caller's gz_header is filled in as it is. */
#define SAME(ours, zlibs)                                                      \
	static_assert(offsetof(struct wf_inflate_head, ours) ==                \
			      offsetof(gz_header, zlibs),                      \
		      #zlibs)
static_assert(sizeof(struct wf_inflate_head) == sizeof(gz_header), "size");
SAME(text, text);
SAME(time, time);
SAME(xflags, xflags);
SAME(os, os);
SAME(extra, extra);
SAME(extra_len, extra_len);
SAME(extra_max, extra_max);
SAME(name, name);
SAME(name_max, name_max);
SAME(comment, comment);
SAME(comment_max, comm_max);
SAME(hcrc, hcrc);
SAME(done, done);

/* Bytes of output after which they are counted for `weft stat`; fewer are counted
 * when the stream ends, so that small calls cost nothing. */
#define COUNT_AT (64u << 10)

struct inflater {
	struct wf_zshim_head head;
	uint64_t in, out;	      /* not yet counted */
	struct wf_zshim_ahead *ahead; /* NULL: no driver is named */
	struct wf_inflate s;
	struct wf_inflate_codes codes;
};

/* NULL: it is none. */
static struct inflater *inflater_of(z_streamp strm)
{
	if (!wf_zshim_is(strm, WF_ZSHIM_INFLATE) || !strm->zalloc ||
	    !strm->zfree)
		return NULL;
	return (struct inflater *)strm->state;
}

/* For what only the decoder knows. */
static struct wf_inflate *ours(z_streamp strm)
{
	struct inflater *in = inflater_of(strm);

	if (in && wf_unlikely(in->ahead))
		wf_zshim_ahead_retreat(in->ahead, &in->s);
	return in ? &in->s : NULL;
}

/* For what begins a new stream. */
static struct wf_inflate *ours_anew(z_streamp strm)
{
	struct inflater *in = inflater_of(strm);

	if (in && wf_unlikely(in->ahead))
		wf_zshim_ahead_reset(in->ahead);
	return in ? &in->s : NULL;
}

static void count(struct inflater *in, unsigned int streams)
{
	if (in->in || in->out)
		wf_alg_stats_inflated(streams, in->in, in->out);
	in->in = 0;
	in->out = 0;
}

/* The one place where results become zlib's. */
static int to_zlib(enum wf_inflate_ret ret)
{
	switch (ret) {
	case WF_INFLATE_OK:
		return Z_OK;
	case WF_INFLATE_END:
		return Z_STREAM_END;
	case WF_INFLATE_NEED_DICT:
		return Z_NEED_DICT;
	case WF_INFLATE_NO_PROGRESS:
		return Z_BUF_ERROR;
	case WF_INFLATE_BAD_DATA:
		return Z_DATA_ERROR;
	case WF_INFLATE_NO_MEMORY:
		return Z_MEM_ERROR;
	default:
		return Z_STREAM_ERROR;
	}
}

/* Parses windowBits; false if it is no valid value. */
static bool parse_bits(int bits, int *wrap, unsigned int *wbits)
{
	if (bits < 0) {
		if (bits < -15)
			return false;
		*wrap = WF_INFLATE_RAW;
		bits = -bits;
	} else {
		/* 16 more: gzip only; 32 more: either. */
		*wrap = (bits >> 4) + WF_INFLATE_ZLIB + WF_INFLATE_CHECK;
		if (bits < 48)
			bits &= 15;
	}
	*wbits = (unsigned int)bits;
	return !bits || (bits >= 8 && bits <= 15);
}

/* Changes the same members of the stream as a reset by zlib does. */
static void begin(z_streamp strm, const struct wf_inflate *s)
{
	strm->total_in = 0;
	strm->total_out = 0;
	strm->msg = NULL;
	/* Raw streams have no checksum: it stays as it is. */
	if (s->wrap)
		strm->adler = s->wrap & WF_INFLATE_ZLIB;
}

static void destroy(z_streamp strm, struct inflater *in)
{
	if (in->ahead) {
		wf_zshim_ahead_reset(in->ahead);
		strm->zfree(strm->opaque, in->ahead);
	}
	strm->zfree(strm->opaque, in);
	strm->state = NULL;
}

static struct inflater *create(z_streamp strm, uint64_t magic)
{
	struct wd_comp_mem mem = wf_zshim_mem(strm);
	struct inflater *in = mem.alloc(mem.opaque, sizeof(*in));

	if (!in)
		return NULL;
	in->s.mem = mem;
	in->in = 0;
	in->out = 0;
	in->ahead = NULL;
	/* Without this memory the stream uses no driver. Plain data that is kept
	 * is not allocated by the stream's own function, because few programs
	 * expect so much there. */
	if (magic == WF_ZSHIM_INFLATE && wf_zshim_ahead_is_wanted())
		in->ahead = mem.alloc(mem.opaque, sizeof(*in->ahead));
	if (in->ahead)
		*in->ahead = (struct wf_zshim_ahead){ 0 };
	in->head.strm = strm;
	in->head.magic = magic;
	strm->state = (struct internal_state *)in;
	return in;
}

WF_ZSHIM_API int inflateInit2_(z_streamp strm, int bits, const char *version,
			       int stream_size)
{
	struct inflater *in;
	unsigned int wbits;
	int wrap;

	if (wf_zshim_check_version(version, stream_size))
		return Z_VERSION_ERROR;
	if (!strm)
		return Z_STREAM_ERROR;
	strm->msg = NULL;
	in = create(strm, WF_ZSHIM_INFLATE);
	if (!in)
		return Z_MEM_ERROR;
	if (!parse_bits(bits, &wrap, &wbits)) {
		destroy(strm, in);
		return Z_STREAM_ERROR;
	}
	wf_deflate_inflate_init(&in->s, &in->codes, in->s.mem, wrap, wbits);
	begin(strm, &in->s);
	return Z_OK;
}

WF_ZSHIM_API int inflateInit_(z_streamp strm, const char *version,
			      int stream_size)
{
	return inflateInit2_(strm, MAX_WBITS, version, stream_size);
}

static enum wf_inflate_flush flush_of(int flush)
{
	return flush == Z_FINISH ? WF_INFLATE_FINISH :
	       flush == Z_BLOCK	 ? WF_INFLATE_BLOCK :
	       flush == Z_TREES	 ? WF_INFLATE_TREES :
				   WF_INFLATE_GO;
}

WF_ZSHIM_API int inflate(z_streamp strm, int flush)
{
	struct inflater *in = inflater_of(strm);
	struct wf_inflate_io io;
	enum wf_inflate_ret ret;
	struct wf_inflate *s;

	if (!in || !strm->next_out || (!strm->next_in && strm->avail_in))
		return Z_STREAM_ERROR;
	s = &in->s;
	io = (struct wf_inflate_io){ strm->next_in, strm->avail_in,
				     strm->next_out, strm->avail_out };
	if (wf_unlikely(in->ahead))
		ret = wf_zshim_ahead_run(in->ahead, s, &io, flush_of(flush));
	else
		ret = wf_deflate_inflate_run(s, &io, flush_of(flush));
	if (wf_likely(!in->ahead || !in->ahead->served)) {
		in->in += strm->avail_in - io.in_len;
		in->out += strm->avail_out - io.out_len;
	}
	if (ret == WF_INFLATE_END || in->out >= COUNT_AT)
		count(in, ret == WF_INFLATE_END);
	if (s->counted) {
		strm->total_in += strm->avail_in - io.in_len;
		strm->total_out += strm->avail_out - io.out_len;
		strm->data_type = wf_deflate_inflate_data_type(s);
	}
	strm->next_in = (z_const Bytef *)(uintptr_t)io.in;
	strm->avail_in = (uInt)io.in_len;
	strm->next_out = io.out;
	strm->avail_out = (uInt)io.out_len;
	if (s->msg)
		strm->msg = (char *)(uintptr_t)s->msg;
	if (s->adler_new)
		strm->adler = s->adler;
	return to_zlib(ret);
}

WF_ZSHIM_API int inflateEnd(z_streamp strm)
{
	struct inflater *in = inflater_of(strm);

	if (!in)
		return Z_STREAM_ERROR;
	count(in, 0);
	wf_deflate_inflate_end(&in->s);
	destroy(strm, in);
	return Z_OK;
}

WF_ZSHIM_API int inflateReset(z_streamp strm)
{
	struct wf_inflate *s = ours_anew(strm);

	if (!s)
		return Z_STREAM_ERROR;
	wf_deflate_inflate_reset(s);
	begin(strm, s);
	return Z_OK;
}

WF_ZSHIM_API int inflateResetKeep(z_streamp strm)
{
	struct wf_inflate *s = ours_anew(strm);

	if (!s)
		return Z_STREAM_ERROR;
	wf_deflate_inflate_reset_keep(s);
	begin(strm, s);
	return Z_OK;
}

WF_ZSHIM_API int inflateReset2(z_streamp strm, int bits)
{
	struct wf_inflate *s;
	unsigned int wbits;
	int wrap;

	if (!inflater_of(strm) || !parse_bits(bits, &wrap, &wbits))
		return Z_STREAM_ERROR;
	s = ours_anew(strm);
	wf_deflate_inflate_reset2(s, wrap, wbits);
	begin(strm, s);
	return Z_OK;
}

/* Copies the state of the driver's part, after the source has gone back to the
 * decoder. */
static bool copy_ahead(struct inflater *to, const struct inflater *from)
{
	if (!from->ahead)
		return true;
	return to->ahead && wf_zshim_ahead_copy(to->ahead, from->ahead);
}

WF_ZSHIM_API int inflateCopy(z_streamp dest, z_streamp source)
{
	struct wf_inflate *s = ours(source);
	struct inflater *in;
	z_stream copy;

	if (!s || !dest)
		return Z_STREAM_ERROR;
	copy = *source;
	in = create(&copy, WF_ZSHIM_INFLATE);
	if (!in)
		return Z_MEM_ERROR;
	if (wf_deflate_inflate_copy(&in->s, &in->codes, s, in->s.mem) !=
	    WF_INFLATE_OK) {
		destroy(&copy, in);
		return Z_MEM_ERROR;
	}
	if (!copy_ahead(in, (struct inflater *)source->state)) {
		wf_deflate_inflate_end(&in->s);
		destroy(&copy, in);
		return Z_MEM_ERROR;
	}
	*dest = copy;
	in->head.strm = dest;
	in->s.mem = wf_zshim_mem(dest);
	return Z_OK;
}

WF_ZSHIM_API int inflateValidate(z_streamp strm, int check)
{
	struct wf_inflate *s = ours(strm);

	if (!s)
		return Z_STREAM_ERROR;
	wf_deflate_inflate_validate(s, check);
	return Z_OK;
}

WF_ZSHIM_API int inflateSetDictionary(z_streamp strm, const Bytef *dict,
				      uInt len)
{
	struct wf_inflate *s = ours(strm);

	return s ? to_zlib(wf_deflate_inflate_set_dict(s, dict, len)) :
		   Z_STREAM_ERROR;
}

WF_ZSHIM_API int inflateGetDictionary(z_streamp strm, Bytef *dict, uInt *len)
{
	struct wf_inflate *s = ours(strm);
	unsigned int have;

	if (!s)
		return Z_STREAM_ERROR;
	have = wf_deflate_inflate_get_dict(s, dict);
	if (len)
		*len = have;
	return Z_OK;
}

WF_ZSHIM_API int inflatePrime(z_streamp strm, int bits, int value)
{
	struct wf_inflate *s = ours(strm);

	return s ? to_zlib(wf_deflate_inflate_prime(s, bits,
						    (unsigned int)value)) :
		   Z_STREAM_ERROR;
}

WF_ZSHIM_API long inflateMark(z_streamp strm)
{
	struct wf_inflate *s = ours(strm);

	return s ? wf_deflate_inflate_mark(s) : -(1L << 16);
}

WF_ZSHIM_API int inflateSync(z_streamp strm)
{
	struct wf_inflate *s = ours(strm);
	struct wf_inflate_io io;
	enum wf_inflate_ret ret;
	struct inflater *in;

	if (!s)
		return Z_STREAM_ERROR;
	io = (struct wf_inflate_io){ .in = strm->next_in,
				     .in_len = strm->avail_in };
	in = (struct inflater *)strm->state;
	ret = in->ahead ? wf_zshim_ahead_sync(in->ahead, s, &io) :
			  wf_deflate_inflate_sync(s, &io);
	strm->total_in += strm->avail_in - io.in_len;
	strm->next_in = (z_const Bytef *)(uintptr_t)io.in;
	strm->avail_in = (uInt)io.in_len;
	if (ret == WF_INFLATE_OK) {
		uLong total_in = strm->total_in, total_out = strm->total_out;

		begin(strm, s);
		strm->total_in = total_in;
		strm->total_out = total_out;
	}
	return to_zlib(ret);
}

WF_ZSHIM_API int inflateSyncPoint(z_streamp strm)
{
	struct wf_inflate *s = ours(strm);

	return s ? wf_deflate_inflate_sync_point(s) : Z_STREAM_ERROR;
}

WF_ZSHIM_API int inflateGetHeader(z_streamp strm, gz_headerp head)
{
	struct wf_inflate *s = ours(strm);

	if (!s || !(s->wrap & WF_INFLATE_GZIP))
		return Z_STREAM_ERROR;
	s->head = (struct wf_inflate_head *)head;
	head->done = 0;
	return Z_OK;
}

/* zlib must be specially built to treat distances beyond the window as zeros;
 * nobody does that. */
WF_ZSHIM_API int inflateUndermine(z_streamp strm, int subvert)
{
	(void)subvert;
	return ours(strm) ? Z_DATA_ERROR : Z_STREAM_ERROR;
}

WF_ZSHIM_API unsigned long inflateCodesUsed(z_streamp strm)
{
	struct wf_inflate *s = ours(strm);

	return s ? wf_deflate_inflate_codes_used(s) : (unsigned long)-1;
}

WF_ZSHIM_API int inflateBackInit_(z_streamp strm, int bits,
				  unsigned char *window, const char *version,
				  int stream_size)
{
	struct inflater *in;

	if (wf_zshim_check_version(version, stream_size))
		return Z_VERSION_ERROR;
	if (!strm || !window || bits < 8 || bits > 15)
		return Z_STREAM_ERROR;
	strm->msg = NULL;
	in = create(strm, WF_ZSHIM_BACK);
	if (!in)
		return Z_MEM_ERROR;
	wf_deflate_inflate_init(&in->s, &in->codes, in->s.mem, WF_INFLATE_RAW,
				(unsigned int)bits);
	in->s.window = window; /* the caller's: never freed */
	return Z_OK;
}

struct back_args {
	in_func in;
	void *in_arg;
};

/* zlib's pointer to input is not const in all builds. */
static unsigned int back_in(void *arg, const uint8_t **from)
{
	const struct back_args *args = arg;
	z_const unsigned char *next = NULL;
	unsigned int len = args->in(args->in_arg, &next);

	*from = next;
	return len;
}

WF_ZSHIM_API int inflateBack(z_streamp strm, in_func in, void *in_desc,
			     out_func out, void *out_desc)
{
	struct back_args args = { in, in_desc };
	struct wf_back back = { back_in, &args, out, out_desc };
	struct wf_inflate_io io;
	enum wf_inflate_ret ret;
	struct wf_inflate *s;

	if (!wf_zshim_is(strm, WF_ZSHIM_BACK))
		return Z_STREAM_ERROR;
	s = &((struct inflater *)strm->state)->s;
	strm->msg = NULL;
	io = (struct wf_inflate_io){ .in = strm->next_in };
	if (io.in)
		io.in_len = strm->avail_in;
	ret = wf_deflate_back_run(s, &io, &back);
	strm->next_in = (z_const Bytef *)(uintptr_t)io.in;
	strm->avail_in = (uInt)io.in_len;
	if (s->msg)
		strm->msg = (char *)(uintptr_t)s->msg;
	return to_zlib(ret);
}

WF_ZSHIM_API int inflateBackEnd(z_streamp strm)
{
	if (!wf_zshim_is(strm, WF_ZSHIM_BACK) || !strm->zfree)
		return Z_STREAM_ERROR;
	strm->zfree(strm->opaque, strm->state);
	strm->state = NULL;
	return Z_OK;
}
