/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault injection at the socket: the dice, and a heap of packets that are late.
 */
#include "nic/udp/fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "os/socket.h"

#define MILLION 1000000u
#define LATE_MOST 65536u /* more than a router would hold: lost */
#define REORDER_NS WF_NS_PER_MS

static uint64_t draw(struct wf_udp_fault *fault)
{
	uint64_t z = fault->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static bool happens(struct wf_udp_fault *fault, uint32_t rate)
{
	return rate && draw(fault) % MILLION < rate;
}

struct wf_udp_fault *wf_udp_fault_create(const struct wf_nic_fault *rates,
					 int fd,
					 struct wf_nic_counters *counters)
{
	struct wf_udp_fault *fault = calloc(1, sizeof(*fault));

	if (!fault)
		return NULL;
	fault->rates = *rates;
	fault->random = rates->seed;
	fault->fd = fd;
	fault->counters = counters;
	return fault;
}

void wf_udp_fault_destroy(struct wf_udp_fault *fault)
{
	if (!fault)
		return;
	for (size_t i = 0; i < fault->count; i++)
		free(fault->heap[i]);
	free(fault->heap);
	free(fault);
}

static bool sooner(const struct wf_udp_late *a, const struct wf_udp_late *b)
{
	return a->at < b->at || (a->at == b->at && a->number < b->number);
}

static int push(struct wf_udp_fault *fault, struct wf_udp_late *late)
{
	size_t at = fault->count;

	if (at == LATE_MOST)
		return -ENOSPC;
	if (at == fault->room) {
		size_t room = at ? at * 2 : 64;
		struct wf_udp_late **heap = realloc(
			fault->heap, room * sizeof(struct wf_udp_late *));

		if (!heap)
			return -ENOMEM;
		fault->heap = heap;
		fault->room = room;
	}
	fault->count++;
	for (; at && sooner(late, fault->heap[(at - 1) / 2]); at = (at - 1) / 2)
		fault->heap[at] = fault->heap[(at - 1) / 2];
	fault->heap[at] = late;
	return 0;
}

static struct wf_udp_late *pop(struct wf_udp_fault *fault)
{
	struct wf_udp_late *first = fault->heap[0];
	struct wf_udp_late *last = fault->heap[--fault->count];
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= fault->count)
			break;
		if (child + 1 < fault->count &&
		    sooner(fault->heap[child + 1], fault->heap[child]))
			child++;
		if (!sooner(fault->heap[child], last))
			break;
		fault->heap[at] = fault->heap[child];
		at = child;
	}
	if (fault->count)
		fault->heap[at] = last;
	return first;
}

/* Like a path whose MTU is smaller than that of its ends, and that reports
 * nothing. */
static bool fits(const struct wf_udp_fault *fault, const struct wf_addr *to,
		 const struct iovec *iov, int count)
{
	size_t len = to->sa.sa_family == AF_INET ? 28 : 48;

	for (int i = 0; i < count; i++)
		len += iov[i].iov_len;
	return !fault->rates.mtu || len <= fault->rates.mtu;
}

static void keep(struct wf_udp_fault *fault, const struct wf_addr *to,
		 const struct msghdr *control, const struct iovec *iov,
		 int count, uint64_t at)
{
	struct wf_udp_late *late;
	size_t len = 0;

	for (int i = 0; i < count; i++)
		len += iov[i].iov_len;
	late = malloc(sizeof(*late) + len);
	if (!late)
		return; /* lost */
	late->at = at;
	late->number = fault->number++;
	late->to = *to;
	late->control_len = control ? control->msg_controllen : 0;
	if (late->control_len > sizeof(late->control))
		late->control_len = 0;
	if (late->control_len)
		memcpy(late->control, control->msg_control, late->control_len);
	late->len = 0;
	for (int i = 0; i < count; i++) {
		memcpy(late->bytes + late->len, iov[i].iov_base,
		       iov[i].iov_len);
		late->len += iov[i].iov_len;
	}
	if (len && happens(fault, fault->rates.corrupt)) {
		late->bytes[draw(fault) % len] ^=
			(uint8_t)(1u << draw(fault) % 8);
		wf_nic_count(&fault->counters->fault_corrupted, 1);
	}
	if (push(fault, late))
		free(late);
}

