/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gz* of zlib. Files are the real zlib's; the streams it opens for them come
 * back to us through its table of imports, and so are ours.
 */
#include "zshim/state.h"

#include <errno.h>

#define FORWARD(type, name, as, params, args, failed)                          \
	WF_ZSHIM_API type name params                                          \
	{                                                                      \
		const struct wf_zreal *real = wf_zreal_get();                  \
                                                                               \
		return real ? real->as args : failed;                          \
	}

gzFile gzopen64(const char *path, const char *mode);
off64_t gzseek64(gzFile file, off64_t offset, int whence);
off64_t gztell64(gzFile file);
off64_t gzoffset64(gzFile file);
/* zlib.h makes macros of these where offsets have 64 bits. */
#undef gzgetc
#undef gzopen
#undef gzseek
#undef gztell
#undef gzoffset
gzFile gzopen(const char *path, const char *mode);
off_t gzseek(gzFile file, off_t offset, int whence);
off_t gztell(gzFile file);
off_t gzoffset(gzFile file);
int gzgetc_(gzFile file);

FORWARD(gzFile, gzopen64, gzopen64, (const char *path, const char *mode),
	(path, mode), NULL)
FORWARD(gzFile, gzopen, gzopen64, (const char *path, const char *mode),
	(path, mode), NULL)
FORWARD(gzFile, gzdopen, gzdopen, (int fd, const char *mode), (fd, mode), NULL)
FORWARD(int, gzbuffer, gzbuffer, (gzFile file, unsigned size), (file, size), -1)
FORWARD(int, gzsetparams, gzsetparams, (gzFile file, int level, int strategy),
	(file, level, strategy), Z_STREAM_ERROR)
FORWARD(int, gzread, gzread, (gzFile file, voidp buf, unsigned len),
	(file, buf, len), -1)
FORWARD(z_size_t, gzfread, gzfread,
	(voidp buf, z_size_t size, z_size_t n, gzFile file),
	(buf, size, n, file), 0)
FORWARD(int, gzwrite, gzwrite, (gzFile file, voidpc buf, unsigned len),
	(file, buf, len), 0)
FORWARD(z_size_t, gzfwrite, gzfwrite,
	(voidpc buf, z_size_t size, z_size_t n, gzFile file),
	(buf, size, n, file), 0)
FORWARD(int, gzvprintf, gzvprintf, (gzFile file, const char *fmt, va_list va),
	(file, fmt, va), Z_STREAM_ERROR)
FORWARD(int, gzputs, gzputs, (gzFile file, const char *s), (file, s), -1)
FORWARD(char *, gzgets, gzgets, (gzFile file, char *buf, int len),
	(file, buf, len), NULL)
FORWARD(int, gzputc, gzputc, (gzFile file, int c), (file, c), -1)
FORWARD(int, gzgetc, gzgetc, (gzFile file), (file), -1)
FORWARD(int, gzgetc_, gzgetc_, (gzFile file), (file), -1)
FORWARD(int, gzungetc, gzungetc, (int c, gzFile file), (c, file), -1)
FORWARD(int, gzflush, gzflush, (gzFile file, int flush), (file, flush),
	Z_STREAM_ERROR)
FORWARD(off64_t, gzseek64, gzseek64, (gzFile file, off64_t offset, int whence),
	(file, offset, whence), -1)
FORWARD(off_t, gzseek, gzseek64, (gzFile file, off_t offset, int whence),
	(file, offset, whence), -1)
FORWARD(int, gzrewind, gzrewind, (gzFile file), (file), -1)
FORWARD(off64_t, gztell64, gztell64, (gzFile file), (file), -1)
FORWARD(off_t, gztell, gztell64, (gzFile file), (file), -1)
FORWARD(off64_t, gzoffset64, gzoffset64, (gzFile file), (file), -1)
FORWARD(off_t, gzoffset, gzoffset64, (gzFile file), (file), -1)
FORWARD(int, gzeof, gzeof, (gzFile file), (file), 0)
FORWARD(int, gzdirect, gzdirect, (gzFile file), (file), 0)
FORWARD(int, gzclose, gzclose, (gzFile file), (file), Z_STREAM_ERROR)
FORWARD(int, gzclose_r, gzclose_r, (gzFile file), (file), Z_STREAM_ERROR)
FORWARD(int, gzclose_w, gzclose_w, (gzFile file), (file), Z_STREAM_ERROR)
FORWARD(const char *, gzerror, gzerror, (gzFile file, int *err), (file, err),
	NULL)

WF_ZSHIM_API void gzclearerr(gzFile file)
{
	const struct wf_zreal *real = wf_zreal_get();

	if (real)
		real->gzclearerr(file);
}

WF_ZSHIM_API int gzprintf(gzFile file, const char *fmt, ...)
{
	va_list va;
	int ret;

	va_start(va, fmt);
	ret = gzvprintf(file, fmt, va);
	va_end(va);
	return ret;
}
