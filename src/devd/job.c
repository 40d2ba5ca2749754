/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Running one job.
 */
#include "devd/job.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "devd/alg.h"

/* A piece of a job that can be cut: stays in a second-level cache. */
#define PIECE (256u << 10)
/* Bytes of its memory that a worker keeps while it sleeps. */
#define KEPT (2u << 20)
/* Time between two checks that a client is there: two system calls in addition
 * to the two of a small job. */
#define LOOK_EVERY (100 * WF_NS_PER_US)

/* -- memory that vanishes -------------------------------------------------- */

static _Thread_local sigjmp_buf *volatile escape;
static struct sigaction before;
static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int guards;

static void on_bus_error(int number)
{
	if (escape)
		siglongjmp(*escape, 1);
	/* Not ours: take the previous action. */
	sigaction(SIGBUS, &before, NULL);
	raise(number);
}

void wf_devd_job_guard(void)
{
	struct sigaction action = {
		.sa_handler = on_bus_error,
		.sa_flags = SA_NODEFER, /* it is left by a jump */
	};

	pthread_mutex_lock(&guard_lock);
	if (!guards++)
		sigaction(SIGBUS, &action, &before);
	pthread_mutex_unlock(&guard_lock);
}

void wf_devd_job_unguard(void)
{
	pthread_mutex_lock(&guard_lock);
	if (!--guards)
		sigaction(SIGBUS, &before, NULL);
	pthread_mutex_unlock(&guard_lock);
}

static int run_guarded(const struct wf_devd_alg *alg, struct wf_devd_work *work)
{
	sigjmp_buf here;
	sigset_t ours;
	int status;

	/* Saving the mask would be a system call for every job: those that
	 * jump put it right, for whatever was blocked in the handler. */
	if (sigsetjmp(here, 0)) {
		escape = NULL;
		sigemptyset(&ours);
		sigaddset(&ours, SIGBUS);
		sigaddset(&ours, SIGUSR2);
		pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
		return EFAULT;
	}
	escape = &here;
	status = alg->run(work);
	escape = NULL;
	return status;
}

/* -- memory that is mapped here: reserved memory, the stage ---------------- */

/* Memory that a channel's jobs may name. */
struct span {
	uint8_t *base;
	uint64_t dma, size;
};

/* Where a channel's address is in our memory, or NULL if not all of it belongs
 * to the channel. */
static uint8_t *reach(const struct span *span, uint64_t addr, uint64_t len)
{
	static uint8_t nothing;

	if (!len)
		return &nothing;
	if (addr < span->dma || len > span->size ||
	    addr - span->dma > span->size - len)
		return NULL;
	return span->base + (addr - span->dma);
}

static int run_mapped(const struct span *span, const struct wf_devd_alg *alg,
		      struct wf_devd_work *work)
{
	const struct wf_accel_job *job = work->job;

	work->in = reach(span, job->src, job->src_len);
	work->out = reach(span, job->dst, job->dst_len);
	work->dict = reach(span, job->dict, job->dict_len);
	if (!work->in || !work->out || !work->dict)
		return EFAULT;
	work->in_len = job->src_len;
	work->out_len = job->dst_len;
	work->dict_len = job->dict_len;
	work->shared = true;
	return run_guarded(alg, work);
}

static int run_staged(const struct wf_devd_chan *chan,
		      const struct wf_devd_alg *alg, struct wf_devd_work *work)
{
	const struct span span = { .base = chan->stage,
				   .size = chan->stage_size };

	return run_mapped(&span, alg, work);
}

static struct span reserved_of(struct wf_devd_chan *chan)
{
	/* Pairs with the release in request.c: the region is all there. */
	struct wf_devd_region *region =
		atomic_load_explicit(&chan->region, memory_order_acquire);

	if (!region)
		return (struct span){ 0 };
	return (struct span){ .base = region->base,
			      .dma = region->dma,
			      .size = region->size };
}

static int run_reserved(struct wf_devd_chan *chan,
			const struct wf_devd_alg *alg,
			struct wf_devd_work *work)
{
	const struct span span = reserved_of(chan);

	return run_mapped(&span, alg, work);
}

/* -- any memory of the client: SVA ----------------------------------------- */

enum way { FETCH, DELIVER };

