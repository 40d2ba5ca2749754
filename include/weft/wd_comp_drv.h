/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Warpdrive: what a compression driver is. Vendors' drivers and our own fill
 * in struct wd_alg_comp. A program registers such a table itself; a plug-in, a
 * shared object in <libdir>/weft/drivers, shows it to every program. The library
 * calls a driver of either kind, and applications need only wd_comp.h.
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

	/* From here on for submit() and poll(). */
	int inflate; /* 1: decompress, 0: compress */
	int result;  /* result: as deflate() and inflate() return */
	int done;    /* result: set by submit() where it finished the job */
	uint64_t
		copied; /* result: bytes copied so that the device reaches them */
	void *data[2]; /* the driver's, from submit() to poll() */
	void *owner;   /* the library's */

	/* From here on since version 2 of the interface. The check of the plain
	 * data that the caller needs, CRC-32 (WD_COMP_GZIP) or Adler-32
	 * (WD_COMP_ZLIB), else WD_COMP_RAW; and, from a driver with
	 * WD_COMP_CAN_CHECK that has computed it, what it is. */
	int check_alg;
	int checked; /* result: ->check is set */
	uint32_t check;
};

struct wd_comp_mem {
	void *(*alloc)(void *opaque, size_t size); /* NULL without memory */
	void (*free)(void *opaque, void *ptr);
	void *opaque;
};

/* These flags say what a driver can do. */
#define WD_COMP_CAN_DEFLATE (1u << 0)	     /* whole pieces */
#define WD_COMP_CAN_INFLATE (1u << 1)	     /* whole streams */
#define WD_COMP_CAN_DEFLATE_DICT (1u << 2)   /* with job->dict */
#define WD_COMP_CAN_INFLATE_DICT (1u << 3)   /* with job->dict */
#define WD_COMP_CAN_DEFLATE_STREAM (1u << 4) /* cut anywhere, all flushes */
#define WD_COMP_CAN_INFLATE_STREAM (1u << 5) /* cut anywhere */
/* Inflate with job->tight takes no stream that zlib would refuse. */
#define WD_COMP_CAN_REFUSE (1u << 6)
/* The driver gives its jobs to `weft devd`, which must not use it in turn. */
#define WD_COMP_BY_DEVD (1u << 7)
/* Inflate with a flush other than FINISH: a piece that ends on a byte, after any
 * block. A driver of streams can do it without saying so. */
#define WD_COMP_CAN_INFLATE_PIECE (1u << 8)
#define WD_COMP_CAN_CHECK (1u << 9) /* job->check */
/* The table has ->version, ->size and what follows them. Tables without this bit
 * end at ->close: that was the whole of it once. */
#define WD_COMP_SIZED (1u << 31)

#define WD_COMP_DRV_VERSION 2

/* Memory that a device reaches where it is; what else there is, its driver
 * copies, and counts in job->copied, or refuses. For `weft info`: the library
 * gives a driver jobs with other memory as well. */
#define WD_COMP_MEM_PROCESS (1u << 0)  /* all of the process (SVA, a CPU) */
#define WD_COMP_MEM_RESERVED (1u << 1) /* reserved or shared on the channel */

/* These are the jobs that one channel of a driver takes. The library keeps to
 * it: a job that is too large or not aligned goes to another driver. */
struct wd_comp_limits {
	uint32_t in_flight; /* jobs at the same time; 0: 1 */
	uint32_t align;	    /* of src and dst, a power of two; 0: any */
	uint64_t src_max;   /* bytes of one job; 0: no limit */
	uint64_t dst_max;
	/* For one job, from when those submitted before it are back; 0: 10 s. */
	uint32_t timeout_ms;
	uint32_t memory; /* WD_COMP_MEM_* */
};

