/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zlib-ng's names for streams. Each stream holds one of zlib's, on which our
 * own functions work; fields are carried over before and back after each call.
 */
#include "zshim/zng.h"

#include <stdbool.h>
#include <string.h>

#include "zshim/state.h"

#define API WF_ZSHIM_API
#define MAGIC 0x7477656674007a6eull
#define VERSION "2.1.0"

struct inner {
	uint64_t magic;
	z_stream z;
	int level;
	int strategy;
	int reproducible;
};

/* Only for these names in the dynamic symbol table: no file includes them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

API const char zng_vstring[] = VERSION " weft";

API const char *zlibng_version(void)
{
	return VERSION;
}

static struct inner *inner_of(struct wf_zng_stream *strm)
{
	struct inner *in = strm ? strm->state : NULL;

	return in && in->magic == MAGIC ? in : NULL;
}

static z_streamp pull(struct wf_zng_stream *strm)
{
	struct inner *in = inner_of(strm);

	if (!in)
		return NULL;
	in->z.next_in = (Bytef *)(uintptr_t)strm->next_in;
	in->z.avail_in = strm->avail_in;
	in->z.total_in = strm->total_in;
	in->z.next_out = strm->next_out;
	in->z.avail_out = strm->avail_out;
	in->z.total_out = strm->total_out;
	return &in->z;
}

static void push(struct wf_zng_stream *strm)
{
	struct inner *in = inner_of(strm);

	if (!in)
		return;
	strm->next_in = in->z.next_in;
	strm->avail_in = in->z.avail_in;
	strm->total_in = in->z.total_in;
	strm->next_out = in->z.next_out;
	strm->avail_out = in->z.avail_out;
	strm->total_out = in->z.total_out;
	strm->msg = in->z.msg;
	strm->data_type = in->z.data_type;
	strm->adler = (uint32_t)in->z.adler;
}

/* A stream with an inner one that is not yet begun. */
static struct inner *create(struct wf_zng_stream *strm)
{
	z_stream probe = { .zalloc = strm->zalloc,
			   .zfree = strm->zfree,
			   .opaque = strm->opaque };
	struct inner *in;

	wf_zshim_mem(&probe);
	strm->zalloc = probe.zalloc;
	strm->zfree = probe.zfree;
	strm->opaque = probe.opaque;
	in = strm->zalloc(strm->opaque, 1, sizeof(*in));
	if (!in)
		return NULL;
	memset(in, 0, sizeof(*in));
	in->magic = MAGIC;
	in->z.zalloc = strm->zalloc;
	in->z.zfree = strm->zfree;
	in->z.opaque = strm->opaque;
	strm->state = in;
	return in;
}

static void discard(struct wf_zng_stream *strm)
{
	struct inner *in = inner_of(strm);

	if (!in)
		return;
	in->magic = 0;
	strm->zfree(strm->opaque, in);
	strm->state = NULL;
}

static int begun(struct wf_zng_stream *strm, int ret)
{
	push(strm);
	if (ret != Z_OK)
		discard(strm);
	return ret;
}

API int32_t zng_deflateInit2(struct wf_zng_stream *strm, int32_t level,
			     int32_t method, int32_t bits, int32_t mem_level,
			     int32_t strategy)
{
	struct inner *in;

	if (!strm)
		return Z_STREAM_ERROR;
	in = create(strm);
	if (!in)
		return Z_MEM_ERROR;
	in->level = level == -1 ? 6 : level;
	in->strategy = strategy;
	return begun(strm, deflateInit2(pull(strm), level, method, bits,
					mem_level, strategy));
}

API int32_t zng_deflateInit(struct wf_zng_stream *strm, int32_t level)
{
	return zng_deflateInit2(strm, level, Z_DEFLATED, MAX_WBITS, 8,
				Z_DEFAULT_STRATEGY);
}