/* By the descriptor that the client has opened: see gift.h. */
static int move(struct wf_devd_chan *chan, enum way way, uint8_t *local,
		uint64_t remote, size_t len)
{
	while (len) {
		ssize_t moved;

		if (remote > INT64_MAX)
			return EFAULT; /* pread() would call it negative */
		moved = way == FETCH ?
				pread(chan->memory, local, len, (off_t)remote) :
				pwrite(chan->memory, local, len, (off_t)remote);
		/* The address space has ended: the process died, or became
		 * another program. */
		if (!moved)
			return ESRCH;
		if (moved < 0)
			return errno == EIO ? EFAULT : errno;
		/* Short: the page after it is not there; the next call says
		 * so. */
		local += moved;
		remote += (uint64_t)moved;
		len -= (size_t)moved;
	}
	return 0;
}

bool wf_devd_scratch_grow(uint8_t **buffer, size_t *size, size_t want)
{
	uint8_t *larger;

	if (want <= *size)
		return true;
	larger = realloc(*buffer, want);
	if (!larger)
		return false;
	*buffer = larger;
	*size = want;
	return true;
}

void wf_devd_scratch_fini(struct wf_devd_scratch *scratch)
{
	free(scratch->in);
	free(scratch->out);
}

void wf_devd_scratch_trim(struct wf_devd_scratch *scratch)
{
	if (scratch->in_size + scratch->out_size <= KEPT)
		return;
	wf_devd_scratch_fini(scratch);
	*scratch = (struct wf_devd_scratch){ 0 };
}

static void count_copied(struct wf_accel_done *done, size_t len)
{
	done->copied = len > UINT32_MAX - done->copied ?
			       UINT32_MAX :
			       done->copied + (uint32_t)len;
}

/* Whether the client is there: it may have given us up while we were stopped,
 * and use the memory for something else. */
static bool is_here(struct wf_devd_chan *chan)
{
	uint64_t now = wf_base_clock_ns();

	if (now - chan->looked_at <= LOOK_EVERY)
		return true;
	if (!wf_devd_client_here(chan->client))
		return false;
	chan->looked_at = now;
	return true;
}

static int fetch(struct wf_devd_chan *chan, uint8_t *local, uint64_t remote,
		 size_t len)
{
	return move(chan, FETCH, local, remote, len);
}

static int deliver(struct wf_devd_chan *chan, uint8_t *local, uint64_t remote,
		   size_t len)
{
	if (!is_here(chan))
		return ESRCH;
	return move(chan, DELIVER, local, remote, len);
}

static int run_pieces(struct wf_devd_chan *chan,
		      struct wf_devd_scratch *scratch,
		      const struct wf_devd_alg *alg, struct wf_devd_work *work,
		      struct wf_accel_done *done)
{
	const struct wf_accel_job *job = work->job;
	size_t at = 0, part;
	int status;

	if ((alg->flags & WF_DEVD_ALG_OUT) && job->src_len > job->dst_len)
		return ENOSPC;
	if (!wf_devd_scratch_grow(&scratch->in, &scratch->in_size, PIECE))
		return ENOMEM;
	work->in = work->out = scratch->in;
	do {
		part = job->src_len - at < PIECE ? job->src_len - at : PIECE;
		status = fetch(chan, scratch->in, job->src + at, part);
		if (status)
			return status;
		count_copied(done, part);
		work->in_len = part;
		work->out_len = part;
		status = alg->run(work);
		if (status)
			return status;
		if (alg->flags & WF_DEVD_ALG_OUT) {
			status =
				deliver(chan, scratch->in, job->dst + at, part);
			if (status)
				return status;
			count_copied(done, part);
		}
		at += part;
	} while (at < job->src_len);
	work->consumed = at;
	work->produced = alg->flags & WF_DEVD_ALG_OUT ? at : 0;
	return 0;
}

static int run_whole(struct wf_devd_chan *chan, struct wf_devd_scratch *scratch,
		     const struct wf_devd_alg *alg, struct wf_devd_work *work,
		     struct wf_accel_done *done)
{
	const struct wf_accel_job *job = work->job;
	size_t in = (size_t)job->dict_len + job->src_len;
	int status;

