/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header counts the work of a driver for this process, for `weft stat`: a
 * page of counters for each driver that had a job, made at its first one. The
 * counters that a device of `weft devd` has as well are named as there.
 *
 * The page has a descriptor, in programs that know nothing of it. If the program
 * closes it, the page can no longer be found, and counting goes on; we close a
 * descriptor only if it is still that of the page. A forked child starts anew.
 */
#ifndef WF_ALG_STATS_H
#define WF_ALG_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <weft/wd_comp_drv.h>

#include "base/cpu.h"
#include "base/fork.h"
#include "base/stats_defs.h"

#define WF_ALG_STATS(X)                                                        \
	X(channels)	/* open now */                                         \
	X(waiting)	/* jobs on them now */                                 \
	X(jobs)		/* done, and streams begun, ... */                     \
	X(failed)	/* ... of the jobs with an error for the caller */     \
	X(bytes_in)	/* taken by jobs and streams ... */                    \
	X(bytes_out)	/* ... and made */                                     \
	X(copied_bytes) /* so that the device reaches them */                  \
	X(handed_on)	/* jobs that the next driver had to do */              \
	X(busy)		/* submissions that found the channel full */          \
	X(passed_over)	/* jobs that were expected to end sooner elsewhere */

#define X(name) WF_ALG_STAT_##name,
enum wf_alg_stat { WF_ALG_STATS(X) WF_ALG_STAT_COUNT };
#undef X

struct wf_alg_stats {
	const char *name;		      /* of the page; constant */
	_Atomic(struct wf_stats_page *) page; /* NULL: no job so far */
	/* Under base/fork's lock: */
	int fd; /* of this file, if it is still open */
	dev_t dev;
	ino_t inode;
	struct wf_fork_watch watch;
	atomic_bool watched;
};

/* @name is a constant. Makes no page. */
void wf_alg_stats_init(struct wf_alg_stats *stats, const char *name);

/* The page, made now. Never NULL; without memory it is one that nobody sees. */
struct wf_stats_page *wf_alg_stats_make(struct wf_alg_stats *stats);

static inline struct wf_stats_page *
wf_alg_stats_page(struct wf_alg_stats *stats)
{
	struct wf_stats_page *page =
		atomic_load_explicit(&stats->page, memory_order_acquire);

	return wf_likely(page) ? page : wf_alg_stats_make(stats);
}

static inline void wf_alg_stats_add(struct wf_alg_stats *stats,
				    enum wf_alg_stat item, uint64_t more)
{
	atomic_fetch_add_explicit(&wf_alg_stats_page(stats)->items[item].value,
				  more, memory_order_relaxed);
}

/* The driver is done with a job. */
void wf_alg_stats_job(struct wf_alg_stats *stats, const struct wd_comp_job *job,
		      int result);
/* The driver has taken and given so many bytes of a stream. */
void wf_alg_stats_bytes(struct wf_alg_stats *stats, uint64_t in, uint64_t out);

/*
 * Work for zlib programs that no driver does. Decompression by weft itself: the
 * page is made after the first MiB of output, because many short programs
 * decompress a little. Streams that libweft-z has passed to the real zlib.
 */
void wf_alg_stats_inflated(unsigned int streams, uint64_t in, uint64_t out);
void wf_alg_stats_real_zlib(unsigned int streams, uint64_t in, uint64_t out);

#endif
