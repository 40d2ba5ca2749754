/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A responder that sleeps until a message arrives, in fi_cq_sread or in epoll
 * on the queue's descriptor, and the time until it notices: the initiator sends
 * the time of the clock that both processes share. It must not poll where it
 * claims to sleep.
 */
#include "tools/bench/engine.h"

#include "base/clock.h"
#include "tools/bench/message.h"
#include "tools/bench/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Long enough that a receiver that spins first has gone to sleep. */
#define PAUSE_NS (400 * WF_NS_PER_US)

enum {
	PATIENCE_MS = 1000, /* after that the call is made again */
	WAIT_MS = 200,	    /* of the test of CPU time */
};

struct wake {
	struct wf_tools_fabric *f;
	int epoll_fd; /* -1: fi_cq_sread */
};

static int open_epoll(struct wake *k, char *error, size_t error_len)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd, ret;

	ret = fi_control(&k->f->cq->fid, FI_GETWAIT, &fd);
	if (ret) {
		wf_tools_fabric_fail(k->f, "fi_control(FI_GETWAIT)", ret);
		snprintf(error, error_len, "%s", k->f->error);
		return ret;
	}
	k->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (k->epoll_fd < 0 ||
	    epoll_ctl(k->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
		snprintf(error, error_len, "epoll: %s", strerror(errno));
		return -errno;
	}
	return 0;
}

static void wake_close(void *engine)
{
	struct wake *k = engine;

	if (k->epoll_fd >= 0)
		close(k->epoll_fd);
	wf_tools_fabric_close(k->f);
	free(k);
}

static int wake_open(const struct wf_tools_engine_config *config, void **engine,
		     char *error, size_t error_len)
{
	struct wf_tools_engine_config own = *config;
	struct wake *k = calloc(1, sizeof(*k));
	int ret;

	if (!k)
		return -ENOMEM;
	k->epoll_fd = -1;
	if (config->initiator)
		own.wait_obj = FI_WAIT_NONE;
	ret = wf_tools_fabric_open(&own, &k->f, error, error_len);
	if (ret) {
		free(k);
		return ret;
	}
	if (own.wait_obj == FI_WAIT_FD)
		ret = open_epoll(k, error, error_len);
	if (ret)
		wake_close(k);
	else
		*engine = k;
	return ret;
}

/* One completion, by fi_cq_sread; -FI_EAGAIN when none came in time. */
static ssize_t sleep_sread(struct wake *k, struct fi_cq_tagged_entry *entry,
			   int ms)
{
	return fi_cq_sread(k->f->cq, entry, 1, NULL, ms);
}

static ssize_t sleep_epoll(struct wake *k, struct fi_cq_tagged_entry *entry,
			   int ms)
{
	struct fid *fids[] = { &k->f->cq->fid };
	struct epoll_event event;
	ssize_t ret;

	ret = fi_cq_read(k->f->cq, entry, 1);
	if (ret != -FI_EAGAIN)
		return ret;
	ret = fi_trywait(k->f->fabric, fids, 1);
	if (ret)
		return ret;
	epoll_wait(k->epoll_fd, &event, 1, ms);
	return fi_cq_read(k->f->cq, entry, 1);
}

static int await(struct wake *k)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	do {
		ret = k->epoll_fd >= 0 ? sleep_epoll(k, &entry, PATIENCE_MS) :
					 sleep_sread(k, &entry, PATIENCE_MS);
	} while (ret == -FI_EAGAIN || ret == 0);
	if (ret == -FI_EAVAIL)
		return wf_tools_fabric_cq_error(k->f);
	return ret < 0 ? wf_tools_fabric_fail(k->f, "waiting", ret) : 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The median: a run on a busy CPU says nothing about the others. */
static int follow(struct wake *k, const struct wf_tools_phase *phase,
		  struct wf_tools_timing *timing)
{
	uint64_t total = phase->warm + phase->count, i, sent, now;
	struct wf_tools_fabric *f = k->f;
	uint64_t *took;
	int ret = 0;

