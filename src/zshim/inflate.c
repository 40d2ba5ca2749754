/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inflate* of zlib. At the first data of a stream we try to do all of it at
 * once, straight into the caller's memory: that works when the whole stream is
 * there, its output fits, and it has a checksum, as in uncompress(). If it does
 * not, nothing has happened, and the stream is the real zlib's from its first
 * byte on.
 */
#include "zshim/state.h"

#include <string.h>

#include "alg/piece.h"
#include "alg/wrap.h"

struct inflater {
	struct wf_zshim_head head;
	int bits;
	bool ended; /* done by us, all of it */
	bool check; /* the trailer is compared, see inflateValidate() */
};

static struct inflater *ours(z_streamp strm)
{
	return wf_zshim_is(strm, WF_ZSHIM_INFLATE) ?
		       (struct inflater *)(void *)strm->state :
		       NULL;
}

static void reset(z_streamp strm, struct inflater *s)
{
	s->ended = false;
	strm->total_in = 0;
	strm->total_out = 0;
	strm->msg = NULL;
	/* As zlib: set only where a checksum is kept. */
	if (s->bits >= 0)
		strm->adler = s->bits != 31;
}

/* Gives the stream, from its beginning, to the real zlib. */
static int to_real(z_streamp strm, struct inflater *s)
{
	const struct wf_zreal *real = wf_zreal_get();
	uLong in = strm->total_in, out = strm->total_out;
	int ret;

	if (!real)
		return Z_STREAM_ERROR;
	ret = real->inflateInit2_(strm, s->bits, ZLIB_VERSION,
				  (int)sizeof(z_stream));
	if (ret != Z_OK) {
		strm->state = (struct internal_state *)(void *)s;
		return ret;
	}
	if (!s->check)
		real->inflateValidate(strm, 0);
	strm->total_in = in;
	strm->total_out = out;
	s->head.magic = 0;
	strm->zfree(strm->opaque, s);
	return Z_OK;
}

static bool can_do(int bits)
{
	int alg;

	/* 0: as large as the header says; 47: zlib or gzip, by the header. */
	return !bits || bits == 47 || wf_zshim_format(bits, &alg);
}

/* What zlib takes; a stream of ours must not change for one it refuses. */
static bool is_window(int bits)
{
	if (bits < 0)
		return bits >= -15 && bits <= -8;
	if (bits < 48)
		bits &= 15;
	return !bits || (bits >= 8 && bits <= 15);
}

WF_ZSHIM_API int inflateInit2_(z_streamp strm, int bits, const char *version,
			       int stream_size)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct wd_comp_mem mem;
	struct inflater *s;

	if (wf_zshim_check_version(version, stream_size))
		return Z_VERSION_ERROR;
	if (!strm)
		return Z_STREAM_ERROR;
	if (!real)
		return Z_VERSION_ERROR;
	if (!can_do(bits))
		return real->inflateInit2_(strm, bits, version, stream_size);
	strm->msg = NULL;
	mem = wf_zshim_mem(strm);
	s = mem.alloc(mem.opaque, sizeof(*s));
	if (!s)
		return Z_MEM_ERROR;
	memset(s, 0, sizeof(*s));
	s->head.strm = strm;
	s->head.magic = WF_ZSHIM_INFLATE;
	s->bits = bits;
	s->check = true;
	strm->state = (struct internal_state *)(void *)s;
	reset(strm, s);
	return Z_OK;
}

WF_ZSHIM_API int inflateInit_(z_streamp strm, const char *version,
			      int stream_size)
{
	return inflateInit2_(strm, MAX_WBITS, version, stream_size);
}

static int format_of(const struct inflater *s, const uint8_t *in)
{
	if (s->bits < 0)
		return WD_COMP_RAW;
	if (s->bits == 31)
		return WD_COMP_GZIP;
	return s->bits == 47 && in[0] == 0x1f && in[1] == 0x8b ? WD_COMP_GZIP :
								 WD_COMP_ZLIB;
}