static bool other_version(const char *version, int32_t size)
{
	return !version || version[0] != VERSION[0] ||
	       size != (int32_t)sizeof(struct wf_zng_stream);
}

API int32_t zng_deflateInit2_(struct wf_zng_stream *strm, int32_t level,
			      int32_t method, int32_t bits, int32_t mem_level,
			      int32_t strategy, const char *version,
			      int32_t size)
{
	return other_version(version, size) ?
		       Z_VERSION_ERROR :
		       zng_deflateInit2(strm, level, method, bits, mem_level,
					strategy);
}

API int32_t zng_deflateInit_(struct wf_zng_stream *strm, int32_t level,
			     const char *version, int32_t size)
{
	return other_version(version, size) ? Z_VERSION_ERROR :
					      zng_deflateInit(strm, level);
}

API int32_t zng_inflateInit2(struct wf_zng_stream *strm, int32_t bits)
{
	if (!strm)
		return Z_STREAM_ERROR;
	if (!create(strm))
		return Z_MEM_ERROR;
	return begun(strm, inflateInit2(pull(strm), bits));
}

API int32_t zng_inflateInit(struct wf_zng_stream *strm)
{
	return zng_inflateInit2(strm, MAX_WBITS);
}

API int32_t zng_inflateInit2_(struct wf_zng_stream *strm, int32_t bits,
			      const char *version, int32_t size)
{
	return other_version(version, size) ? Z_VERSION_ERROR :
					      zng_inflateInit2(strm, bits);
}

API int32_t zng_inflateInit_(struct wf_zng_stream *strm, const char *version,
			     int32_t size)
{
	return other_version(version, size) ? Z_VERSION_ERROR :
					      zng_inflateInit(strm);
}

API int32_t zng_inflateBackInit(struct wf_zng_stream *strm, int32_t bits,
				uint8_t *window)
{
	if (!strm)
		return Z_STREAM_ERROR;
	if (!create(strm))
		return Z_MEM_ERROR;
	return begun(strm, inflateBackInit(pull(strm), bits, window));
}

API int32_t zng_inflateBackInit_(struct wf_zng_stream *strm, int32_t bits,
				 uint8_t *window, const char *version,
				 int32_t size)
{
	return other_version(version, size) ?
		       Z_VERSION_ERROR :
		       zng_inflateBackInit(strm, bits, window);
}

/* A call on a stream, and its result without one. */
#define STREAM(type, name, params, args, failed)                               \
	API type zng_##name params                                             \
	{                                                                      \
		z_streamp z = pull(strm);                                      \
		type ret;                                                      \
                                                                               \
		if (!z)                                                        \
			return failed;                                         \
		ret = (type)name args;                                         \
		push(strm);                                                    \
		return ret;                                                    \
	}

typedef struct wf_zng_stream *strm_t;

STREAM(int32_t, deflate, (strm_t strm, int32_t flush), (z, flush),
       Z_STREAM_ERROR)
STREAM(int32_t, deflateReset, (strm_t strm), (z), Z_STREAM_ERROR)
STREAM(int32_t, deflateResetKeep, (strm_t strm), (z), Z_STREAM_ERROR)
STREAM(int32_t, deflateTune,
       (strm_t strm, int32_t good, int32_t lazy, int32_t nice, int32_t chain),
       (z, good, lazy, nice, chain), Z_STREAM_ERROR)
STREAM(int32_t, deflateSetDictionary,
       (strm_t strm, const uint8_t *dict, uint32_t len), (z, dict, len),
       Z_STREAM_ERROR)
STREAM(int32_t, deflateGetDictionary,
       (strm_t strm, uint8_t *dict, uint32_t *len), (z, dict, len),
       Z_STREAM_ERROR)
STREAM(int32_t, deflatePending, (strm_t strm, uint32_t *n, int32_t *bits),
       (z, n, bits), Z_STREAM_ERROR)
STREAM(int32_t, deflatePrime, (strm_t strm, int32_t bits, int32_t value),
       (z, bits, value), Z_STREAM_ERROR)
