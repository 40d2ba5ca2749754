/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of zlib's API without streams: compress(), uncompress(),
 * checksums, versions. Checksums are the fastest driver's.
 */
#include "zshim/state.h"

#include <limits.h>

#include "alg/check.h"

static uInt cut(uLong len)
{
	return len > UINT_MAX ? UINT_MAX : (uInt)len;
}

WF_ZSHIM_API int compress2(Bytef *dest, uLongf *dest_len, const Bytef *source,
			   uLong source_len, int level)
{
	uLong room = *dest_len, left = source_len;
	z_stream s = { 0 };
	int ret;

	*dest_len = 0;
	ret = deflateInit(&s, level);
	if (ret != Z_OK)
		return ret;
	s.next_out = dest;
	s.next_in = (z_const Bytef *)(uintptr_t)source;
	do {
		if (!s.avail_out) {
			s.avail_out = cut(room);
			room -= s.avail_out;
		}
		if (!s.avail_in) {
			s.avail_in = cut(left);
			left -= s.avail_in;
		}
		ret = deflate(&s, left ? Z_NO_FLUSH : Z_FINISH);
	} while (ret == Z_OK);
	*dest_len = s.total_out;
	deflateEnd(&s);
	return ret == Z_STREAM_END ? Z_OK : ret;
}

WF_ZSHIM_API int compress(Bytef *dest, uLongf *dest_len, const Bytef *source,
			  uLong source_len)
{
	return compress2(dest, dest_len, source, source_len,
			 Z_DEFAULT_COMPRESSION);
}

WF_ZSHIM_API uLong compressBound(uLong len)
{
	return len + (len >> 12) + (len >> 14) + (len >> 25) + 13;
}

WF_ZSHIM_API int uncompress2(Bytef *dest, uLongf *dest_len, const Bytef *source,
			     uLong *source_len)
{
	uLong room = *dest_len, left = *source_len;
	Bytef spare[1];
	bool empty = !room;
	z_stream s = { 0 };
	int ret;

	/* No room at all still tells an empty stream from a bad one. */
	if (empty) {
		room = 1;
		dest = spare;
	} else {
		*dest_len = 0;
	}
	s.next_in = (z_const Bytef *)(uintptr_t)source;
	ret = inflateInit(&s);
	if (ret != Z_OK)
		return ret;
	s.next_out = dest;
	do {
		if (!s.avail_out) {
			s.avail_out = cut(room);
			room -= s.avail_out;
		}
		if (!s.avail_in) {
			s.avail_in = cut(left);
			left -= s.avail_in;
		}
		/* As zlib: without Z_FINISH, whose errors are others. */
		ret = inflate(&s, Z_NO_FLUSH);
	} while (ret == Z_OK);
	*source_len -= left + s.avail_in;
	if (!empty)
		*dest_len = s.total_out;
	else if (s.total_out && ret == Z_BUF_ERROR)
		room = 1;
	inflateEnd(&s);
	if (ret == Z_STREAM_END)
		return Z_OK;
	if (ret == Z_NEED_DICT)
		return Z_DATA_ERROR;
	/* Room left and still no end: the input was cut short. */
	return ret == Z_BUF_ERROR && room + s.avail_out ? Z_DATA_ERROR : ret;
}

WF_ZSHIM_API int uncompress(Bytef *dest, uLongf *dest_len, const Bytef *source,
			    uLong source_len)
{
	return uncompress2(dest, dest_len, source, &source_len);
}

WF_ZSHIM_API uLong crc32_z(uLong crc, const Bytef *buf, z_size_t len)
{
	return buf ? wd_comp_check(WD_COMP_GZIP, (uint32_t)crc, buf, len) : 0;
}

WF_ZSHIM_API uLong crc32(uLong crc, const Bytef *buf, uInt len)
{
	return crc32_z(crc, buf, len);
}

WF_ZSHIM_API uLong adler32_z(uLong adler, const Bytef *buf, z_size_t len)
{
	return buf ? wd_comp_check(WD_COMP_ZLIB, (uint32_t)adler, buf, len) : 1;
}

WF_ZSHIM_API uLong adler32(uLong adler, const Bytef *buf, uInt len)
{
	return adler32_z(adler, buf, len);
}

#define FORWARD(type, name, as, params, args, failed)                          \
	WF_ZSHIM_API type name params                                          \
	{                                                                      \
		const struct wf_zreal *real = wf_zreal_get();                  \
                                                                               \
		return real ? real->as args : failed;                          \
	}

/* zlib.h makes macros of these where offsets have 64 bits. */
#undef crc32_combine
#undef adler32_combine
#undef crc32_combine_gen
uLong crc32_combine(uLong a, uLong b, off_t len);
uLong adler32_combine(uLong a, uLong b, off_t len);
uLong crc32_combine_gen(off_t len);
uLong crc32_combine64(uLong a, uLong b, off64_t len);
uLong adler32_combine64(uLong a, uLong b, off64_t len);
uLong crc32_combine_gen64(off64_t len);
uLong crc32_combine_op(uLong a, uLong b, uLong op);

FORWARD(uLong, crc32_combine64, crc32_combine64,
	(uLong a, uLong b, off64_t len), (a, b, len), 0)
FORWARD(uLong, crc32_combine, crc32_combine64, (uLong a, uLong b, off_t len),
	(a, b, len), 0)
FORWARD(uLong, adler32_combine64, adler32_combine64,
	(uLong a, uLong b, off64_t len), (a, b, len), 0)
FORWARD(uLong, adler32_combine, adler32_combine64,
	(uLong a, uLong b, off_t len), (a, b, len), 0)
FORWARD(const z_crc_t *, get_crc_table, get_crc_table, (void), (), NULL)
FORWARD(const char *, zlibVersion, zlibVersion, (void), (), ZLIB_VERSION)
FORWARD(uLong, zlibCompileFlags, zlibCompileFlags, (void), (), 0)
FORWARD(const char *, zError, zError, (int err), (err), "")

/* zlib has these since 1.2.12 only. */
WF_ZSHIM_API uLong crc32_combine_gen64(off64_t len)
{
	return wf_alg_crc_power(len > 0 ? (uint64_t)len : 0);
}

WF_ZSHIM_API uLong crc32_combine_gen(off_t len)
{
	return crc32_combine_gen64(len);
}

WF_ZSHIM_API uLong crc32_combine_op(uLong a, uLong b, uLong op)
{
	return wf_alg_crc_join((uint32_t)a, (uint32_t)b, (uint32_t)op);
}
