/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cold half of submission rings: making them, and the full ring.
 */
#include "queue/sub.h"

static int check(const struct wf_queue_sub_attr *attr)
{
	if (!attr->ring || !attr->doorbell ||
	    attr->entries < WF_QUEUE_ENTRIES_MIN ||
	    attr->entries > WF_QUEUE_ENTRIES_MAX ||
	    (attr->entries & (attr->entries - 1)))
		return -EINVAL;
	if (attr->stride != 64 && attr->stride != 16)
		return -EINVAL;
	/* A descriptor in two lines would be two writes to a device. */
	if ((uintptr_t)attr->ring % WF_LINE || attr->max_batch > attr->entries)
		return -EINVAL;
	if (attr->copy >= WF_QUEUE_COPY_KINDS || !wf_queue_copy_can(attr->copy))
		return -EINVAL;
	return 0;
}

static uint8_t log2_of(uint32_t value)
{
	return (uint8_t)__builtin_ctz(value);
}

/* The post that fills the batch, and the one that finds the ring full. A full
 * ring never keeps a doorbell back: it first rings for pending descriptors, so
 * that a caller that waits for room gets it. */
static bool __attribute__((noinline)) may_post(struct wf_queue_sub *sub)
{
	if (!wf_queue_sub_full(sub))
		return true;
	wf_queue_sub_ring(sub);
	sub->refused++;
	return false;
}

static inline void ring_or_settle(struct wf_queue_sub *sub, bool more)
{
	if (!more || wf_queue_sub_pending(sub) >= sub->batch)
		wf_queue_sub_ring(sub);
	else
		wf_queue_sub_settle(sub);
}

/* One function per copy, so that a post is one call and straight on. */
#define POST_BY(name, size)                                                    \
	static int __attribute__((noinline))                                   \
	slow_##name(struct wf_queue_sub *sub, const void *staged, bool more)   \
	{                                                                      \
		uint32_t at = sub->posted & sub->mask;                         \
                                                                               \
		if (!may_post(sub))                                            \
			return -EAGAIN;                                        \
		wf_queue_copy_##name(sub->ring + (size_t)at * (size), staged); \
		sub->posted++;                                                 \
		ring_or_settle(sub, more);                                     \
		return 0;                                                      \
	}                                                                      \
                                                                               \
	static int post_##name(struct wf_queue_sub *sub, const void *staged,   \
			       bool more)                                      \
	{                                                                      \
		uint8_t *at = sub->next;                                       \
		uint32_t quick;                                                \
                                                                               \
		if (wf_unlikely(                                               \
			    __builtin_sub_overflow(sub->quick, 1u, &quick)))   \
			return slow_##name(sub, staged, more);                 \
		sub->quick = quick;                                            \
		sub->posted++;                                                 \
		sub->next = at + (size);                                       \
		wf_queue_copy_##name(at, staged);                              \
		if (!more)                                                     \
			wf_queue_sub_ring(sub);                                \
		return 0;                                                      \
	}

static inline void wf_queue_copy_16(void *dst, const void *src)
{
	memcpy(dst, src, 16);
}

POST_BY(16, 16)
POST_BY(plain, 64)

#if defined(__x86_64__)

POST_BY(sse, 64)
POST_BY(avx, 64)
POST_BY(avx512, 64)
POST_BY(movdir64b, 64)

static const wf_queue_post_fn posts[WF_QUEUE_COPY_KINDS] = {
	[WF_QUEUE_COPY_PLAIN] = post_plain,
	[WF_QUEUE_COPY_SSE] = post_sse,
	[WF_QUEUE_COPY_AVX] = post_avx,
	[WF_QUEUE_COPY_AVX512] = post_avx512,
	[WF_QUEUE_COPY_MOVDIR64B] = post_movdir64b,
};

#elif defined(__aarch64__)

POST_BY(neon, 64)
POST_BY(st64b, 64)

static const wf_queue_post_fn posts[WF_QUEUE_COPY_KINDS] = {
	[WF_QUEUE_COPY_PLAIN] = post_plain,
	[WF_QUEUE_COPY_NEON] = post_neon,
	[WF_QUEUE_COPY_ST64B] = post_st64b,
};

#else

static const wf_queue_post_fn posts[WF_QUEUE_COPY_KINDS] = {
	[WF_QUEUE_COPY_PLAIN] = post_plain,
};

#endif

int wf_queue_sub_init(struct wf_queue_sub *sub,
		      const struct wf_queue_sub_attr *attr)
{
	uint32_t batch = attr->max_batch ? attr->max_batch : attr->entries;
	int ret = check(attr);

	if (ret)
		return ret;
	*sub = (struct wf_queue_sub){
		.ring = attr->ring,
		.mask = attr->entries - 1,
		.batch = batch,
		.shift = log2_of(attr->stride),
		.post = posts[wf_queue_copy_choose(attr->copy)],
		.doorbell = attr->doorbell,
	};
	wf_queue_sub_settle(sub);
	return 0;
}

int wf_queue_sub_post16(struct wf_queue_sub *sub, const void *staged, bool more)
{
	return post_16(sub, staged, more);
}

int wf_queue_work_init(struct wf_queue_work *work,
		       const struct wf_queue_sub_attr *attr)
{
	int ret = check(attr);

	if (ret)
		return ret;
	*work = (struct wf_queue_work){
		.ring = attr->ring,
		.doorbell = attr->doorbell,
		.mask = (uint16_t)(attr->entries - 1),
		.shift = log2_of(attr->stride),
	};
	return 0;
}