STREAM(int32_t, deflateSetHeader, (strm_t strm, gz_headerp head), (z, head),
       Z_STREAM_ERROR)
STREAM(int32_t, inflate, (strm_t strm, int32_t flush), (z, flush),
       Z_STREAM_ERROR)
STREAM(int32_t, inflateReset, (strm_t strm), (z), Z_STREAM_ERROR)
STREAM(int32_t, inflateReset2, (strm_t strm, int32_t bits), (z, bits),
       Z_STREAM_ERROR)
STREAM(int32_t, inflateResetKeep, (strm_t strm), (z), Z_STREAM_ERROR)
STREAM(int32_t, inflateSetDictionary,
       (strm_t strm, const uint8_t *dict, uint32_t len), (z, dict, len),
       Z_STREAM_ERROR)
STREAM(int32_t, inflateGetDictionary,
       (strm_t strm, uint8_t *dict, uint32_t *len), (z, dict, len),
       Z_STREAM_ERROR)
STREAM(int32_t, inflateSync, (strm_t strm), (z), Z_STREAM_ERROR)
STREAM(int32_t, inflateSyncPoint, (strm_t strm), (z), Z_STREAM_ERROR)
STREAM(int32_t, inflatePrime, (strm_t strm, int32_t bits, int32_t value),
       (z, bits, value), Z_STREAM_ERROR)
STREAM(long, inflateMark, (strm_t strm), (z), -(1L << 16))
STREAM(int32_t, inflateGetHeader, (strm_t strm, gz_headerp head), (z, head),
       Z_STREAM_ERROR)
STREAM(int32_t, inflateUndermine, (strm_t strm, int32_t on), (z, on),
       Z_STREAM_ERROR)
STREAM(int32_t, inflateValidate, (strm_t strm, int32_t on), (z, on),
       Z_STREAM_ERROR)
STREAM(unsigned long, inflateCodesUsed, (strm_t strm), (z), (unsigned long)-1)
STREAM(int32_t, inflateBack,
       (strm_t strm, in_func in, void *in_arg, out_func out, void *out_arg),
       (z, in, in_arg, out, out_arg), Z_STREAM_ERROR)

API int32_t zng_deflateParams(struct wf_zng_stream *strm, int32_t level,
			      int32_t strategy)
{
	z_streamp z = pull(strm);
	int ret;

	if (!z)
		return Z_STREAM_ERROR;
	ret = deflateParams(z, level, strategy);
	push(strm);
	if (ret == Z_OK) {
		inner_of(strm)->level = level == -1 ? 6 : level;
		inner_of(strm)->strategy = strategy;
	}
	return ret;
}

/* Without a stream zlib has an answer too. */
API unsigned long zng_deflateBound(struct wf_zng_stream *strm,
				   unsigned long len)
{
	return deflateBound(pull(strm), len);
}

#define END(name)                                                              \
	API int32_t zng_##name(struct wf_zng_stream *strm)                     \
	{                                                                      \
		z_streamp z = pull(strm);                                      \
		int ret;                                                       \
                                                                               \
		if (!z)                                                        \
			return Z_STREAM_ERROR;                                 \
		ret = name(z);                                                 \
		push(strm);                                                    \
		discard(strm);                                                 \
		return ret;                                                    \
	}

END(deflateEnd)
END(inflateEnd)
END(inflateBackEnd)

static int copy(struct wf_zng_stream *dest, struct wf_zng_stream *source,
		int (*func)(z_streamp, z_streamp))
{
	struct inner *from = inner_of(source), *to;
	int ret;

	if (!from || !dest)
		return Z_STREAM_ERROR;
	pull(source);
	*dest = *source;
	/* It must never end a stream of another owner. */
	dest->state = NULL;
	to = create(dest);
	if (!to)
		return Z_MEM_ERROR;
	to->level = from->level;
	to->strategy = from->strategy;
	to->reproducible = from->reproducible;
	ret = func(&to->z, &from->z);
	if (ret != Z_OK)
		discard(dest);
	return ret;
}

