/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker threads.
 */
#include "devd/worker.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "queue/wake.h"

/* A channel's turn: so many jobs, or so many bytes, whichever is first. */
#define TURN_JOBS 32
#define TURN_BYTES (512u << 10)
/* Jobs from this size on wake their waiter at once, smaller ones with the
 * others of their turn. */
#define BIG_JOB (16u << 10)
/* Empty rounds between two looks at the clock. */
#define ROUNDS_PER_LOOK 256
/* An interrupt that takes longer is held up on purpose. */
#define SIGNAL_MAX (100 * WF_NS_PER_MS)
#define EVENTS 16

static void count(_Atomic uint64_t *counter, uint64_t more)
{
	/* One writer: no locked instruction. */
	atomic_store_explicit(
		counter,
		atomic_load_explicit(counter, memory_order_relaxed) + more,
		memory_order_relaxed);
}

/* -- channels come and go -------------------------------------------------- */

static void nudge(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return; /* it is full of nudges already */
}

void wf_devd_worker_give(struct wf_devd_worker *worker,
			 struct wf_devd_chan *chan)
{
	chan->worker = worker;
	worker->load++;
	pthread_mutex_lock(&worker->lock);
	wf_base_list_add_tail(&worker->incoming, &chan->in_worker);
	pthread_mutex_unlock(&worker->lock);
	atomic_store(&worker->changed, true);
	nudge(worker->wake_fd);
}

void wf_devd_worker_recall(struct wf_devd_chan *chan)
{
	struct wf_devd_worker *worker = chan->worker;

	worker->load--;
	atomic_store(&chan->leave, true);
	atomic_store(&worker->changed, true);
	nudge(worker->wake_fd);
}

void wf_devd_worker_wake(struct wf_devd_worker *worker)
{
	atomic_store(&worker->changed, true);
	nudge(worker->wake_fd);
}

static void take_in(struct wf_devd_worker *worker)
{
	struct wf_list *pos, *tmp;

	pthread_mutex_lock(&worker->lock);
	wf_list_for_each (pos, tmp, &worker->incoming) {
		struct wf_devd_chan *chan =
			wf_container_of(pos, struct wf_devd_chan, in_worker);
		/* Edge-triggered: each kick is an event, and nobody has to read
		 * the counter, which the client could manipulate. */
		struct epoll_event event = { .events = EPOLLIN | EPOLLET };

		wf_base_list_unlink(pos);
		wf_base_list_add_tail(&worker->chans, pos);
		event.data.ptr = chan;
		if (epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, chan->kick_fd,
			      &event))
			wf_warn("channel %u cannot be watched: %s", chan->id,
				strerror(errno));
		atomic_store_explicit(&chan->mmio->state, WF_ACCEL_RUNNING,
				      memory_order_release);
	}
	pthread_mutex_unlock(&worker->lock);
}

static void release_leaving(struct wf_devd_worker *worker)
{
	struct wf_devd *devd = worker->devd;
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &worker->chans) {
		struct wf_devd_chan *chan =
			wf_container_of(pos, struct wf_devd_chan, in_worker);

		if (!atomic_load(&chan->leave))
			continue;
		wf_base_list_del(pos);
		epoll_ctl(worker->epoll_fd, EPOLL_CTL_DEL, chan->kick_fd, NULL);
		pthread_mutex_lock(&devd->inbox_lock);
		wf_base_list_add_tail(&devd->inbox, &chan->in_inbox);
		pthread_mutex_unlock(&devd->inbox_lock);
		nudge(devd->inbox_fd);
	}
}

/* -- serving --------------------------------------------------------------- */

static void fault(struct wf_devd_worker *worker, struct wf_devd_chan *chan,
		  const char *what)
{
	chan->faulted = true;
	count(&worker->faults, 1);
	wf_devd_stats_add(&chan->counts, WF_DEVD_STAT_faults, 1);
	wf_info("channel %u of process %d: %s; it is no longer served",
		chan->id, (int)chan->client->pid, what);
	atomic_store_explicit(&chan->mmio->state, WF_ACCEL_FAULT,
			      memory_order_release);
}

