/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * deflate* of zlib. A stream begins as ours if we can do exactly what its
 * parameters say; anything asked for before its first data that we cannot do
 * makes it the real zlib's, whole. After its first data it stays where it is.
 */
#include "zshim/state.h"

#include <errno.h>
#include <string.h>

#include "alg/defl.h"

struct deflater {
	struct wf_zshim_head head;
	int bits;
	int mem_level;
	int strategy;
	int last_flush; /* -2: no call yet; -1: the last one ran out of room */
	struct wf_alg_defl d;
};

static struct deflater *ours(z_streamp strm)
{
	return wf_zshim_is(strm, WF_ZSHIM_DEFLATE) ?
		       (struct deflater *)(void *)strm->state :
		       NULL;
}

static bool untouched(const struct deflater *s)
{
	return s->last_flush == -2;
}

static int fail(z_streamp strm, int err)
{
	strm->msg = (char *)(uintptr_t)wf_zshim_text(err);
	return err;
}

static void publish(z_streamp strm, const struct deflater *s)
{
	if (s->d.alg != WD_COMP_RAW)
		strm->adler = s->d.check;
}

static void reset(z_streamp strm, struct deflater *s)
{
	wf_alg_defl_reset(&s->d);
	s->last_flush = -2;
	strm->total_in = 0;
	strm->total_out = 0;
	strm->msg = NULL;
	strm->data_type = Z_UNKNOWN;
	strm->adler = s->d.alg != WD_COMP_GZIP;
}

static void destroy(z_streamp strm, struct deflater *s)
{
	wf_alg_defl_end(&s->d);
	s->head.magic = 0;
	strm->zfree(strm->opaque, s);
}

/* Gives an untouched stream to the real zlib. */
static int to_real(z_streamp strm, struct deflater *s)
{
	const struct wf_zreal *real = wf_zreal_get();
	int ret;

	if (!real)
		return fail(strm, Z_STREAM_ERROR);
	ret = real->deflateInit2_(strm, s->d.level, Z_DEFLATED, s->bits,
				  s->mem_level, s->strategy, ZLIB_VERSION,
				  (int)sizeof(z_stream));
	if (ret == Z_OK) {
		destroy(strm, s);
		return Z_OK;
	}
	strm->state = (struct internal_state *)(void *)s;
	return ret;
}

static bool can_do(int level, int method, int bits, int mem_level, int strategy,
		   int *alg)
{
	return method == Z_DEFLATED && wf_zshim_format(bits, alg) &&
	       level >= 1 && level <= 9 && mem_level >= 1 && mem_level <= 9 &&
	       (strategy == Z_DEFAULT_STRATEGY || strategy == Z_FILTERED) &&
	       !wf_alg_registry_reproducible();
}

WF_ZSHIM_API int deflateInit2_(z_streamp strm, int level, int method, int bits,
			       int mem_level, int strategy, const char *version,
			       int stream_size)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct wd_comp_mem mem;
	struct deflater *s;
	int alg, want = level == Z_DEFAULT_COMPRESSION ? 6 : level;

	if (wf_zshim_check_version(version, stream_size))
		return Z_VERSION_ERROR;
	if (!strm)
		return Z_STREAM_ERROR;
	if (!real)
		return Z_VERSION_ERROR;
	if (!can_do(want, method, bits, mem_level, strategy, &alg))
		return real->deflateInit2_(strm, level, method, bits, mem_level,
					   strategy, version, stream_size);
	strm->msg = NULL;
	mem = wf_zshim_mem(strm);
	s = mem.alloc(mem.opaque, sizeof(*s));
	if (!s)
		return Z_MEM_ERROR;
	memset(s, 0, sizeof(*s));
	s->head.strm = strm;
	s->head.magic = WF_ZSHIM_DEFLATE;
	s->bits = bits;
	s->mem_level = mem_level;
	s->strategy = strategy;
	s->d.mem = mem;
	s->d.alg = alg;
	s->d.level = want;
	s->d.sparing = wf_zshim_mem_is_counted(strm);
	wf_alg_defl_begin(&s->d);
	strm->state = (struct internal_state *)(void *)s;
	reset(strm, s);
	return Z_OK;
}

