/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inflate* of zlib. A stream of ours holds no memory: it is a pointer into a
 * table of constants until its first data, and after its end if we have
 * decompressed it. At its first data it goes to the real zlib, unless all of
 * it is there and is large enough for libdeflate to be faster.
 */
#include "zshim/state.h"

#include <string.h>

#include "alg/piece.h"
#include "alg/wrap.h"

/*
 * With less compressed input than this, zlib is faster than libdeflate and
 * the check that zlib would accept the stream as well (bench/zlib_small).
 */
#define WHOLE_MIN (16u << 10)

struct inflater {
	int bits;
	bool check; /* the trailer is compared, see inflateValidate() */
	bool ended; /* done by us, all of it */
};

#define STATES(bits)                                                           \
	{ bits, false, false }, { bits, false, true }, { bits, true, false },  \
	{                                                                      \
		bits, true, true                                               \
	}

static const struct inflater states[] = { STATES(15), STATES(31), STATES(47),
					  STATES(0) };

/* Where in the table the states for windowBits begin; -1: none, as for raw
 * streams, which have no checksum: libdeflate accepts damaged ones that zlib
 * refuses. 0: as large as the header says; 47: zlib or gzip, by the header. */
static int first_state(int bits)
{
	return bits == 15 ? 0 :
	       bits == 31 ? 4 :
	       bits == 47 ? 8 :
	       bits	  ? -1 :
			    12;
}

static const struct inflater *ours(z_streamp strm)
{
	uintptr_t at = strm ? (uintptr_t)strm->state : 0;

	return at - (uintptr_t)states < sizeof(states) ?
		       (const struct inflater *)at :
		       NULL;
}

/* False, and nothing changed, if the stream cannot be ours. */
static bool set_state(z_streamp strm, int bits, bool check, bool ended)
{
	int at = first_state(bits);

	if (at < 0)
		return false;
	strm->state = (struct internal_state
			       *)(uintptr_t)&states[at + (check ? 2 : 0) +
						    (ended ? 1 : 0)];
	return true;
}

/* Makes it a stream before its first data. */
static bool begin(z_streamp strm, int bits, bool check)
{
	if (!set_state(strm, bits, check, false))
		return false;
	strm->total_in = 0;
	strm->total_out = 0;
	strm->msg = NULL;
	strm->adler = bits != 31; /* as zlib */
	return true;
}

/* Gives the stream, from its beginning, to the real zlib. */
static int to_real(z_streamp strm, const struct inflater *s)
{
	const struct wf_zreal *real = wf_zreal_get();
	uLong in = strm->total_in, out = strm->total_out;
	int ret;

	if (!real)
		return Z_STREAM_ERROR;
	ret = real->inflateInit2_(strm, s->bits, ZLIB_VERSION,
				  (int)sizeof(z_stream));
	if (ret != Z_OK) {
		set_state(strm, s->bits, s->check, s->ended);
		return ret;
	}
	if (!s->check)
		real->inflateValidate(strm, 0);
	strm->total_in = in;
	strm->total_out = out;
	return Z_OK;
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

	if (wf_zshim_check_version(version, stream_size))
		return Z_VERSION_ERROR;
	if (!strm)
		return Z_STREAM_ERROR;
	if (!real)
		return Z_VERSION_ERROR;
	if (!begin(strm, bits, true))
		return real->inflateInit2_(strm, bits, version, stream_size);
	wf_zshim_mem(strm);
	return Z_OK;
}

WF_ZSHIM_API int inflateInit_(z_streamp strm, const char *version,
			      int stream_size)
{
	return inflateInit2_(strm, MAX_WBITS, version, stream_size);
}

static int format_of(const struct inflater *s, const uint8_t *in)
{
	if (s->bits == 31)
		return WD_COMP_GZIP;
	return s->bits == 47 && in[0] == 0x1f && in[1] == 0x8b ? WD_COMP_GZIP :
								 WD_COMP_ZLIB;
}

/* Output over input: zlib can do that as long as it has read what it writes
 * over; libdeflate may have to be followed by zlib, which needs the input. */
static bool overlaps(const z_stream *strm)
{
	uintptr_t in = (uintptr_t)strm->next_in;
	uintptr_t out = (uintptr_t)strm->next_out;

	return in < out + strm->avail_out && out < in + strm->avail_in;
}