void wf_udp_fault_send(struct wf_udp_fault *fault, const struct wf_addr *to,
		       const struct msghdr *control, const struct iovec *iov,
		       int count, uint64_t now)
{
	const struct wf_nic_fault *rates = &fault->rates;
	uint64_t at = now + rates->delay_us * WF_NS_PER_US;
	int copies = 1;

	if (happens(fault, rates->loss) || !fits(fault, to, iov, count)) {
		wf_nic_count(&fault->counters->fault_lost, 1);
		return;
	}
	if (happens(fault, rates->duplicate)) {
		wf_nic_count(&fault->counters->fault_duplicated, 1);
		copies = 2;
	}
	while (copies--) {
		uint64_t when = at;

		if (rates->jitter_us)
			when += draw(fault) % (rates->jitter_us * WF_NS_PER_US);
		if (happens(fault, rates->reorder))
			when += draw(fault) % REORDER_NS;
		if (when > now)
			wf_nic_count(&fault->counters->fault_delayed, 1);
		keep(fault, to, control, iov, count, when);
	}
}

static void send_late(int fd, struct wf_udp_late *late)
{
	struct iovec iov = { late->bytes, late->len };
	const struct msghdr head = {
		.msg_name = &late->to,
		.msg_namelen = wf_base_addr_len(&late->to),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = late->control_len ? late->control : NULL,
		.msg_controllen = late->control_len,
	};

	wf_os_sendmsg(fd, &head, MSG_DONTWAIT);
}

uint64_t wf_udp_fault_run(struct wf_udp_fault *fault, uint64_t now)
{
	while (fault->count && fault->heap[0]->at <= now) {
		struct wf_udp_late *late = pop(fault);

		/* A full socket loses it: that may happen to packets. */
		send_late(fault->fd, late);
		free(late);
	}
	return fault->count ? fault->heap[0]->at : UINT64_MAX;
}

/* -- as text ---------------------------------------------------------------- */

static int parse_rate(const char *text, uint32_t *rate)
{
	char *end;
	double value = strtod(text, &end);

	if (!strcmp(end, "%"))
		value *= 10000;
	else if (strcmp(end, "ppm"))
		return -EINVAL;
	if (end == text || value < 0 || value > MILLION)
		return -EINVAL;
	*rate = (uint32_t)value;
	return 0;
}

static int parse_time(const char *text, uint32_t *us)
{
	char *end;
	double value = strtod(text, &end);

	if (!strcmp(end, "ms"))
		value *= 1000;
	else if (strcmp(end, "us"))
		return -EINVAL;
	if (end == text || value < 0 || value > 10e6)
		return -EINVAL;
	*us = (uint32_t)value;
	return 0;
}

static int parse_number(const char *text, uint64_t *number)
{
	char *end;

	*number = strtoull(text, &end, 0);
	return *end || end == text ? -EINVAL : 0;
}

static int parse_one(const char *name, const char *value,
		     struct wf_nic_fault *fault)
{
	if (!strcmp(name, "loss"))
		return parse_rate(value, &fault->loss);
	if (!strcmp(name, "dup"))
		return parse_rate(value, &fault->duplicate);
	if (!strcmp(name, "reorder"))
		return parse_rate(value, &fault->reorder);
	if (!strcmp(name, "corrupt"))
		return parse_rate(value, &fault->corrupt);
	if (!strcmp(name, "delay"))
		return parse_time(value, &fault->delay_us);
	if (!strcmp(name, "jitter"))
		return parse_time(value, &fault->jitter_us);
	if (!strcmp(name, "seed"))
		return parse_number(value, &fault->seed);
	if (!strcmp(name, "mtu")) {
		uint64_t mtu;
		int ret = parse_number(value, &mtu);

		fault->mtu = (uint32_t)mtu;
		return ret || mtu < 576 || mtu > 65535 ? -EINVAL : 0;
	}
	return -EINVAL;
}

int wf_nic_fault_parse(const char *text, struct wf_nic_fault *fault)
{
	char *copy = strdup(text), *rest = copy, *item;
	int ret = 0;

	*fault = (struct wf_nic_fault){ .seed = 1 };
	if (!copy)
		return -ENOMEM;
	while (!ret && (item = strsep(&rest, ","))) {
		char *value = strchr(item, '=');

		if (value)
			*value++ = 0;
		ret = value ? parse_one(item, value, fault) : -EINVAL;
		if (ret)
			wf_warn("fault \"%s\": write loss=1%%, dup=, reorder=, "
				"corrupt=, delay=5ms, jitter=100us, mtu=1280 or seed=7",
				item);
	}
	free(copy);
	return ret;
}