	if (!wf_devd_scratch_grow(&scratch->in, &scratch->in_size, in + 1) ||
	    !wf_devd_scratch_grow(&scratch->out, &scratch->out_size,
				  (size_t)job->dst_len + 1))
		return ENOMEM;
	status = fetch(chan, scratch->in, job->dict, job->dict_len);
	if (!status)
		status = fetch(chan, scratch->in + job->dict_len, job->src,
			       job->src_len);
	if (status)
		return status;
	count_copied(done, in);
	work->dict = scratch->in;
	work->dict_len = job->dict_len;
	work->in = scratch->in + job->dict_len;
	work->in_len = job->src_len;
	work->out = scratch->out;
	work->out_len = job->dst_len;
	status = alg->run(work);
	if (status)
		return status;
	count_copied(done, work->produced);
	return deliver(chan, scratch->out, job->dst, work->produced);
}

static int run_sva(struct wf_devd_chan *chan, struct wf_devd_scratch *scratch,
		   const struct wf_devd_alg *alg, struct wf_devd_work *work,
		   struct wf_accel_done *done)
{
	const struct span span = reserved_of(chan);
	const struct wf_accel_job *job = work->job;

	/* Reserved memory is mapped here. Where only a part of a job is in it,
	 * the rest decides. */
	if (span.size && reach(&span, job->src, job->src_len) &&
	    reach(&span, job->dst, job->dst_len) &&
	    reach(&span, job->dict, job->dict_len))
		return run_mapped(&span, alg, work);
	if (!is_here(chan))
		return ESRCH;
	if (alg->flags & WF_DEVD_ALG_PIECES)
		return run_pieces(chan, scratch, alg, work, done);
	return run_whole(chan, scratch, alg, work, done);
}

/* -- the descriptor -------------------------------------------------------- */

static int check(const struct wf_devd_chan *chan,
		 const struct wf_accel_job *job, const struct wf_devd_alg **alg)
{
	if (job->flags & ~WF_ACCEL_JOB_STAGED || job->spare || job->spare2)
		return EINVAL;
	if (job->flags && !chan->stage_size)
		return EINVAL;
	if (job->alg >= WF_ACCEL_ALGS || !(chan->algs >> job->alg & 1))
		return EOPNOTSUPP;
	*alg = wf_devd_alg_get(job->alg);
	if (!*alg)
		return EOPNOTSUPP;
	if (job->src_len > WF_ACCEL_LEN_MAX ||
	    job->dst_len > WF_ACCEL_LEN_MAX || job->dict_len > WF_ACCEL_LEN_MAX)
		return EMSGSIZE;
	if (!((*alg)->flags & WF_DEVD_ALG_IN) && (job->src || job->src_len))
		return EINVAL;
	if (!((*alg)->flags & WF_DEVD_ALG_OUT) && (job->dst || job->dst_len))
		return EINVAL;
	if (!((*alg)->flags & WF_DEVD_ALG_STREAM) &&
	    (job->format || job->level || job->dict || job->dict_len ||
	     job->window_log2 || job->flush || job->stream))
		return EINVAL;
	return 0;
}

uint64_t wf_devd_job_run(struct wf_devd_chan *chan,
			 struct wf_devd_scratch *scratch,
			 const struct wf_accel_job *job,
			 struct wf_accel_done *done)
{
	struct wf_devd_work work = {
		.job = job,
		.checksum = job->seed,
		.scratch = scratch,
	};
	const struct wf_devd_alg *alg = NULL;
	int status;

	*done = (struct wf_accel_done){ .word = job->id & ~WF_ACCEL_PHASE };
	status = check(chan, job, &alg);
	if (!status) {
		if (!(alg->flags & (WF_DEVD_ALG_IN | WF_DEVD_ALG_OUT)))
			status = alg->run(&work);
		else if (job->flags & WF_ACCEL_JOB_STAGED)
			status = run_staged(chan, alg, &work);
		else if (chan->sva)
			status = run_sva(chan, scratch, alg, &work, done);
		else
			status = run_reserved(chan, alg, &work);
	}
	count_copied(done, work.copied);
	done->status = (uint16_t)status;
	if (!status || (status == ENOSPC && alg->flags & WF_DEVD_ALG_STREAM)) {
		done->consumed = (uint32_t)work.consumed;
		done->produced = (uint32_t)work.produced;
		done->checksum = work.checksum;
		done->flags = work.flags;
	}
	return (uint64_t)job->src_len + done->produced;
}
