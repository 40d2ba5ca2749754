/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings that a program uses by itself (libfabric's data path direct): it writes
 * descriptors and doorbells, reads completions, and calls nothing. A thread of
 * ours takes the place of the hardware: it reads the doorbells and makes the NIC
 * work for as long as there are such rings. It does all of that under the lock,
 * so that a thread that removes a ring knows that nobody reads it. If another
 * thread waits for the lock, it gives up the lock and sleeps until that thread has
 * had it, because a mutex is not fair. A doorbell in memory cannot wake a thread:
 * while nothing happens, the thread looks less and less often.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rest.h"
#include "efa/efa.h"
#include "os/thread.h"

/* Rounds without work before the processor is given up, before each round sleeps
 * (some milliseconds), and before it sleeps for longer (a tenth of a second). */
#define IDLE_ROUNDS 256u
#define SLEEPY_ROUNDS 1024u
#define ASLEEP_ROUNDS (SLEEPY_ROUNDS + 2048u)
#define NAP_NS (50 * WF_NS_PER_US)
#define LONG_NAP_NS (4 * WF_NS_PER_MS)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t dropped = PTHREAD_COND_INITIALIZER;
static struct wf_list qps = { &qps, &qps };
static struct wf_list cqs = { &cqs, &cqs };
static _Atomic int waiting; /* for the lock, other than the thread */
static bool running;
static bool stopped;
static uint64_t deaths; /* of peers, that were seen */

static void take(void)
{
	waiting++;
	pthread_mutex_lock(&lock);
	waiting--;
}

static void drop(void)
{
	pthread_cond_signal(&dropped);
	pthread_mutex_unlock(&lock);
}

/* Like polls of libibverbs that find the end of a peer (cq.c): the next request
 * to it tries again. */
static void renew(struct wf_nic *nic)
{
	uint64_t now = wf_nic_counter(&wf_nic_counters(nic)->peer_deaths);

	if (wf_likely(now == deaths))
		return;
	deaths = now;
	wf_efa_ah_renew_all();
}

/* One look at everything. Returns whether there was something to do. */
static bool look_locked(void)
{
	struct wf_list *pos, *tmp;
	struct wf_nic *nic = NULL;
	bool did = false;

	wf_list_for_each (pos, tmp, &qps) {
		struct wf_efa_qp *qp =
			wf_container_of(pos, struct wf_efa_qp, watched);

		nic = qp->nic;
		did |= wf_nic_qp_watch(qp->ring);
	}
	wf_list_for_each (pos, tmp, &cqs) {
		struct wf_efa_cq *cq =
			wf_container_of(pos, struct wf_efa_cq, watched);

		wf_nic_cq_watch(cq->ring);
	}
	if (!nic)
		return did;
	did |= wf_nic_progress(nic) > 0;
	renew(nic);
	return did;
}

static void slow_down(uint32_t idle, struct wf_rest *rest)
{
	if (idle > ASLEEP_ROUNDS)
		wf_os_sleep(LONG_NAP_NS);
	else if (idle > SLEEPY_ROUNDS)
		wf_os_sleep(NAP_NS);
	else if (idle > IDLE_ROUNDS)
		wf_base_rest(rest);
}

static void *watch(void *arg)
{
	struct wf_rest rest = { .naps = 0 };
	uint32_t idle = 0;

	(void)arg;
	for (;;) {
		bool did;

		pthread_mutex_lock(&lock);
		/* A thread that is counted here has yet to take the lock, and
		 * signals when it drops it. Wait for one only: others may
		 * come all the time. */
		if (waiting)
			pthread_cond_wait(&dropped, &lock);
		if (stopped || wf_base_list_empty(&qps)) {
			running = false;
			pthread_mutex_unlock(&lock);
			return NULL;
		}
		did = look_locked();
		pthread_mutex_unlock(&lock);
		if (did && idle > IDLE_ROUNDS)
			wf_base_rest_begin(&rest);
		idle = did ? 0 : idle + (idle <= ASLEEP_ROUNDS);
		slow_down(idle, &rest);
	}
}

static int start_locked(void)
{
	struct wf_os_thread thread;
	int ret;

	if (running)
		return 0;
	ret = wf_os_thread_start(&thread, watch, NULL);
	if (ret) {
		wf_warn("efa: no thread to watch rings: %s", strerror(-ret));
		return -ret;
	}
	wf_os_thread_detach(thread);
	running = true;
	return 0;
}

static void fill(struct wf_efadv_wq_attr *attr, uint32_t inlen,
		 const struct wf_nic_ring *ring)
{
	const struct wf_efadv_wq_attr all = {
		.buffer = ring->at,
		.entry_size = ring->stride,
		.num_entries = ring->entries,
		.doorbell = (uint32_t *)ring->doorbell,
		.max_batch = ring->max_batch,
	};

	memset(attr, 0, inlen);
	memcpy(attr, &all, inlen < sizeof(all) ? inlen : sizeof(all));
}

int efadv_query_qp_wqs(struct ibv_qp *base, struct wf_efadv_wq_attr *sq_attr,
		       struct wf_efadv_wq_attr *rq_attr, uint32_t inlen)
{
	struct wf_efa_qp *qp = wf_efa_qp_of(base);
	struct wf_nic_ring sq, rq;
	int ret = 0;

	if (inlen < offsetof(struct wf_efadv_wq_attr, caps) ||
	    !wf_efa_device_has(qp->nic))
		return EINVAL;
	/* Received data has no header, and failures are reported. */
	if (qp->ud)
		return EOPNOTSUPP;
	wf_nic_qp_export(qp->ring, &sq, &rq);
	take();
	if (!qp->watched.next) {
		wf_base_list_add_tail(&qps, &qp->watched);
		ret = start_locked();
		if (ret) {
			wf_base_list_del(&qp->watched);
			qp->watched.next = NULL;
		}
	}
	drop();
	if (ret)
		return ret;
	fill(sq_attr, inlen, &sq);
	fill(rq_attr, inlen, &rq);
	return 0;
}

int efadv_query_cq(struct ibv_cq *base, struct wf_efadv_cq_attr *attr,
		   uint32_t inlen)
{
	struct wf_efa_cq *cq = wf_efa_cq_of(base);
	struct wf_efadv_cq_attr all = { .comp_mask = 0 };
	struct wf_nic_ring ring;

	if (inlen < offsetof(struct wf_efadv_cq_attr, doorbell) ||
	    !wf_efa_device_has(cq->nic))
		return EINVAL;
	wf_nic_cq_export(cq->ring, &ring);
	take();
	if (!cq->watched.next)
		wf_base_list_add_tail(&cqs, &cq->watched);
	drop();
	all.buffer = ring.at;
	all.entry_size = ring.stride;
	all.num_entries = ring.entries;
	all.doorbell = (uint32_t *)ring.doorbell;
	memset(attr, 0, inlen);
	memcpy(attr, &all, inlen < sizeof(all) ? inlen : sizeof(all));
	return 0;
}

static void forget(struct wf_list *watched)
{
	take();
	if (watched->next)
		wf_base_list_del(watched);
	watched->next = NULL;
	drop();
}

void wf_efa_ring_forget_qp(struct wf_efa_qp *qp)
{
	forget(&qp->watched);
}

void wf_efa_ring_forget_cq(struct wf_efa_cq *cq)
{
	forget(&cq->watched);
}

void wf_efa_ring_stop(void)
{
	take();
	stopped = true;
	drop();
}

void wf_efa_ring_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&dropped, NULL);
	wf_base_list_init(&qps);
	wf_base_list_init(&cqs);
	waiting = 0;
	running = false;
	deaths = 0;
}