	took = calloc(phase->count, sizeof(*took));
	if (!took)
		return wf_tools_fabric_fail(f, "samples", -FI_ENOMEM);
	for (i = 0; i < total && !ret; i++) {
		ret = await(k);
		now = wf_base_clock_ns();
		memcpy(&sent, f->receives[0].buf, sizeof(sent));
		if (i >= phase->warm)
			took[i - phase->warm] = now - sent;
		if (!ret && i + 1 < total)
			ret = wf_tools_message_post(f, &f->receives[0],
						    WF_TOOLS_MESSAGE_ACK, i);
		if (!ret)
			ret = wf_tools_message_send(f, &f->sends[0],
						    WF_TOOLS_MESSAGE_ACK);
	}
	qsort(took, phase->count, sizeof(*took), by_value);
	timing->value = (double)took[phase->count / 2];
	free(took);
	return ret;
}

static int lead(struct wake *k, const struct wf_tools_phase *phase)
{
	uint64_t total = phase->warm + phase->count, i, now;
	struct wf_tools_fabric *f = k->f;
	int ret = 0;

	for (i = 0; i < total && !ret; i++) {
		uint64_t until = wf_base_clock_ns() + PAUSE_NS;

		while ((now = wf_base_clock_ns()) < until)
			;
		memcpy(f->sends[0].buf, &now, sizeof(now));
		ret = wf_tools_message_send(f, &f->sends[0],
					    WF_TOOLS_MESSAGE_ACK);
		if (!ret)
			ret = wf_tools_message_wait(f, i + 1);
		if (!ret && i + 1 < total)
			ret = wf_tools_message_post(f, &f->receives[0],
						    WF_TOOLS_MESSAGE_ACK, i);
	}
	return ret;
}

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * WF_NS_PER_S + (double)ts.tv_nsec;
}

/* No message comes. Once before, because the first sleep has additional
 * costs. */
static int wait_long(struct wake *k, struct wf_tools_timing *timing)
{
	struct fi_cq_tagged_entry entry;
	uint64_t start;
	double used;
	ssize_t ret;

	sleep_sread(k, &entry, 1);
	start = wf_base_clock_ns();
	used = cpu_ns();
	ret = sleep_sread(k, &entry, WAIT_MS);
	used = cpu_ns() - used;
	timing->value = 100 * used / (double)(wf_base_clock_ns() - start);
	if (ret == -FI_EAGAIN || ret == 0 || ret == -FI_ETIMEDOUT)
		return 0;
	return wf_tools_fabric_fail(k->f, "fi_cq_sread",
				    ret < 0 ? ret : -FI_EOTHER);
}

static int wake_prepare(void *engine, const struct wf_tools_phase *phase)
{
	struct wf_tools_fabric *f = ((struct wake *)engine)->f;

	f->sent = 0;
	f->sent_done = 0;
	f->received = 0;
	wf_tools_fabric_carve(f, WF_TOOLS_MESSAGE_ACK);
	if (phase->test == WF_TOOLS_WAIT_CPU)
		return 0;
	return wf_tools_message_post(f, &f->receives[0], WF_TOOLS_MESSAGE_ACK,
				     0);
}

static int wake_play(void *engine, const struct wf_tools_phase *phase,
		     struct wf_tools_timing *timing)
{
	struct wake *k = engine;

	if (phase->test == WF_TOOLS_WAIT_CPU)
		return k->f->config.initiator ? 0 : wait_long(k, timing);
	return k->f->config.initiator ? lead(k, phase) :
					follow(k, phase, timing);
}

static int wake_progress(void *engine)
{
	return wf_tools_message_read(((struct wake *)engine)->f);
}

static const char *wake_error(void *engine)
{
	return ((struct wake *)engine)->f->error;
}

static const char *wake_describe(void *engine)
{
	return ((struct wake *)engine)->f->about;
}

const struct wf_tools_engine_ops wf_tools_engine_wake = {
	.open = wake_open,
	.prepare = wake_prepare,
	.play = wake_play,
	.progress = wake_progress,
	.error = wake_error,
	.describe = wake_describe,
	.close = wake_close,
};