WF_ZSHIM_API int deflateInit_(z_streamp strm, int level, const char *version,
			      int stream_size)
{
	return deflateInit2_(strm, level, Z_DEFLATED, MAX_WBITS, 8,
			     Z_DEFAULT_STRATEGY, version, stream_size);
}

/* Order of flushes by how much they do; Z_BLOCK is 5 and weaker than most. */
static int rank(int flush)
{
	return flush * 2 - (flush > 4 ? 9 : 0);
}

static int flush_of(int flush)
{
	static const int map[] = {
		[Z_NO_FLUSH] = WD_COMP_NO_FLUSH,
		[Z_PARTIAL_FLUSH] = WD_COMP_PARTIAL_FLUSH,
		[Z_SYNC_FLUSH] = WD_COMP_SYNC_FLUSH,
		[Z_FULL_FLUSH] = WD_COMP_FULL_FLUSH,
		[Z_FINISH] = WD_COMP_FINISH,
		[Z_BLOCK] = WD_COMP_BLOCK_FLUSH,
	};

	return map[flush];
}

/* One run of the engine on the stream's buffers. */
static int run(z_streamp strm, struct deflater *s, int flush)
{
	struct wf_alg_io io = { strm->next_in, strm->avail_in, strm->next_out,
				strm->avail_out };
	int ret = wf_alg_defl_run(&s->d, &io, flush);

	strm->total_in += strm->avail_in - io.in_len;
	strm->total_out += strm->avail_out - io.out_len;
	strm->next_in = (Bytef *)(uintptr_t)io.in;
	strm->avail_in = (uInt)io.in_len;
	strm->next_out = io.out;
	strm->avail_out = (uInt)io.out_len;
	publish(strm, s);
	return ret;
}

static int z_of(z_streamp strm, int ret)
{
	if (ret == WD_COMP_END)
		return Z_STREAM_END;
	if (ret >= 0)
		return Z_OK;
	return fail(strm, ret == -ENOMEM ? Z_MEM_ERROR : Z_STREAM_ERROR);
}

/* A stream that begins with a small flush would be given to zlib by src/alg:
 * it costs less to make all of it zlib's. */
static bool is_flushed_small(const z_stream *strm, int flush)
{
	switch (flush) {
	case Z_PARTIAL_FLUSH:
	case Z_SYNC_FLUSH:
		return strm->avail_in < WF_ALG_DEFL_FLUSH_WORTH;
	case Z_FULL_FLUSH:
	case Z_BLOCK:
		return strm->avail_in < WF_ALG_DEFL_FLUSH_SMALL;
	default:
		return false;
	}
}

/* Counts, for `weft stat`. */
static int real_deflate(const struct wf_zreal *real, z_streamp strm, int flush)
{
	uLong in = strm ? strm->total_in : 0, out = strm ? strm->total_out : 0;
	int ret = real->deflate(strm, flush);

	if (ret >= Z_OK)
		wf_alg_stats_real_zlib(ret == Z_STREAM_END, strm->total_in - in,
				       strm->total_out - out);
	return ret;
}

WF_ZSHIM_API int deflate(z_streamp strm, int flush)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct deflater *s = ours(strm);
	int ret, old;

	if (!s)
		return real ? real_deflate(real, strm, flush) : Z_STREAM_ERROR;
	if (flush < 0 || flush > Z_BLOCK)
		return Z_STREAM_ERROR;
	if (!strm->next_out || (strm->avail_in && !strm->next_in) ||
	    (s->d.finished && flush != Z_FINISH))
		return fail(strm, Z_STREAM_ERROR);
	if (!strm->avail_out)
		return fail(strm, Z_BUF_ERROR);
	if (untouched(s) && is_flushed_small(strm, flush) &&
	    to_real(strm, s) == Z_OK)
		return real_deflate(real, strm, flush);
	old = s->last_flush;
	if (!wf_alg_defl_pending(&s->d) && !strm->avail_in &&
	    rank(flush) <= rank(old) && flush != Z_FINISH && old >= 0)
		return fail(strm, Z_BUF_ERROR);
	if (s->d.finished && strm->avail_in)
		return fail(strm, Z_BUF_ERROR);
	s->last_flush = flush;
	ret = run(strm, s, flush_of(flush));
	if (ret == -ENOMEM && old == -2 && !strm->total_in &&
	    !strm->total_out) {
		/* No memory for chunks: the real one may need less. */
		s->last_flush = -2;
		if (to_real(strm, s) == Z_OK)
			return real_deflate(real, strm, flush);
	}
	if (!strm->avail_out)
		s->last_flush = -1;
	return z_of(strm, ret);
}