API int32_t zng_deflateCopy(struct wf_zng_stream *dest,
			    struct wf_zng_stream *source)
{
	return copy(dest, source, deflateCopy);
}

API int32_t zng_inflateCopy(struct wf_zng_stream *dest,
			    struct wf_zng_stream *source)
{
	return copy(dest, source, inflateCopy);
}

/* Checks the list: sizes, and each parameter once. */
static int check_values(struct wf_zng_value *values, size_t count)
{
	int ret = Z_OK;

	for (size_t i = 0; i < count; i++) {
		struct wf_zng_value *v = &values[i];

		v->status = v->param < WF_ZNG_LEVEL ||
					    v->param > WF_ZNG_REPRODUCIBLE ?
				    Z_VERSION_ERROR :
			    v->size < sizeof(int) ? Z_BUF_ERROR :
						    Z_OK;
		for (size_t j = 0; j < i; j++) {
			if (values[j].param == v->param)
				v->status = Z_BUF_ERROR;
		}
		if (v->status == Z_BUF_ERROR ||
		    (v->status != Z_OK && ret == Z_OK))
			ret = v->status;
	}
	return ret;
}

/* The value of a requested parameter. NULL if it was not requested. */
static struct wf_zng_value *find(struct wf_zng_value *values, size_t count,
				 int param, int *value)
{
	for (size_t i = 0; i < count; i++) {
		if (values[i].param != param || values[i].status != Z_OK)
			continue;
		memcpy(value, values[i].buf, sizeof(*value));
		return &values[i];
	}
	return NULL;
}

API int32_t zng_deflateSetParams(struct wf_zng_stream *strm,
				 struct wf_zng_value *values, size_t count)
{
	struct inner *in = inner_of(strm);
	struct wf_zng_value *level, *strategy, *reproducible;
	int new_level, new_strategy, new_reproducible, ret, set;

	if (!in)
		return Z_STREAM_ERROR;
	ret = check_values(values, count);
	if (ret == Z_BUF_ERROR)
		return ret;
	new_level = in->level;
	new_strategy = in->strategy;
	new_reproducible = in->reproducible;
	level = find(values, count, WF_ZNG_LEVEL, &new_level);
	strategy = find(values, count, WF_ZNG_STRATEGY, &new_strategy);
	reproducible =
		find(values, count, WF_ZNG_REPRODUCIBLE, &new_reproducible);
	/* Before the parameters, which flush the data so far. */
	if (new_reproducible && !in->reproducible &&
	    wf_zshim_deflate_reproducible(pull(strm)) != Z_OK) {
		reproducible->status = Z_STREAM_ERROR;
		return Z_STREAM_ERROR;
	}
	in->reproducible = new_reproducible;
	set = zng_deflateParams(strm, new_level, new_strategy);
	if (set == Z_OK)
		return ret;
	if (level)
		level->status = Z_STREAM_ERROR;
	if (strategy)
		strategy->status = Z_STREAM_ERROR;
	return set == Z_BUF_ERROR ? set : Z_STREAM_ERROR;
}

API int32_t zng_deflateGetParams(struct wf_zng_stream *strm,
				 struct wf_zng_value *values, size_t count)
{
	struct inner *in = inner_of(strm);
	int ret;

	if (!in)
		return Z_STREAM_ERROR;
	ret = check_values(values, count);
	for (size_t i = 0; i < count && ret != Z_BUF_ERROR; i++) {
		const int *from =
			values[i].param == WF_ZNG_LEVEL	   ? &in->level :
			values[i].param == WF_ZNG_STRATEGY ? &in->strategy :
							     &in->reproducible;

		if (values[i].status == Z_OK)
			memcpy(values[i].buf, from, sizeof(*from));
	}
	return ret;
}
