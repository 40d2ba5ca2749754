/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The real zlib, found at run time. Linking it would not do: inside
 * libweft-z.so its names are ours, and a call would come back to us.
 * WEFT_LIBZ names another file than libz.so.1.
 */
#ifndef WF_ZREAL_REAL_H
#define WF_ZREAL_REAL_H

#include <stdarg.h>
#include <zlib.h>

/* One line per function: name, return type, parameters. zlib has had all of
 * them since 1.2.9; functions that later ones added are done without it. */
#define WF_ZREAL_CORE(X)                                                       \
	X(deflateInit2_, int,                                                  \
	  (z_streamp, int, int, int, int, int, const char *, int))             \
	X(deflate, int, (z_streamp, int))                                      \
	X(deflateEnd, int, (z_streamp))                                        \
	X(deflateReset, int, (z_streamp))                                      \
	X(deflateResetKeep, int, (z_streamp))                                  \
	X(deflateParams, int, (z_streamp, int, int))                           \
	X(deflateTune, int, (z_streamp, int, int, int, int))                   \
	X(deflateCopy, int, (z_streamp, z_streamp))                            \
	X(deflateSetDictionary, int, (z_streamp, const Bytef *, uInt))         \
	X(deflateGetDictionary, int, (z_streamp, Bytef *, uInt *))             \
	X(deflateBound, uLong, (z_streamp, uLong))                             \
	X(deflatePending, int, (z_streamp, unsigned *, int *))                 \
	X(deflatePrime, int, (z_streamp, int, int))                            \
	X(deflateSetHeader, int, (z_streamp, gz_headerp))                      \
	X(inflateInit2_, int, (z_streamp, int, const char *, int))             \
	X(inflate, int, (z_streamp, int))                                      \
	X(inflateEnd, int, (z_streamp))                                        \
	X(inflateReset, int, (z_streamp))                                      \
	X(inflateReset2, int, (z_streamp, int))                                \
	X(inflateResetKeep, int, (z_streamp))                                  \
	X(inflateCopy, int, (z_streamp, z_streamp))                            \
	X(inflateSetDictionary, int, (z_streamp, const Bytef *, uInt))         \
	X(inflateGetDictionary, int, (z_streamp, Bytef *, uInt *))             \
	X(inflatePrime, int, (z_streamp, int, int))                            \
	X(inflateMark, long, (z_streamp))                                      \
	X(inflateSync, int, (z_streamp))                                       \
	X(inflateSyncPoint, int, (z_streamp))                                  \
	X(inflateGetHeader, int, (z_streamp, gz_headerp))                      \
	X(inflateUndermine, int, (z_streamp, int))                             \
	X(inflateValidate, int, (z_streamp, int))                              \
	X(inflateCodesUsed, unsigned long, (z_streamp))                        \
	X(inflateBackInit_, int,                                               \
	  (z_streamp, int, unsigned char *, const char *, int))                \
	X(inflateBack, int, (z_streamp, in_func, void *, out_func, void *))    \
	X(inflateBackEnd, int, (z_streamp))                                    \
	X(zlibVersion, const char *, (void))                                   \
	X(zlibCompileFlags, uLong, (void))                                     \
	X(zError, const char *, (int))                                         \
	X(compressBound, uLong, (uLong))                                       \
	X(uncompress2, int, (Bytef *, uLongf *, const Bytef *, uLong *))       \
	X(get_crc_table, const z_crc_t *, (void))                              \
	X(crc32_z, uLong, (uLong, const Bytef *, z_size_t))                    \
	X(adler32_z, uLong, (uLong, const Bytef *, z_size_t))                  \
	X(crc32_combine64, uLong, (uLong, uLong, off64_t))                     \
	X(adler32_combine64, uLong, (uLong, uLong, off64_t))

#define WF_ZREAL_GZ(X)                                                         \
	X(gzopen64, gzFile, (const char *, const char *))                      \
	X(gzdopen, gzFile, (int, const char *))                                \
	X(gzbuffer, int, (gzFile, unsigned))                                   \
	X(gzsetparams, int, (gzFile, int, int))                                \
	X(gzread, int, (gzFile, voidp, unsigned))                              \
	X(gzfread, z_size_t, (voidp, z_size_t, z_size_t, gzFile))              \
	X(gzwrite, int, (gzFile, voidpc, unsigned))                            \
	X(gzfwrite, z_size_t, (voidpc, z_size_t, z_size_t, gzFile))            \
	X(gzvprintf, int, (gzFile, const char *, va_list))                     \
	X(gzputs, int, (gzFile, const char *))                                 \
	X(gzgets, char *, (gzFile, char *, int))                               \
	X(gzputc, int, (gzFile, int))                                          \
	X(gzgetc, int, (gzFile))                                               \
	X(gzgetc_, int, (gzFile))                                              \
	X(gzungetc, int, (int, gzFile))                                        \
	X(gzflush, int, (gzFile, int))                                         \
	X(gzseek64, off64_t, (gzFile, off64_t, int))                           \
	X(gzrewind, int, (gzFile))                                             \
	X(gztell64, off64_t, (gzFile))                                         \
	X(gzoffset64, off64_t, (gzFile))                                       \
	X(gzeof, int, (gzFile))                                                \
	X(gzdirect, int, (gzFile))                                             \
	X(gzclose, int, (gzFile))                                              \
	X(gzclose_r, int, (gzFile))                                            \
	X(gzclose_w, int, (gzFile))                                            \
	X(gzerror, const char *, (gzFile, int *))                              \
	X(gzclearerr, void, (gzFile))

#define WF_ZREAL_MEMBER(name, type, params) type(*name) params;

struct wf_zreal {
	WF_ZREAL_CORE(WF_ZREAL_MEMBER)
	WF_ZREAL_GZ(WF_ZREAL_MEMBER)
};

#undef WF_ZREAL_MEMBER

/* NULL if there is no zlib here, or it lacks a function; logged once. */
const struct wf_zreal *wf_zreal_get(void);

#endif