WF_ZSHIM_API int deflateEnd(z_streamp strm)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct deflater *s = ours(strm);
	bool cut_short;

	if (!s)
		return real ? real->deflateEnd(strm) : Z_STREAM_ERROR;
	cut_short = s->d.begun && !s->d.finished;
	destroy(strm, s);
	strm->state = NULL;
	return cut_short ? Z_DATA_ERROR : Z_OK;
}

WF_ZSHIM_API int deflateReset(z_streamp strm)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct deflater *s = ours(strm);

	if (!s)
		return real ? real->deflateReset(strm) : Z_STREAM_ERROR;
	reset(strm, s);
	return Z_OK;
}

WF_ZSHIM_API int deflateResetKeep(z_streamp strm)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct deflater *s = ours(strm);

	if (!s)
		return real ? real->deflateResetKeep(strm) : Z_STREAM_ERROR;
	reset(strm, s);
	return Z_OK;
}

/* zlib's two compressors; after the end it refuses to change to the other. */
static bool is_lazy(int level)
{
	return level >= 4;
}

WF_ZSHIM_API int deflateParams(z_streamp strm, int level, int strategy)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct deflater *s = ours(strm);
	int ret;

	if (!s)
		return real ? real->deflateParams(strm, level, strategy) :
			      Z_STREAM_ERROR;
	if (level == Z_DEFAULT_COMPRESSION)
		level = 6;
	if (level < 0 || level > 9 || strategy < 0 || strategy > Z_FIXED)
		return Z_STREAM_ERROR;
	if (untouched(s)) {
		s->strategy = strategy;
		s->d.level = level;
		return level && strategy <= Z_FILTERED ? Z_OK :
							 to_real(strm, s);
	}
	if (level == s->d.level) {
		s->strategy = strategy;
		return Z_OK;
	}
	if (s->d.finished)
		return is_lazy(level) == is_lazy(s->d.level) &&
				       strategy == s->strategy ?
			       Z_OK :
			       fail(strm, Z_STREAM_ERROR);
	/* The data up to here is compressed with the previous parameters. */
	ret = run(strm, s, WD_COMP_SYNC_FLUSH);
	if (ret < 0)
		return z_of(strm, ret);
	if (strm->avail_in || s->d.fill || (s->d.slot && ret))
		return fail(strm, Z_BUF_ERROR);
	s->strategy = strategy;
	wf_alg_defl_set_level(&s->d, level);
	return Z_OK;
}

WF_ZSHIM_API int deflateTune(z_streamp strm, int good, int lazy, int nice,
			     int chain)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct deflater *s = ours(strm);

	if (s && !untouched(s))
		return Z_OK; /* a hint that we have no use for */
	if (s && to_real(strm, s) != Z_OK)
		return Z_STREAM_ERROR;
	return real ? real->deflateTune(strm, good, lazy, nice, chain) :
		      Z_STREAM_ERROR;
}

WF_ZSHIM_API int deflateCopy(z_streamp dest, z_streamp source)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct deflater *s = ours(source), *copy;
	struct wd_comp_mem mem;

	if (!s || !dest)
		return real ? real->deflateCopy(dest, source) : Z_STREAM_ERROR;
	*dest = *source;
	mem = wf_zshim_mem(dest);
	copy = mem.alloc(mem.opaque, sizeof(*copy));
	if (!copy)
		return Z_MEM_ERROR;
	*copy = *s;
	copy->head.strm = dest;
	if (wf_alg_defl_copy(&copy->d, &s->d, &mem)) {
		mem.free(mem.opaque, copy);
		dest->state = NULL;
		return Z_MEM_ERROR;
	}
	dest->state = (struct internal_state *)(void *)copy;
	return Z_OK;
}