static void interrupt(struct wf_devd_worker *worker, struct wf_devd_chan *chan)
{
	const uint64_t one = 1;

	if (!wf_queue_wake_needed(&chan->mmio->user_sleeps))
		return;
	/* The client shares the open file and can clear the flag that prevents
	 * this from blocking: wf_devd_worker_watch(). */
	atomic_store_explicit(&worker->signalling, wf_base_clock_ns(),
			      memory_order_relaxed);
	if (write(chan->event_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
		fault(worker, chan, "its interrupt blocks");
		/* The client has filled the counter on purpose: interrupts fill it
		 * after 2^64 of them. */
		atomic_store(&chan->client->spoiler, true);
	}
	atomic_store_explicit(&worker->signalling, 0, memory_order_relaxed);
	wf_devd_stats_add(&chan->counts, WF_DEVD_STAT_interrupts, 1);
}

/* A tally counts the work of a worker in one turn on a channel. */
struct tally {
	uint64_t failed, in, out, copied;
};

static void tally_job(struct tally *tally, const struct wf_accel_done *done)
{
	tally->failed += done->status != 0;
	tally->in += done->consumed;
	tally->out += done->produced;
	tally->copied += done->copied;
}

/* After the client was notified: it does not wait for our bookkeeping. */
static void tally_up(struct wf_devd_worker *worker, struct wf_devd_chan *chan,
		     const struct tally *tally, unsigned int jobs)
{
	struct wf_devd_counts *counts = &chan->counts;

	count(&worker->jobs, jobs);
	count(&worker->refused, tally->failed);
	wf_devd_stats_add(counts, WF_DEVD_STAT_jobs, jobs);
	wf_devd_stats_add(counts, WF_DEVD_STAT_failed, tally->failed);
	wf_devd_stats_add(counts, WF_DEVD_STAT_bytes_in, tally->in);
	wf_devd_stats_add(counts, WF_DEVD_STAT_bytes_out, tally->out);
	wf_devd_stats_add(counts, WF_DEVD_STAT_copied_bytes, tally->copied);
}

/* The quota of the channel's user is used up: the channel waits. */
static bool is_held_back(struct wf_devd_chan *chan)
{
	struct wf_devd *devd = chan->client->devd;
	bool first;

	if (wf_likely(wf_devd_quota_allows(&chan->client->user->quota, &first)))
		return false;
	if (first) {
		wf_devd_stats_add(&chan->counts, WF_DEVD_STAT_held_back, 1);
		nudge(devd->inbox_fd);
	}
	return true;
}

unsigned int wf_devd_worker_turn(struct wf_devd_worker *worker,
				 struct wf_devd_chan *chan)
{
	struct wf_accel_done done;
	struct wf_accel_job job;
	uint64_t bytes, turn = 0;
	struct tally tally = { 0 };
	unsigned int n;
	int ready, room;

	if (chan->faulted)
		return 0;
	ready = wf_queue_work_poll(&chan->work);
	if (wf_likely(!ready))
		return 0;
	if (ready > 0 && is_held_back(chan))
		return 0;
	room = ready < 0 ? ready : wf_queue_cqw_room(&chan->cqw);
	if (wf_unlikely(room < 0)) {
		fault(worker, chan, "its doorbell or credit cannot be");
		interrupt(worker, chan);
		return 0;
	}
	/* A client that does not read its completions waits for itself. */
	ready = ready < room ? ready : room;
	for (n = 0; n < (unsigned int)ready && n < TURN_JOBS; n++) {
		wf_queue_work_take(&chan->work, &job);
		bytes = wf_devd_job_run(chan, &worker->scratch, &job, &done);
		wf_queue_cqw_push(&chan->cqw, &done);
		tally_job(&tally, &done);
		if (bytes >= BIG_JOB)
			interrupt(worker, chan);
		turn += bytes;
		if (turn >= TURN_BYTES ||
		    atomic_load_explicit(&chan->leave, memory_order_relaxed)) {
			n++;
			break;
		}
	}
	if (n) {
		interrupt(worker, chan);
		tally_up(worker, chan, &tally, n);
		wf_devd_quota_take(&chan->client->user->quota, n,
				   tally.in + tally.out);
	}
	return n;
}

static unsigned int serve_all(struct wf_devd_worker *worker)
{
	struct wf_list *pos, *tmp;
	unsigned int n = 0;

	wf_list_for_each (pos, tmp, &worker->chans)
		n += wf_devd_worker_turn(
			worker,
			wf_container_of(pos, struct wf_devd_chan, in_worker));
	return n;
}

/* -- sleeping -------------------------------------------------------------- */

static void tell_all(struct wf_devd_worker *worker, bool asleep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &worker->chans) {
		struct wf_devd_chan *chan =
			wf_container_of(pos, struct wf_devd_chan, in_worker);

		if (asleep)
			wf_queue_wake_arm(&chan->mmio->device_sleeps);
		else
			wf_queue_wake_disarm(&chan->mmio->device_sleeps);
	}
}