/* Whether it looks as if the whole stream were there and would fit, so that
 * the attempt is not in vain: a failed one makes zlib do it all again. */
static bool is_promising(const z_stream *strm, int alg)
{
	const uint8_t *end = strm->next_in + strm->avail_in;
	uint32_t len = 0;

	if (alg != WD_COMP_GZIP)
		return strm->avail_out >= strm->avail_in;
	/* A gzip member ends with the length of its contents. */
	for (int i = 1; i <= 4; i++)
		len = len << 8 | end[-i];
	return len <= strm->avail_out && len >= strm->avail_in / 2;
}

/* All of it at once, or nothing at all. */
static bool try_whole(z_streamp strm, const struct inflater *s)
{
	struct wd_comp_job job = { .dst = strm->next_out,
				   .dst_len = strm->avail_out,
				   .tight = 1 };
	struct wf_alg_want want = { .can = WD_COMP_CAN_REFUSE };
	int alg = format_of(s, strm->next_in);
	size_t head, tail = wf_alg_wrap_trailer_size(alg);
	struct wf_wrap wrap;
	uint32_t check;

	if (!is_promising(strm, alg))
		return false;
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
	set_state(strm, s->bits, true, true);
	return true;
}

bool wf_zshim_inflate_whole(z_streamp strm)
{
	const struct inflater *s = ours(strm);

	return s && !s->ended && s->check && strm->avail_in >= WHOLE_MIN &&
	       strm->next_in && strm->next_out && !overlaps(strm) &&
	       try_whole(strm, s);
}

WF_ZSHIM_API int inflate(z_streamp strm, int flush)
{
	const struct wf_zreal *real = wf_zreal_get();
	const struct inflater *s = ours(strm);
	int ret;

	if (!s)
		return real ? real->inflate(strm, flush) : Z_STREAM_ERROR;
	if (s->ended)
		return !strm->next_out || (!strm->next_in && strm->avail_in) ?
			       Z_STREAM_ERROR :
			       Z_STREAM_END;
	/* Only with Z_FINISH does the caller expect the end in this call, and
	 * only then does zlib keep no window for inflateResetKeep(). */
	if (flush == Z_FINISH && strm->avail_in >= WHOLE_MIN &&
	    wf_zshim_inflate_whole(strm))
		return Z_STREAM_END;
	ret = to_real(strm, s);
	return ret == Z_OK ? real->inflate(strm, flush) : ret;
}

WF_ZSHIM_API int inflateEnd(z_streamp strm)
{
	const struct wf_zreal *real = wf_zreal_get();

	if (!ours(strm))
		return real ? real->inflateEnd(strm) : Z_STREAM_ERROR;
	strm->state = NULL;
	return Z_OK;
}

WF_ZSHIM_API int inflateReset(z_streamp strm)
{
	const struct wf_zreal *real = wf_zreal_get();
	const struct inflater *s = ours(strm);

	if (!s)
		return real ? real->inflateReset(strm) : Z_STREAM_ERROR;
	begin(strm, s->bits, s->check);
	return Z_OK;
}

WF_ZSHIM_API int inflateResetKeep(z_streamp strm)
{
	const struct wf_zreal *real = wf_zreal_get();
	const struct inflater *s = ours(strm);

	if (!s)
		return real ? real->inflateResetKeep(strm) : Z_STREAM_ERROR;
	/* A stream of ours has no window that could be kept: see inflate(). */
	begin(strm, s->bits, s->check);
	return Z_OK;
}

WF_ZSHIM_API int inflateReset2(z_streamp strm, int bits)
{
	const struct wf_zreal *real = wf_zreal_get();
	const struct inflater *s = ours(strm);
	int ret;

	if (s && begin(strm, bits, true))
		return Z_OK;
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

	if (!ours(source) || !dest)
		return real ? real->inflateCopy(dest, source) : Z_STREAM_ERROR;
	*dest = *source;
	return Z_OK;
}

WF_ZSHIM_API int inflateValidate(z_streamp strm, int check)
{
	const struct wf_zreal *real = wf_zreal_get();
	const struct inflater *s = ours(strm);

	if (!s)
		return real ? real->inflateValidate(strm, check) :
			      Z_STREAM_ERROR;
	set_state(strm, s->bits, check, s->ended);
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
		const struct inflater *s = ours(strm);                         \
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
static int sync_after(z_streamp strm, const struct inflater *s)
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
