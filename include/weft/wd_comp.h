/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Warpdrive: compression. The application owns a struct wd_comp_ctx, fills in
 * what it wants, and calls wd_alg_deflate() or wd_alg_inflate(), or their
 * asynchronous forms. The driver that does the work is chosen at the first data
 * of a stream. Drivers register themselves: weft/wd_comp_drv.h.
 *
 * Every call returns 0 or a negative errno:
 *	-EINVAL		a field of the context or an argument is wrong
 *	-ENOSPC		the output does not fit (stateless)
 *	-EBADMSG	the input is not what its format says, or fails its
 *			checksum
 *	-ENODATA	the input ends before its stream does (stateless)
 *	-ENOTSUP	no driver can do exactly this
 *	-ENODEV		the device is gone and took the stream along
 *	-EFAULT		a device has found that memory of the job is not mapped,
 *			or not for this access
 *	-ENOMEM, -ECANCELED, -EBUSY
 */
#ifndef WEFT_WD_COMP_H
#define WEFT_WD_COMP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct wd_chan;

enum wd_comp_alg {
	WD_COMP_RAW,  /* RFC 1951 */
	WD_COMP_ZLIB, /* RFC 1950 */
	WD_COMP_GZIP, /* RFC 1952; a stream is one member */
};

enum wd_comp_mode {
	WD_COMP_STATELESS, /* a call is a whole stream */
	WD_COMP_STATEFUL,  /* a stream is any number of calls */
};

enum wd_comp_flush {
	WD_COMP_FINISH, /* 0: what a stateless call means by default */
	WD_COMP_NO_FLUSH,
	WD_COMP_SYNC_FLUSH, /* all input so far can be decoded, byte aligned */
	WD_COMP_FULL_FLUSH, /* and nothing after looks back before here */
	/* Stateful only, zlib's Z_PARTIAL_FLUSH and Z_BLOCK: */
	WD_COMP_PARTIAL_FLUSH, /* all input can be decoded, not aligned */
	WD_COMP_BLOCK_FLUSH,   /* the current block ends, some bits may wait */
};

#define WD_COMP_LEVEL_MOST 12

/* A stateful call returns one of these: it says what the call wants next. */
enum wd_comp_status {
	WD_COMP_MORE_IN,  /* all input taken, all output given */
	WD_COMP_MORE_OUT, /* more output waits: call again with room */
	WD_COMP_END,	  /* the stream has ended */
};

/*
 * Owned by the application. Zero it, then set what matters. Not shared between
 * threads while a call runs; free to move to another thread between calls.
 */
struct wd_comp_ctx {
	struct wd_chan *ch; /* a channel to use, NULL: any driver will do */
	void *in;	    /* asynchronous: the input and */
	void *out;	    /* the output of the job in flight */
	int window_size;    /* log2 of the window, 9-15; 0 means 15 */
	int alg_type;	    /* enum wd_comp_alg */
	int comp_level;	    /* 0-9 as zlib's; 10-12: libdeflate's, slow */
	int tight;	 /* 1: as small as zlib's; 0: within 5 %, and faster */
	int stream_mode; /* enum wd_comp_mode */
	int new_stream;	 /* stateful: set to begin; the call clears it */
	int flush_type;	 /* enum wd_comp_flush */
#ifdef __cplusplus
	void *private_data;
#else
	void *private; /* the library's; NULL before the first call */
#endif
	void *job; /* the library's; NULL while nothing is in flight */

	const char *driver; /* this driver and no other; NULL: the best */
	int node;	    /* NUMA node + 1 to be near to; 0: wherever */

	/*
	 * Stateless and raw: up to 32 KiB that came before the input. Deflate
	 * with SYNC or FULL flush makes a piece that is not final and ends on
	 * a byte, so that pieces can be put one after the other; inflate with
	 * either takes such a piece, which must end there.
	 */
	const void *dict;
	size_t dict_len;

	/* Results of the last call. */
	int status;	    /* enum wd_comp_status */
	size_t in_len;	    /* asynchronous: given, then consumed */
	size_t out_len;	    /* asynchronous: given, then produced */
	uint64_t total_in;  /* of the stream */
	uint64_t total_out; /* of the stream */
	uint32_t check;	    /* gzip: CRC-32; zlib: Adler-32; raw: see below */
	int raw_check;	    /* raw: compute this one, enum wd_comp_alg */
	const char *used;   /* the driver that did it */
	/* Bytes of input, output and dictionary that were copied on their way
	 * to the driver or back: by the library, the driver or its device. */
	uint64_t copied;
};