/* All of it at once, or nothing at all. */
static bool try_whole(z_streamp strm, struct inflater *s)
{
	struct wd_comp_job job = { .dst = strm->next_out,
				   .dst_len = strm->avail_out,
				   .tight = 1 };
	struct wf_alg_want want = { .can = WD_COMP_CAN_REFUSE };
	struct wf_wrap wrap;
	uint32_t check;
	size_t head, tail;
	int alg;

	if (strm->avail_in < 2 || !strm->next_in || !strm->next_out)
		return false;
	alg = format_of(s, strm->next_in);
	/*
	 * Raw data has no checksum, and both libraries take streams that zlib
	 * refuses (incomplete sets of codes, lengths repeated past the end).
	 */
	if (alg == WD_COMP_RAW)
		return false;
	tail = wf_alg_wrap_trailer_size(alg);
	wf_alg_wrap_begin(&wrap, alg);
	/* Small windows bound distances: only zlib looks at that. */
	if (wf_alg_wrap_read(&wrap, strm->next_in, strm->avail_in, &head) !=
		    1 ||
	    wrap.window != 15 || strm->avail_in < head + tail)
		return false;
	job.src = strm->next_in + head;
	job.src_len = strm->avail_in - head;
	if (wf_alg_piece_inflate(&job, want, NULL) || !job.ended ||
	    job.src_len - job.consumed < tail)
		return false;
	check = wd_comp_check(alg, wd_comp_check_init(alg), strm->next_out,
			      job.produced);
	if (!wf_alg_wrap_trailer_is(job.src + job.consumed, alg, check,
				    job.produced))
		return false;
	strm->adler = check;
	strm->next_in += head + job.consumed + tail;
	strm->avail_in -= (uInt)(head + job.consumed + tail);
	strm->total_in += head + job.consumed + tail;
	strm->next_out += job.produced;
	strm->avail_out -= (uInt)job.produced;
	strm->total_out += job.produced;
	strm->data_type = 64;
	s->ended = true;
	return true;
}

WF_ZSHIM_API int inflate(z_streamp strm, int flush)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct inflater *s = ours(strm);
	int ret;

	if (s && s->ended)
		return !strm->next_out || (!strm->next_in && strm->avail_in) ?
			       Z_STREAM_ERROR :
			       Z_STREAM_END;
	if (s && s->check && flush != Z_BLOCK && flush != Z_TREES &&
	    try_whole(strm, s))
		return Z_STREAM_END;
	if (s) {
		ret = to_real(strm, s);
		if (ret != Z_OK)
			return ret;
	}
	return real ? real->inflate(strm, flush) : Z_STREAM_ERROR;
}

WF_ZSHIM_API int inflateEnd(z_streamp strm)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct inflater *s = ours(strm);

	if (!s)
		return real ? real->inflateEnd(strm) : Z_STREAM_ERROR;
	s->head.magic = 0;
	strm->zfree(strm->opaque, s);
	strm->state = NULL;
	return Z_OK;
}

WF_ZSHIM_API int inflateReset(z_streamp strm)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct inflater *s = ours(strm);

	if (!s)
		return real ? real->inflateReset(strm) : Z_STREAM_ERROR;
	reset(strm, s);
	return Z_OK;
}

WF_ZSHIM_API int inflateResetKeep(z_streamp strm)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct inflater *s = ours(strm);

	if (!s)
		return real ? real->inflateResetKeep(strm) : Z_STREAM_ERROR;
	reset(strm, s);
	return Z_OK;
}

WF_ZSHIM_API int inflateReset2(z_streamp strm, int bits)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct inflater *s = ours(strm);
	int ret;

	if (s && can_do(bits)) {
		s->bits = bits;
		s->check = true;
		reset(strm, s);
		return Z_OK;
	}
	if (s && !is_window(bits))
		return Z_STREAM_ERROR;
	if (s) {
		strm->total_in = 0;
		strm->total_out = 0;
		ret = to_real(strm, s);
		if (ret != Z_OK)
			return ret;
	}
	return real ? real->inflateReset2(strm, bits) : Z_STREAM_ERROR;
}

