/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * deflate and inflate share this: memory, versions, texts.
 */
#include "zshim/state.h"

#include <limits.h>
#include <stdlib.h>

static void *default_alloc(void *opaque, unsigned int items, unsigned int size)
{
	(void)opaque;
	/* The user clears what must be cleared, as with zlib. */
	return malloc((size_t)items * size);
}

static void default_free(void *opaque, void *ptr)
{
	(void)opaque;
	free(ptr);
}

static void *mem_alloc(void *opaque, size_t size)
{
	z_streamp strm = opaque;

	if (size > UINT_MAX)
		return NULL;
	return strm->zalloc(strm->opaque, 1, (unsigned int)size);
}

static void mem_free(void *opaque, void *ptr)
{
	z_streamp strm = opaque;

	strm->zfree(strm->opaque, ptr);
}

struct wd_comp_mem wf_zshim_mem(z_streamp strm)
{
	if (!strm->zalloc) {
		strm->zalloc = default_alloc;
		strm->opaque = NULL;
	}
	if (!strm->zfree)
		strm->zfree = default_free;
	return (struct wd_comp_mem){ mem_alloc, mem_free, strm };
}

bool wf_zshim_mem_is_counted(z_streamp strm)
{
	return strm->zalloc != default_alloc && strm->opaque;
}

const char *wf_zshim_text(int err)
{
	switch (err) {
	case Z_STREAM_ERROR:
		return "stream error";
	case Z_DATA_ERROR:
		return "data error";
	case Z_MEM_ERROR:
		return "insufficient memory";
	case Z_BUF_ERROR:
		return "buffer error";
	default:
		return "";
	}
}

int wf_zshim_check_version(const char *version, int stream_size)
{
	if (!version || version[0] != ZLIB_VERSION[0] ||
	    stream_size != (int)sizeof(z_stream))
		return Z_VERSION_ERROR;
	return Z_OK;
}

bool wf_zshim_format(int window_bits, int *alg)
{
	switch (window_bits) {
	case -15:
		*alg = WD_COMP_RAW;
		return true;
	case 15:
		*alg = WD_COMP_ZLIB;
		return true;
	case 15 + 16:
		*alg = WD_COMP_GZIP;
		return true;
	default:
		return false;
	}
}