/*
 * Compresses or decompresses. *src_len and *dst_len say how much there is, and
 * on return how much was consumed and produced, also after an error.
 * Stateless: one call, one stream; -ENOSPC leaves the output undefined.
 * Stateful: takes and gives what it can; ctx->status says what it wants next.
 */
int wd_alg_deflate(struct wd_comp_ctx *ctx, const void *src, size_t *src_len,
		   void *dst, size_t *dst_len);
int wd_alg_inflate(struct wd_comp_ctx *ctx, const void *src, size_t *src_len,
		   void *dst, size_t *dst_len);

/* Output of a stateless deflate of @len bytes needs at most this much. */
size_t wd_alg_deflate_bound(const struct wd_comp_ctx *ctx, size_t len);

/* Ends a stateful stream wherever it stands and frees what it held. */
void wd_alg_end(struct wd_comp_ctx *ctx);

/*
 * Asynchronous. The context, src and dst belong to the library until the
 * callback has begun; it is called exactly once for every call that returned 0,
 * by a thread that calls wd_alg_poll(), or by the poll thread. @result is what
 * the synchronous call would have returned, or -ECANCELED. A context carries
 * one job at a time (-EBUSY).
 */
typedef void (*wd_comp_callback)(struct wd_comp_ctx *ctx, int result,
				 void *arg);

int wd_alg_async_deflate(struct wd_comp_ctx *ctx, wd_comp_callback callback,
			 void *arg, const void *src, size_t src_len, void *dst,
			 size_t dst_len);
int wd_alg_async_inflate(struct wd_comp_ctx *ctx, wd_comp_callback callback,
			 void *arg, const void *src, size_t src_len, void *dst,
			 size_t dst_len);

/* Runs callbacks of jobs that are done, @max at most (0: all there are), and
 * returns how many. wd_alg_wait() sleeps until there is one to run, or until
 * @timeout_ms have passed (-1: no limit), or nothing is in flight. */
int wd_alg_poll(unsigned int max);
int wd_alg_wait(int timeout_ms);

/*
 * A descriptor for poll(2) and event loops: readable while there are callbacks to
 * run, until wd_alg_poll() has run them. Where jobs are on devices, a thread of
 * the library looks at these. The same descriptor at each call, until
 * wd_alg_async_fini() closes it; do not read, write or close it. A forked child
 * does not have it and may ask for its own. Or -errno.
 */
int wd_alg_event_fd(void);

/* A thread that polls, so that nobody else need. -EBUSY if there is one. */
int wd_alg_poll_start(void);
int wd_alg_poll_stop(void);

/* Threads that do asynchronous work where no device does; from 1 to 1024. Takes
 * effect for threads not yet started. Default: the processors we may use. */
int wd_alg_async_threads(unsigned int count);

/* A job that nobody has begun ends with -ECANCELED (0 is returned); one under
 * way goes on (-EINPROGRESS); -ENOENT if the context has none. */
int wd_alg_cancel(struct wd_comp_ctx *ctx);

/* Cancels what has not begun, waits for the rest, runs every callback, and
 * stops all threads. The next asynchronous call starts anew. */
void wd_alg_async_fini(void);

/*
 * One large buffer over several threads: pieces with a carried dictionary, one
 * valid stream of ctx->alg_type. Begins a restart point, which needs nothing
 * from before it, every so often; *index (may be NULL) gets where.
 */
struct wd_comp_point {
	uint64_t in;  /* offset in the compressed stream */
	uint64_t out; /* offset in what it decompresses to */
};

struct wd_comp_index {
	size_t count;
	struct wd_comp_point *points;
};

int wd_alg_deflate_parallel(struct wd_comp_ctx *ctx, unsigned int threads,
			    const void *src, size_t *src_len, void *dst,
			    size_t *dst_len, struct wd_comp_index *index);
/* The index is a hint that is checked: a wrong one costs time, never data. */
int wd_alg_inflate_parallel(struct wd_comp_ctx *ctx, unsigned int threads,
			    const void *src, size_t *src_len, void *dst,
			    size_t *dst_len, const struct wd_comp_index *index);
void wd_comp_index_free(struct wd_comp_index *index);

/* CRC-32 (WD_COMP_GZIP) or Adler-32 (WD_COMP_ZLIB), by the fastest code there
 * is. Begin with wd_comp_check_init(); combine() joins those of two pieces. */
uint32_t wd_comp_check_init(int alg);
uint32_t wd_comp_check(int alg, uint32_t check, const void *data, size_t len);
uint32_t wd_comp_check_combine(int alg, uint32_t first, uint32_t second,
			       uint64_t second_len);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