WF_ZSHIM_API int inflateCopy(z_streamp dest, z_streamp source)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct inflater *s = ours(source), *copy;

	if (!s || !dest)
		return real ? real->inflateCopy(dest, source) : Z_STREAM_ERROR;
	copy = source->zalloc(source->opaque, 1, sizeof(*copy));
	if (!copy)
		return Z_MEM_ERROR;
	*dest = *source;
	*copy = *s;
	copy->head.strm = dest;
	dest->state = (struct internal_state *)(void *)copy;
	return Z_OK;
}

WF_ZSHIM_API int inflateValidate(z_streamp strm, int check)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct inflater *s = ours(strm);

	if (!s)
		return real ? real->inflateValidate(strm, check) :
			      Z_STREAM_ERROR;
	s->check = check;
	return Z_OK;
}

/*
 * The rest is for the real zlib alone: asked for before the first data, it
 * makes the stream zlib's. After the end of one of ours the answer is @after,
 * which is zlib's there, and the stream stays at its end.
 */
#define FORWARD(type, name, params, args, failed, after)                       \
	WF_ZSHIM_API type name params                                          \
	{                                                                      \
		const struct wf_zreal *real = wf_zreal_get();                  \
		struct inflater *s = ours(strm);                               \
                                                                               \
		if (s && s->ended)                                             \
			return after;                                          \
		if (!real || (s && to_real(strm, s) != Z_OK))                  \
			return failed;                                         \
		return real->name args;                                        \
	}

#define NO_MARK (-(1L << 16))

/* Output is the caller's memory: there is no window to show. */
static int no_window(uInt *len)
{
	if (len)
		*len = 0;
	return Z_OK;
}

/* The header has gone by: nothing will be filled in. */
static int after_header(const struct inflater *s, gz_headerp head)
{
	if (s->bits < 16)
		return Z_STREAM_ERROR;
	head->done = 0;
	return Z_OK;
}

/* Only zlib can look for a flush, in what comes after. */
static int sync_after(z_streamp strm, struct inflater *s)
{
	const struct wf_zreal *real = wf_zreal_get();

	return to_real(strm, s) == Z_OK ? real->inflateSync(strm) :
					  Z_STREAM_ERROR;
}

FORWARD(int, inflateSetDictionary,
	(z_streamp strm, const Bytef *dict, uInt len), (strm, dict, len),
	Z_STREAM_ERROR, Z_STREAM_ERROR)
FORWARD(int, inflateGetDictionary, (z_streamp strm, Bytef *dict, uInt *len),
	(strm, dict, len), Z_STREAM_ERROR, no_window(len))
FORWARD(int, inflatePrime, (z_streamp strm, int bits, int value),
	(strm, bits, value), Z_STREAM_ERROR, bits > 16 ? Z_STREAM_ERROR : Z_OK)
FORWARD(long, inflateMark, (z_streamp strm), (strm), NO_MARK, NO_MARK)
FORWARD(int, inflateSync, (z_streamp strm), (strm), Z_STREAM_ERROR,
	sync_after(strm, s))
FORWARD(int, inflateSyncPoint, (z_streamp strm), (strm), Z_STREAM_ERROR, 0)
FORWARD(int, inflateGetHeader, (z_streamp strm, gz_headerp head), (strm, head),
	Z_STREAM_ERROR, after_header(s, head))
FORWARD(int, inflateUndermine, (z_streamp strm, int subvert), (strm, subvert),
	Z_STREAM_ERROR, Z_DATA_ERROR)
FORWARD(unsigned long, inflateCodesUsed, (z_streamp strm), (strm),
	(unsigned long)-1, 0)
FORWARD(int, inflateBack,
	(z_streamp strm, in_func in, void *in_desc, out_func out,
	 void *out_desc),
	(strm, in, in_desc, out, out_desc), Z_STREAM_ERROR, Z_STREAM_ERROR)
FORWARD(int, inflateBackEnd, (z_streamp strm), (strm), Z_STREAM_ERROR,
	Z_STREAM_ERROR)

WF_ZSHIM_API int inflateBackInit_(z_streamp strm, int bits,
				  unsigned char *window, const char *version,
				  int stream_size)
{
	const struct wf_zreal *real = wf_zreal_get();

	return real ? real->inflateBackInit_(strm, bits, window, version,
					     stream_size) :
		      Z_VERSION_ERROR;
}
