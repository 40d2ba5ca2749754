/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Warpdrive: what a compression driver is. Vendors' drivers and our own fill
 * in struct wd_alg_comp and register it; applications need only wd_comp.h.
 */
#ifndef WEFT_WD_COMP_DRV_H
#define WEFT_WD_COMP_DRV_H

#include <stddef.h>
#include <stdint.h>

#include <weft/wd_comp.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* One call on raw deflate data. In: all but the results. */
struct wd_comp_job {
	const uint8_t *src;
	size_t src_len;
	uint8_t *dst;
	size_t dst_len;
	const uint8_t *dict; /* what came before src, 32 KiB at most */
	size_t dict_len;
	int level;
	int window;
	int tight;	 /* as small as zlib's at this level, not within 5 % */
	int flush;	 /* enum wd_comp_flush */
	size_t consumed; /* results */
	size_t produced;
	int ended;  /* inflate: the final block is done */
	int border; /* inflate: between two blocks, on a byte */
};

struct wd_comp_mem {
	void *(*alloc)(void *opaque, size_t size); /* NULL without memory */
	void (*free)(void *opaque, void *ptr);
	void *opaque;
};

/* What a driver can do. */
#define WD_COMP_CAN_DEFLATE (1u << 0)	     /* whole pieces */
#define WD_COMP_CAN_INFLATE (1u << 1)	     /* whole streams */
#define WD_COMP_CAN_DEFLATE_DICT (1u << 2)   /* with job->dict */
#define WD_COMP_CAN_INFLATE_DICT (1u << 3)   /* with job->dict */
#define WD_COMP_CAN_DEFLATE_STREAM (1u << 4) /* cut anywhere, all flushes */
#define WD_COMP_CAN_INFLATE_STREAM (1u << 5) /* cut anywhere */
/* Inflate with job->tight takes no stream that zlib would refuse. */
#define WD_COMP_CAN_REFUSE (1u << 6)

/*
 * A driver works on raw deflate data; formats, checksums and chunking are
 * done above it. All members may be called from several threads at once; none
 * may call back into this interface. -ENODEV from deflate or inflate means
 * that the device is gone, -ENOTSUP that it cannot do this one job: the next
 * driver does it.
 */
struct wd_alg_comp {
	const char *name;
	int priority;	     /* the higher is asked first */
	int node;	     /* NUMA node of the device, -1: none */
	unsigned int can;    /* WD_COMP_CAN_* */
	unsigned int levels; /* bit N: level N, as good as zlib's within 5 % */
	int min_window;	     /* smallest window deflate can keep to */

	/* Once at registration and at unregistration; 0 or -errno. */
	int (*init)(void);
	void (*exit)(void);

	/*
	 * The whole of src. FINISH ends the stream; SYNC and FULL leave it
	 * open, on a byte. -ENOSPC: does not fit (what dst holds is undefined).
	 */
	int (*deflate)(struct wd_comp_job *job);
	/*
	 * Up to the end of the final block. -ENOSPC: dst is full before it;
	 * -ENODATA: src ends before it; -EBADMSG. With a flush other than
	 * FINISH, -ENODATA is expected, and job->border must be right.
	 */
	int (*inflate)(struct wd_comp_job *job);

	/*
	 * Streams. *stream is allocated from @mem; job gives level, window
	 * and dictionary. A step takes and gives what it can; 0, -EBADMSG or
	 * -ENODEV. Deflate has flushed when it returns with room left in dst.
	 */
	int (*open)(void **stream, int inflate, const struct wd_comp_job *job,
		    const struct wd_comp_mem *mem);
	int (*step)(void *stream, struct wd_comp_job *job);
	int (*copy)(void **to, void *stream, const struct wd_comp_mem *mem);
	void (*close)(void *stream);
};

/* -EEXIST if the name is taken, -EINVAL if a member that it says it can is
 * missing, or what init returned. The struct stays the caller's and must stay.
 */
int wd_alg_comp_register(const struct wd_alg_comp *driver);
/* -EBUSY while a stream or a job uses it, -ENOENT. */
int wd_alg_comp_unregister(const struct wd_alg_comp *driver);
/* The Nth driver in the order in which they are asked, or NULL. */
const struct wd_alg_comp *wd_alg_comp_list(unsigned int n);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
