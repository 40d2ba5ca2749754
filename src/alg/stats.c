/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of counters of drivers. Any thread counts, with atomic additions; a page
 * that was made stays until the process ends or forks.
 */
#include "alg/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alg/piece.h"
#include "base/list.h"
#include "base/stats.h"

#define X(name) #name,
static const char *const names[WF_ALG_STAT_COUNT] = { WF_ALG_STATS(X) };
#undef X

/* Bytes that our own decompressor makes before it has a page. */
#define WORTH_A_PAGE (1u << 20)

/* Counts that nobody sees. */
static struct wf_stats_page nowhere;

/* The program may have closed our descriptor, and its number may be another
 * file's by now. */
static bool is_still_ours(const struct wf_alg_stats *stats)
{
	struct stat st;

	return stats->fd >= 0 && !fstat(stats->fd, &st) &&
	       st.st_dev == stats->dev && st.st_ino == stats->inode;
}

/* The page is the parent's. No other thread exists, so nobody uses it. */
static void in_child(struct wf_fork_watch *watch)
{
	struct wf_alg_stats *stats =
		wf_container_of(watch, struct wf_alg_stats, watch);
	struct wf_stats_page *page = atomic_load(&stats->page);

	atomic_store(&stats->watched, false);
	if (!page)
		return;
	atomic_store(&stats->page, NULL);
	/* Without a descriptor it is the child's own copy, which is lost. */
	if (stats->fd < 0)
		return;
	if (is_still_ours(stats))
		close(stats->fd);
	stats->fd = -1;
	munmap(page, WF_STATS_BYTES);
}

/* Programs that closed 0, 1 or 2 expect the next file that they open there. */
static int above_standard(int fd)
{
	int moved;

	if (fd > STDERR_FILENO)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (moved < 0)
		return fd;
	close(fd);
	return moved;
}

/* WD_STATS=0: for sandboxes that allow no memfd_create(). */
static bool is_off(void)
{
	const char *value = secure_getenv("WD_STATS");

	return value && !strcmp(value, "0");
}

static struct wf_stats_page *make_locked(struct wf_alg_stats *stats)
{
	struct wf_stats made;
	struct stat st;

	stats->fd = -1;
	if (is_off() || wf_base_stats_open(&made, "driver", stats->name, names,
					   WF_ALG_STAT_COUNT))
		return &nowhere;
	if (made.fd >= 0) {
		stats->fd = above_standard(made.fd);
		if (!fstat(stats->fd, &st)) {
			stats->dev = st.st_dev;
			stats->inode = st.st_ino;
		}
	}
	return made.page;
}

void wf_alg_stats_init(struct wf_alg_stats *stats, const char *name)
{
	*stats = (struct wf_alg_stats){
		.name = name,
		.fd = -1,
		.watch.in_child = in_child,
	};
}

struct wf_stats_page *wf_alg_stats_make(struct wf_alg_stats *stats)
{
	struct wf_stats_page *page;
	int error = errno;

	wf_base_fork_watch_once(&stats->watch, &stats->watched);
	/* A child that is forked meanwhile would keep the descriptor. */
	wf_base_fork_hold();
	page = atomic_load(&stats->page);
	if (!page) {
		page = make_locked(stats);
		atomic_store_explicit(&stats->page, page, memory_order_release);
	}
	wf_base_fork_release();
	errno = error;
	return page;
}

static void add(struct wf_stats_page *page, enum wf_alg_stat item,
		uint64_t more)
{
	atomic_fetch_add_explicit(&page->items[item].value, more,
				  memory_order_relaxed);
}

void wf_alg_stats_bytes(struct wf_alg_stats *stats, uint64_t in, uint64_t out)
{
	struct wf_stats_page *page = wf_alg_stats_page(stats);

	add(page, WF_ALG_STAT_bytes_in, in);
	add(page, WF_ALG_STAT_bytes_out, out);
}

/* Output that does not fit is stored by the library; a piece ends without a
 * final block. */
static bool is_expected(const struct wd_comp_job *job, int result)
{
	if (!job->inflate)
		return result == -ENOSPC;
	return job->flush != WD_COMP_FINISH && result == -ENODATA &&
	       job->border;
}

void wf_alg_stats_job(struct wf_alg_stats *stats, const struct wd_comp_job *job,
		      int result)
{
	struct wf_stats_page *page = wf_alg_stats_page(stats);

	if (!wf_alg_piece_is_final(result)) {
		add(page, WF_ALG_STAT_handed_on, 1);
		return;
	}
	add(page, WF_ALG_STAT_jobs, 1);
	if (result && !is_expected(job, result))
		add(page, WF_ALG_STAT_failed, 1);
	add(page, WF_ALG_STAT_bytes_in, job->consumed);
	add(page, WF_ALG_STAT_bytes_out, job->produced);
	if (job->copied)
		add(page, WF_ALG_STAT_copied_bytes, job->copied);
}

/* -- zlib programs --------------------------------------------------------- */

static struct wf_alg_stats own_inflate = {
	.name = "weft",
	.fd = -1,
	.watch.in_child = in_child,
};
static struct wf_alg_stats real_zlib = {
	.name = "real zlib",
	.fd = -1,
	.watch.in_child = in_child,
};

/* Counted before the page of own_inflate is there. */
static _Atomic uint64_t early_streams, early_in, early_out;

void wf_alg_stats_inflated(unsigned int streams, uint64_t in, uint64_t out)
{
	if (wf_unlikely(!atomic_load_explicit(&own_inflate.page,
					      memory_order_relaxed))) {
		atomic_fetch_add(&early_streams, streams);
		atomic_fetch_add(&early_in, in);
		if (atomic_fetch_add(&early_out, out) + out < WORTH_A_PAGE)
			return;
		streams = (unsigned int)atomic_exchange(&early_streams, 0);
		in = atomic_exchange(&early_in, 0);
		out = atomic_exchange(&early_out, 0);
	}
	if (streams)
		wf_alg_stats_add(&own_inflate, WF_ALG_STAT_jobs, streams);
	wf_alg_stats_bytes(&own_inflate, in, out);
}

void wf_alg_stats_real_zlib(unsigned int streams, uint64_t in, uint64_t out)
{
	if (streams)
		wf_alg_stats_add(&real_zlib, WF_ALG_STAT_jobs, streams);
	wf_alg_stats_bytes(&real_zlib, in, out);
}