/*
 * A driver works on raw deflate data; formats, checksums and chunking are
 * done above it. All members may be called from several threads at once, but on
 * one channel or stream only by one thread at a time; none may call back into
 * this interface. While a plug-in is loaded, and from init(), it may compress in
 * this thread: the drivers before it do that. wd_alg_comp_register() and
 * _unregister() are -EDEADLK there.
 *
 * A job's result is 0, -ENOSPC, -EBADMSG, -ENODATA, -ENOMEM or -EFAULT (memory of
 * the job is not mapped, or not for this access; if the program can reach it, the
 * next driver does the job). Any other error hands it to the next driver, and so it is with -ENODEV (the device is gone)
 * and -ENOTSUP (it cannot do this one). A driver that claims what cannot be (more
 * produced than there is room for, a job that it does not have, a job that is
 * not back in time) is reported once and not asked again.
 */
struct wd_alg_comp {
	const char *name;
	int priority;	     /* the higher is asked first */
	int node;	     /* NUMA node of the device, -1: none */
	unsigned int can;    /* WD_COMP_CAN_* */
	unsigned int levels; /* bit N: level N, as good as zlib's within 5 % */
	int min_window;	     /* smallest window deflate can keep to */

	/* Once at registration and at unregistration; 0 or -errno. A plug-in's
	 * init returns -ENODEV where there is no such device: that is no
	 * fault, and only `weft info` says so. */
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

	/* With WD_COMP_SIZED in ->can only. */
	uint32_t version;  /* WD_COMP_DRV_VERSION */
	uint32_t size;	   /* sizeof(struct wd_alg_comp) */
	const char *about; /* one line for `weft info`, or NULL */
	/* uacce_dev_info.api of the devices that it drives, or NULL: whose
	 * channels (wd_comp_ctx.ch) it takes. */
	const char *api;
	struct wd_comp_limits limits;

	/*
	 * Channels, for a driver whose jobs do not end in the call. With submit
	 * there, deflate and inflate are not called and may be NULL.
	 *
	 * open_chan: a channel for jobs that need @can, WD_COMP_CAN_DEFLATE or
	 * _INFLATE. @ch is the application's (requested, not started; it stays
	 * the application's) or NULL: one of the driver's own. 0, or -errno, which
	 * makes the job another driver's. For a @ch, @can is first all of the two
	 * that the table has; a driver that cannot do both on one channel
	 * fails, and is then asked for the one that the first job needs.
	 */
	int (*open_chan)(void **chan, struct wd_chan *ch, unsigned int can);
	/* Drops the jobs that are on it, too: that is how they are cancelled.
	 * When it returns, the device touches no memory of theirs. */
	void (*close_chan)(void *chan);
	/* Takes the first jobs of @jobs, and says how many: 0 if the channel is
	 * full (without a job on it for timeout_ms: a fault). -errno: it takes none and never will. A job is the driver's until
	 * poll() has given it back, unless ->done says that it is over. */
	int (*submit)(void *chan, struct wd_comp_job *const *jobs,
		      unsigned int n);
	/* Up to @n jobs that are done, 0 if there are none now. -errno: the
	 * channel is broken, and close_chan() comes next. Must not sleep. */
	int (*poll)(void *chan, struct wd_comp_job **done, unsigned int n);
	/* May be NULL: the library polls. Sleeps until there may be something to
	 * poll, @timeout_ms at most. submit() may run at the same time; the
	 * others do not. */
	int (*wait)(void *chan, int timeout_ms);
};

/*
 * A plug-in exports this symbol: the tables of its drivers. It is looked at
 * once, at the first use of compression in a process.
 *
 *	static const struct wd_alg_comp *const mine[] = { &table, NULL };
 *	const struct wd_driver wd_driver = {
 *		.version = WD_DRIVER_VERSION,
 *		.size = sizeof(struct wd_driver),
 *		.comp = mine,
 *	};
 */
#define WD_DRIVER_VERSION 1

struct wd_drv_dev;

struct wd_driver {
	uint32_t version;
	uint32_t size;
	const struct wd_alg_comp *const *comp; /* up to a NULL */
	/* Plug-ins of before have a struct that ends here. */
	const struct wd_drv_dev *const *devs; /* weft/wd_drv.h; NULL: none */
};

extern const struct wd_driver wd_driver;

/* -EEXIST if the name is taken, -EINVAL if a member that it says it can is
 * missing, -EPROTO if it is of a later version than the library, or what init
 * returned. The struct stays the caller's and must stay. */
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