WF_ZSHIM_API int deflateSetDictionary(z_streamp strm, const Bytef *dict,
				      uInt len)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct deflater *s = ours(strm);
	int ret;

	if (s && untouched(s)) {
		ret = to_real(strm, s);
		if (ret != Z_OK)
			return ret;
		s = NULL;
	}
	if (!s)
		return real ? real->deflateSetDictionary(strm, dict, len) :
			      Z_STREAM_ERROR;
	/* In the middle: raw streams only, and between two blocks. */
	if (!dict || s->d.alg != WD_COMP_RAW ||
	    wf_alg_defl_set_history(&s->d, dict, len))
		return Z_STREAM_ERROR;
	return Z_OK;
}

WF_ZSHIM_API int deflateGetDictionary(z_streamp strm, Bytef *dict, uInt *len)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct deflater *s = ours(strm);
	size_t n;

	if (!s)
		return real ? real->deflateGetDictionary(strm, dict, len) :
			      Z_STREAM_ERROR;
	n = wf_alg_defl_history(&s->d, dict);
	if (len)
		*len = (uInt)n;
	return Z_OK;
}

WF_ZSHIM_API uLong deflateBound(z_streamp strm, uLong len)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct deflater *s = ours(strm);
	uLong wrap, fixed, stored;

	/* zlib 1.2.13 says too little for one byte at level 0. */
	if (!s)
		return real ? real->deflateBound(strm, len) + 8 :
			      len + (len >> 3) + (len >> 6) + 32;
	wrap = wf_alg_wrap_header_size(s->d.alg) +
	       wf_alg_wrap_trailer_size(s->d.alg);
	/* A dictionary, which makes the stream zlib's, adds its checksum. */
	if (s->d.alg == WD_COMP_ZLIB)
		wrap += 4;
	/* This is zlib's answer for its default parameters; stored blocks of
	 * ours (5 bytes in 65535, 10 more at the end) stay below it. */
	if (s->mem_level == 8)
		return len + (len >> 12) + (len >> 14) + (len >> 25) + 13 - 6 +
		       wrap;
	/* The stream may still become zlib's, which expands more with other
	 * parameters: its bounds for fixed and for small stored blocks. */
	fixed = len + (len >> 3) + (len >> 8) + (len >> 9) + 4;
	stored = len + (len >> 5) + (len >> 7) + (len >> 11) + 7;
	return (fixed > stored ? fixed : stored) + wrap;
}

WF_ZSHIM_API int deflatePending(z_streamp strm, unsigned *pending, int *bits)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct deflater *s = ours(strm);

	if (!s)
		return real ? real->deflatePending(strm, pending, bits) :
			      Z_STREAM_ERROR;
	if (pending)
		*pending = (unsigned int)wf_alg_defl_pending(&s->d);
	if (bits)
		*bits = 0;
	return Z_OK;
}

WF_ZSHIM_API int deflatePrime(z_streamp strm, int bits, int value)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct deflater *s = ours(strm);

	if (s && !untouched(s))
		return bits ? Z_STREAM_ERROR : Z_OK;
	if (s && to_real(strm, s) != Z_OK)
		return Z_STREAM_ERROR;
	return real ? real->deflatePrime(strm, bits, value) : Z_STREAM_ERROR;
}

WF_ZSHIM_API int deflateSetHeader(z_streamp strm, gz_headerp head)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct deflater *s = ours(strm);

	if (s && s->d.alg != WD_COMP_GZIP)
		return Z_STREAM_ERROR;
	if (s && !untouched(s))
		return Z_OK; /* the header is out; zlib says the same */
	if (s && to_real(strm, s) != Z_OK)
		return Z_STREAM_ERROR;
	return real ? real->deflateSetHeader(strm, head) : Z_STREAM_ERROR;
}

int wf_zshim_deflate_reproducible(z_streamp strm)
{
	struct deflater *s = ours(strm);

	if (!s)
		return Z_OK;
	return untouched(s) ? to_real(strm, s) : Z_STREAM_ERROR;
}
