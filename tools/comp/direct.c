/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Direct calls to ISA-L, libdeflate and zlib: states are made once and used
 * again, as a careful program would.
 */
#include "tools/comp/direct.h"

#include <stdlib.h>
#include <string.h>

#if WF_HAVE_ISAL
#include <isa-l/igzip_lib.h>

static size_t isal_pack(const uint8_t *in, size_t len, uint8_t *out,
			size_t room)
{
	static struct isal_zstream s;
	/* As large as the driver's: a larger one is 1 to 2 % faster. */
	static uint8_t level_buf[ISAL_DEF_LVL1_MEDIUM];

	isal_deflate_init(&s);
	s.level = 1;
	s.level_buf = level_buf;
	s.level_buf_size = sizeof(level_buf);
	s.gzip_flag = IGZIP_GZIP;
	s.end_of_stream = 1;
	s.next_in = (uint8_t *)(uintptr_t)in;
	s.avail_in = (uint32_t)len;
	s.next_out = out;
	s.avail_out = (uint32_t)room;
	return isal_deflate(&s) == COMP_OK ? s.total_out : 0;
}

static size_t isal_unpack(const uint8_t *in, size_t len, uint8_t *out,
			  size_t room)
{
	static struct inflate_state s;

	isal_inflate_init(&s);
	s.crc_flag = ISAL_GZIP;
	s.next_in = (uint8_t *)(uintptr_t)in;
	s.avail_in = (uint32_t)len;
	s.next_out = out;
	s.avail_out = (uint32_t)room;
	return isal_inflate_stateless(&s) == ISAL_DECOMP_OK ? s.total_out : 0;
}
#endif

#if WF_HAVE_LIBDEFLATE
#include <libdeflate.h>

static size_t ld_pack(const uint8_t *in, size_t len, uint8_t *out, size_t room)
{
	static struct libdeflate_compressor *c;

	if (!c)
		c = libdeflate_alloc_compressor(6);
	return libdeflate_gzip_compress(c, in, len, out, room);
}

static size_t ld_unpack(const uint8_t *in, size_t len, uint8_t *out,
			size_t room)
{
	static struct libdeflate_decompressor *d;
	size_t n = 0;

	if (!d)
		d = libdeflate_alloc_decompressor();
	return libdeflate_gzip_decompress(d, in, len, out, room, &n) ? 0 : n;
}
#endif

#if WF_HAVE_ZLIB
#include <zlib.h>

static size_t z_pack(const uint8_t *in, size_t len, uint8_t *out, size_t room)
{
	z_stream s = { 0 };
	size_t n = 0;

	if (deflateInit2(&s, 6, Z_DEFLATED, 31, 8, 0))
		return 0;
	s.next_in = (Bytef *)(uintptr_t)in;
	s.avail_in = (uInt)len;
	s.next_out = out;
	s.avail_out = (uInt)room;
	if (deflate(&s, Z_FINISH) == Z_STREAM_END)
		n = s.total_out;
	deflateEnd(&s);
	return n;
}

static size_t z_unpack(const uint8_t *in, size_t len, uint8_t *out, size_t room)
{
	z_stream s = { 0 };
	size_t n = 0;

	if (inflateInit2(&s, 31))
		return 0;
	s.next_in = (Bytef *)(uintptr_t)in;
	s.avail_in = (uInt)len;
	s.next_out = out;
	s.avail_out = (uInt)room;
	if (inflate(&s, Z_FINISH) == Z_STREAM_END)
		n = s.total_out;
	inflateEnd(&s);
	return n;
}
#endif

static const struct wf_comp_direct all[] = {
#if WF_HAVE_ISAL
	{ "isal", 1, isal_pack, isal_unpack },
#endif
#if WF_HAVE_LIBDEFLATE
	{ "libdeflate", 6, ld_pack, ld_unpack },
#endif
#if WF_HAVE_ZLIB
	{ "zlib", 6, z_pack, z_unpack },
#endif
	{ NULL, 0, NULL, NULL },
};

const struct wf_comp_direct *wf_tools_comp_direct(unsigned int n)
{
	return n + 1 < sizeof(all) / sizeof(all[0]) ? &all[n] : NULL;
}
