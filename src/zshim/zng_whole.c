/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zlib-ng's names for functions without a stream: whole buffers, checksums,
 * files.
 */
#include "zshim/state.h"

#include <stdarg.h>
#include <stdint.h>

#define API WF_ZSHIM_API

/* Only for these names in the dynamic symbol table: no file includes them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

API int32_t zng_compress2(uint8_t *dest, size_t *dest_len, const uint8_t *src,
			  size_t len, int32_t level)
{
	return compress2(dest, dest_len, src, len, level);
}

API int32_t zng_compress(uint8_t *dest, size_t *dest_len, const uint8_t *src,
			 size_t len)
{
	return compress(dest, dest_len, src, len);
}

API size_t zng_compressBound(size_t len)
{
	return compressBound(len);
}

API int32_t zng_uncompress2(uint8_t *dest, size_t *dest_len, const uint8_t *src,
			    size_t *len)
{
	return uncompress2(dest, dest_len, src, len);
}

API int32_t zng_uncompress(uint8_t *dest, size_t *dest_len, const uint8_t *src,
			   size_t len)
{
	return uncompress(dest, dest_len, src, len);
}

API uint32_t zng_crc32_z(uint32_t crc, const uint8_t *buf, size_t len)
{
	return (uint32_t)crc32_z(crc, buf, len);
}

API uint32_t zng_crc32(uint32_t crc, const uint8_t *buf, uint32_t len)
{
	return (uint32_t)crc32_z(crc, buf, len);
}

API uint32_t zng_adler32_z(uint32_t adler, const uint8_t *buf, size_t len)
{
	return (uint32_t)adler32_z(adler, buf, len);
}

API uint32_t zng_adler32(uint32_t adler, const uint8_t *buf, uint32_t len)
{
	return (uint32_t)adler32_z(adler, buf, len);
}

#define FORWARD(type, name, params, args)                                      \
	API type zng_##name params                                             \
	{                                                                      \
		return (type)name args;                                        \
	}

FORWARD(uint32_t, crc32_combine, (uint32_t a, uint32_t b, off64_t len),
	(a, b, len))
FORWARD(uint32_t, crc32_combine_gen, (off64_t len), (len))
FORWARD(uint32_t, crc32_combine_op, (uint32_t a, uint32_t b, uint32_t op),
	(a, b, op))
FORWARD(uint32_t, adler32_combine, (uint32_t a, uint32_t b, off64_t len),
	(a, b, len))
FORWARD(const uint32_t *, get_crc_table, (void), ())
FORWARD(const char *, zError, (int32_t err), (err))
FORWARD(unsigned long, zlibCompileFlags, (void), ())
FORWARD(gzFile, gzopen, (const char *path, const char *mode), (path, mode))
FORWARD(gzFile, gzdopen, (int fd, const char *mode), (fd, mode))
FORWARD(int32_t, gzbuffer, (gzFile file, uint32_t size), (file, size))
FORWARD(int32_t, gzsetparams, (gzFile file, int32_t level, int32_t strategy),
	(file, level, strategy))
FORWARD(int32_t, gzread, (gzFile file, void *buf, uint32_t len),
	(file, buf, len))
FORWARD(size_t, gzfread, (void *buf, size_t size, size_t n, gzFile file),
	(buf, size, n, file))
FORWARD(int32_t, gzwrite, (gzFile file, const void *buf, uint32_t len),
	(file, buf, len))
FORWARD(size_t, gzfwrite, (const void *buf, size_t size, size_t n, gzFile file),
	(buf, size, n, file))
FORWARD(int32_t, gzvprintf, (gzFile file, const char *fmt, va_list va),
	(file, fmt, va))
FORWARD(int32_t, gzputs, (gzFile file, const char *s), (file, s))
FORWARD(char *, gzgets, (gzFile file, char *buf, int32_t len), (file, buf, len))
FORWARD(int32_t, gzputc, (gzFile file, int32_t c), (file, c))
FORWARD(int32_t, gzungetc, (int32_t c, gzFile file), (c, file))
FORWARD(int32_t, gzflush, (gzFile file, int32_t flush), (file, flush))
FORWARD(off64_t, gzseek, (gzFile file, off64_t offset, int whence),
	(file, offset, whence))
FORWARD(int32_t, gzrewind, (gzFile file), (file))
FORWARD(off64_t, gztell, (gzFile file), (file))
FORWARD(off64_t, gzoffset, (gzFile file), (file))
FORWARD(int32_t, gzeof, (gzFile file), (file))
FORWARD(int32_t, gzdirect, (gzFile file), (file))
FORWARD(int32_t, gzclose, (gzFile file), (file))
FORWARD(int32_t, gzclose_r, (gzFile file), (file))
FORWARD(int32_t, gzclose_w, (gzFile file), (file))
FORWARD(const char *, gzerror, (gzFile file, int32_t *err), (file, err))

API int32_t zng_gzgetc(gzFile file)
{
	return (gzgetc)(file);
}

API void zng_gzclearerr(gzFile file)
{
	gzclearerr(file);
}

API int32_t zng_gzprintf(gzFile file, const char *fmt, ...)
{
	va_list va;
	int32_t ret;

	va_start(va, fmt);
	ret = gzvprintf(file, fmt, va);
	va_end(va);
	return ret;
}