/* A doorbell after tell_all() comes with a kick; one before it is seen by the
 * round that follows it. */
static void sleep_for_work(struct wf_devd_worker *worker)
{
	struct epoll_event events[EVENTS];
	uint64_t value;

	tell_all(worker, true);
	if (!serve_all(worker) && !atomic_load(&worker->changed)) {
		wf_devd_scratch_trim(&worker->scratch);
		epoll_wait(worker->epoll_fd, events, EVENTS, -1);
	}
	tell_all(worker, false);
	if (read(worker->wake_fd, &value, sizeof(value)) < 0)
		return; /* it was a channel that woke us */
}

static void bind_to(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
		wf_warn("cannot bind a worker to CPU %d", cpu);
}

static void *worker_main(void *arg)
{
	struct wf_devd_worker *worker = arg;
	uint64_t spin = worker->devd->config.spin_us * WF_NS_PER_US;
	uint64_t idle_since = 0, now;
	unsigned int rounds = 0;

	bind_to(worker->cpu);
	while (!atomic_load_explicit(&worker->stop, memory_order_relaxed)) {
		if (wf_unlikely(atomic_load_explicit(&worker->changed,
						     memory_order_relaxed))) {
			atomic_store(&worker->changed, false);
			take_in(worker);
			release_leaving(worker);
		}
		if (serve_all(worker)) {
			rounds = 0;
			idle_since = 0;
			continue;
		}
		wf_base_cpu_relax();
		if (++rounds % ROUNDS_PER_LOOK && spin)
			continue;
		now = wf_base_clock_ns();
		if (!idle_since)
			idle_since = now;
		if (now - idle_since >= spin) {
			sleep_for_work(worker);
			idle_since = 0;
		}
	}
	return NULL;
}

/* -- from the manager ------------------------------------------------------ */

static void on_watch_signal(int number)
{
	(void)number; /* ends the system call it meets, no more */
}

void wf_devd_worker_watch(struct wf_devd_worker *worker, uint64_t now)
{
	uint64_t since =
		atomic_load_explicit(&worker->signalling, memory_order_relaxed);

	if (since && now > since && now - since > SIGNAL_MAX)
		pthread_kill(worker->thread, SIGUSR2);
}

int wf_devd_worker_start(struct wf_devd_worker *worker, struct wf_devd *devd,
			 int cpu)
{
	struct sigaction action = { .sa_handler = on_watch_signal };
	struct epoll_event event = { .events = EPOLLIN };
	sigset_t all, mask;
	int err;

	worker->devd = devd;
	worker->cpu = cpu;
	pthread_mutex_init(&worker->lock, NULL);
	wf_base_list_init(&worker->incoming);
	wf_base_list_init(&worker->chans);
	worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (worker->epoll_fd < 0)
		goto err_lock;
	worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (worker->wake_fd < 0)
		goto err_epoll;
	if (epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, worker->wake_fd, &event))
		goto err_wake;
	sigaction(SIGUSR2, &action, NULL);
	/* Signals of the process are for others. */
	sigfillset(&all);
	sigdelset(&all, SIGUSR2);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	err = pthread_create(&worker->thread, NULL, worker_main, worker);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (!err)
		return 0;
	errno = err;
err_wake:
	err = errno;
	close(worker->wake_fd);
	errno = err;
err_epoll:
	err = errno;
	close(worker->epoll_fd);
	errno = err;
err_lock:
	err = errno;
	pthread_mutex_destroy(&worker->lock);
	return -err;
}

void wf_devd_worker_end(struct wf_devd_worker *worker)
{
	atomic_store(&worker->stop, true);
	nudge(worker->wake_fd);
	pthread_join(worker->thread, NULL);
	close(worker->wake_fd);
	close(worker->epoll_fd);
	pthread_mutex_destroy(&worker->lock);
	wf_devd_scratch_fini(&worker->scratch);
}
