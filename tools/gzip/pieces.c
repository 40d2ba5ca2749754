/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pieces are given to the driver in groups, a group by a thread on a channel of
 * its own, so that thousands are under way. If nobody has named the driver, each
 * group goes where it is expected to end soonest, to the device or to a library
 * in this thread. Each piece must end exactly where it is said to, with the
 * length that was said; then the checksums are compared.
 */
#include "tools/gzip/pieces.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weft/wd_comp_drv.h>

#include "alg/choice.h"
#include "alg/defl.h"
#include "alg/gang.h"
#include "alg/piece.h"
#include "alg/queue.h"
#include "alg/wrap.h"
#include "base/clock.h"
#include "deflate/inflate.h"
#include "tools/gzip/index.h"

#define UNDER_WAY (256u << 20) /* bytes of output, all threads together */
#define GROUP_LEAST (4u << 20)
#define GROUP_MOST (64u << 20)
#define PIECE_MOST (64u << 20) /* larger ones are none */
#define GROUP_JOBS 4096u
#define SUBMIT 256u
#define WAIT_MS 100
#define BGZF_HEAD 18

struct piece {
	uint64_t in;
	uint32_t in_len;
	uint32_t out_len;
	bool member; /* it ends, and its checksum follows */
};

struct group {
	size_t first, count; /* pieces */
	size_t len;	     /* of output */
	struct wd_comp_job *jobs;
	uint8_t *out;
};

struct wf_gzip_pieces {
	struct piece *list;
	size_t count, room;
	bool members; /* each is one */
	uint64_t end; /* behind the last one, the trailer of all */
	/* While it runs: */
	struct wf_gzip_io *io;
	int (*put)(void *arg, const uint8_t *data, size_t len);
	void *arg;
	struct wf_alg_slot *driver;
	/* Groups by the device, and by libraries; the last of these. */
	atomic_uint by_device, by_library;
	const char *_Atomic library;
	size_t next, largest, group_len;
	struct group *groups;
	uint32_t check;
};

/* How many of a group are back. */
struct waiting {
	struct wf_alg_owner owner; /* first */
	size_t back;
};

static uint32_t get(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

static bool add(struct wf_gzip_pieces *p, struct piece piece)
{
	if (p->count == p->room) {
		size_t room = p->room ? 2 * p->room : 1024;
		struct piece *list = realloc(p->list, room * sizeof(*list));

		if (!list)
			return false;
		p->list = list;
		p->room = room;
	}
	p->list[p->count++] = piece;
	if (piece.out_len > p->largest)
		p->largest = piece.out_len;
	return true;
}

/* BGZF (the SAM specification, 4.1): each member tells how long it is, in its
 * only field. */
static bool is_bgzf(const uint8_t *m, uint64_t len)
{
	static const uint8_t head[] = { 0x1f, 0x8b, 8, 4 };

	return len >= BGZF_HEAD + WF_GZIP_TRAILER &&
	       !memcmp(m, head, sizeof(head)) && m[10] == 6 && !m[11] &&
	       m[12] == 'B' && m[13] == 'C' && m[14] == 2 && !m[15];
}

static bool find_members(struct wf_gzip_pieces *p, const uint8_t *in,
			 uint64_t len)
{
	uint64_t at = 0;

	p->members = true;
	while (at < len) {
		const uint8_t *m = in + at;
		uint32_t n;

		if (!is_bgzf(m, len - at))
			return false;
		n = (m[16] | (uint32_t)m[17] << 8) + 1;
		if (n < BGZF_HEAD + WF_GZIP_TRAILER || n > len - at ||
		    get(m + n - 4) > 65536 ||
		    !add(p, (struct piece){ .in = at + BGZF_HEAD,
					    .in_len = n - BGZF_HEAD -
						      WF_GZIP_TRAILER,
					    .out_len = get(m + n - 4),
					    .member = true }))
			return false;
		at += n;
	}
	return p->count > 0;
}

/* Restart points, every so many bytes of output. The length of all is at the
 * end, without what is more than 32 bits: the last piece has what is left. */
static bool add_points(struct wf_gzip_pieces *p,
		       const struct wf_gzip_index *index, uint64_t at,
		       const uint8_t *in, uint64_t len)
{
	uint64_t end = len - WF_GZIP_TRAILER;
	uint32_t last = get(in + len - 4) - index->span * index->count;

	for (uint32_t i = 0; i < index->count; i++) {
		if (index->lengths[i] > end - at || index->span > PIECE_MOST ||
		    !add(p, (struct piece){ .in = at,
					    .in_len = index->lengths[i],
					    .out_len = index->span }))
			return false;
		at += index->lengths[i];
	}
	p->end = end;
	return last <= PIECE_MOST && end - at <= UINT32_MAX &&
	       add(p, (struct piece){ .in = at,
				      .in_len = (uint32_t)(end - at),
				      .out_len = last,
				      .member = true });
}

static bool find_points(struct wf_gzip_pieces *p, const uint8_t *in,
			uint64_t len)
{
	struct wf_gzip_index *index;
	struct wf_inflate header;
	size_t extra, used;
	bool found = false;

	if (len < 12 || !(in[3] & 4))
		return false;
	extra = in[10] | (size_t)in[11] << 8;
	wf_deflate_inflate_init(&header, NULL, wf_alg_std_mem,
				wf_alg_wrap_format(WD_COMP_GZIP), 15);
	index = calloc(1, sizeof(*index));
	if (index && len > 12 + extra &&
	    wf_deflate_head_read(&header, in, len, &used) == 1 &&
	    len - used >= WF_GZIP_TRAILER &&
	    wf_tools_gzip_index_read(index, in + 12, extra))
		found = add_points(p, index, used, in, len);
	free(index);
	return found;
}

struct wf_gzip_pieces *wf_tools_gzip_pieces_find(const struct wf_gzip_io *io)
{
	struct wf_gzip_pieces *p = calloc(1, sizeof(*p));

	if (!p || !io->map)
		goto none;
	if (find_members(p, io->map, io->size))
		return p;
	/* An index may be wrong (of the first of two files, one behind the
	 * other), which is found out late. */
	if (!io->options->driver)
		goto none;
	p->count = 0;
	p->members = false;
	if (find_points(p, io->map, io->size))
		return p;
none:
	wf_tools_gzip_pieces_free(p);
	return NULL;
}

void wf_tools_gzip_pieces_free(struct wf_gzip_pieces *p)
{
	if (!p)
		return;
	free(p->list);
	free(p);
}

static struct wf_alg_want want_of(const struct wf_gzip_pieces *p,
				  const char *name)
{
	return (struct wf_alg_want){
		.can = WD_COMP_CAN_INFLATE |
		       (p->members ? 0 : WD_COMP_CAN_INFLATE_PIECE),
		.level = -1,
		.name = name,
	};
}

static struct wf_alg_slot *driver_for(const struct wf_gzip_pieces *p,
				      const char *name)
{
	struct wf_alg_want want = want_of(p, name);
	struct wf_alg_slot *slot = wf_alg_registry_get(&want);

	if (slot && !wf_alg_registry_driver(slot)->submit) {
		wf_alg_registry_put(slot);
		slot = NULL;
	}
	return slot;
}

bool wf_tools_gzip_pieces_are_considered(const struct wf_gzip_io *io)
{
	struct wf_alg_want want = { .can = WD_COMP_CAN_INFLATE, .level = -1 };
	struct wf_alg_slot *slot;
	bool is;

	/* Before drivers are loaded. */
	if (!io->map || !is_bgzf(io->map, io->size))
		return false;
	slot = wf_alg_registry_get(&want);
	is = slot && wf_alg_choice_is_open(wf_alg_registry_driver(slot), &want);
	wf_alg_registry_put(slot);
	return is;
}

bool wf_tools_gzip_pieces_can(const struct wf_gzip_pieces *p,
			      const struct wf_gzip_io *io)
{
	struct wf_alg_slot *slot = driver_for(p, io->options->driver);

	wf_alg_registry_put(slot);
	return slot != NULL;
}

/* -- groups
 * ------------------------------------------------------------------ */

static int take_group(void *arg, unsigned int slot, int *none)
{
	struct wf_gzip_pieces *p = arg;
	struct group *g = &p->groups[slot];

	g->first = p->next;
	g->len = 0;
	while (p->next < p->count && p->next - g->first < GROUP_JOBS &&
	       g->len + p->list[p->next].out_len <= p->group_len)
		g->len += p->list[p->next++].out_len;
	g->count = p->next - g->first;
	*none = !g->count;
	return 0;
}

static void is_back(struct wf_alg_owner *owner)
{
	((struct waiting *)owner)->back++;
}

static void make_jobs(struct wf_gzip_pieces *p, struct group *g,
		      struct waiting *waiting)
{
	uint8_t *out = g->out;

	for (size_t i = 0; i < g->count; i++) {
		const struct piece *piece = &p->list[g->first + i];

		g->jobs[i] = (struct wd_comp_job){
			.src = p->io->map + piece->in,
			.src_len = piece->in_len,
			.dst = out,
			.dst_len = piece->out_len,
			.flush = piece->member ? WD_COMP_FINISH :
						 WD_COMP_SYNC_FLUSH,
			.check_alg = WD_COMP_GZIP,
			.inflate = 1,
			.owner = &waiting->owner,
		};
		out += piece->out_len;
	}
}

/* All jobs of a group, on a channel of this thread. */
static int run_jobs(struct wf_alg_queue *q, struct group *g,
		    struct waiting *waiting)
{
	struct wd_comp_job *list[SUBMIT];
	size_t given = 0;

	while (waiting->back < g->count) {
		size_t n = g->count - given;
		int taken, polled;

		n = n < SUBMIT ? n : SUBMIT;
		for (size_t i = 0; i < n; i++)
			list[i] = &g->jobs[given + i];
		taken = n ? wf_alg_queue_submit(q, list, (unsigned int)n) : 0;
		if (taken < 0)
			return taken;
		given += (size_t)taken;
		polled = wf_alg_queue_poll(q);
		if (polled < 0)
			return polled;
		if (!taken && !polled && waiting->back < g->count)
			wf_alg_queue_wait(q, WAIT_MS);
	}
	return 0;
}

/* 0 if a piece ended where it had to, with the right checksum; -errno. */
static int check_job(const struct wf_gzip_pieces *p, const struct piece *piece,
		     struct wd_comp_job *job)
{
	bool ended = piece->member;

	if (job->result && job->result != -ENODATA && job->result != -ENOSPC &&
	    job->result != -EBADMSG)
		return job->result;
	if (job->result != (ended ? 0 : -ENODATA) || (!ended && !job->border) ||
	    job->produced != piece->out_len || job->consumed != piece->in_len)
		return -EBADMSG;
	if (!job->checked)
		job->check = wd_comp_check(WD_COMP_GZIP,
					   wd_comp_check_init(WD_COMP_GZIP),
					   job->dst, job->produced);
	if (p->members &&
	    job->check != get(p->io->map + piece->in + piece->in_len))
		return -EBADMSG;
	return 0;
}

static int by_device(struct wf_gzip_pieces *p, struct wf_alg_slot *driver,
		     struct group *g)
{
	struct waiting waiting = { .owner.done = is_back };
	struct wf_alg_queue *q;
	bool fresh;
	int ret;

	q = wf_alg_queue_get(driver, WD_COMP_CAN_INFLATE, &fresh);
	if (!q)
		return -ENODEV;
	make_jobs(p, g, &waiting);
	ret = run_jobs(q, g, &waiting);
	wf_alg_queue_put(q);
	atomic_fetch_add(&p->by_device, 1);
	return ret;
}

/* One after the other, by none of the drivers in @except. */
static int by_library(struct wf_gzip_pieces *p, uint32_t except,
		      struct group *g)
{
	struct waiting waiting = { .owner.done = is_back };
	const char *used = NULL;

	make_jobs(p, g, &waiting);
	for (size_t i = 0; i < g->count; i++) {
		struct wf_alg_want want = { .except = except };
		struct wd_comp_job *job = &g->jobs[i];

		job->owner = NULL;
		job->result = wf_alg_piece_inflate(job, want, &used);
	}
	atomic_fetch_add(&p->by_library, 1);
	atomic_store(&p->library, used);
	return 0;
}

/* Whether every job has a result that another driver would give, too. */
static bool is_final(const struct group *g)
{
	for (size_t i = 0; i < g->count; i++) {
		if (!wf_alg_piece_is_final(g->jobs[i].result))
			return false;
	}
	return true;
}

/* A device that fails, fails a job or cannot be opened, leaves the group to
 * libraries, if nobody has named it. */
static int run_group(struct wf_gzip_pieces *p, struct group *g)
{
	struct wf_alg_want want = want_of(p, p->io->options->driver);
	struct wd_comp_job all = { .inflate = 1 };
	struct wf_alg_start start = { 0 };
	struct wf_alg_choice choice;
	bool good;
	int ret;

	for (size_t i = 0; i < g->count; i++)
		all.src_len += p->list[g->first + i].in_len;
	wf_alg_choice_later(&want, &all, &choice);
	if (!choice.found)
		return -ENOTSUP;
	if (choice.cost)
		start = wf_alg_cost_begin(choice.cost, &all,
					  wf_base_clock_ns());
	if (choice.slot)
		ret = by_device(p, choice.slot, g);
	else
		ret = by_library(p, choice.passed, g);
	good = !ret && (!choice.cost || is_final(g));
	if (!ret && choice.slot && !good)
		ret = -ENODEV;
	if (choice.cost)
		wf_alg_cost_end(choice.cost, &all, start, good,
				wf_base_clock_ns());
	if (ret == -ENODEV && choice.cost && choice.slot)
		ret = by_library(
			p, choice.passed | wf_alg_registry_bit(choice.slot), g);
	wf_alg_registry_put(choice.slot);
	return ret;
}

static int unpack_group(void *arg, unsigned int slot)
{
	struct wf_gzip_pieces *p = arg;
	struct group *g = &p->groups[slot];
	int ret = run_group(p, g);

	for (size_t i = 0; i < g->count && !ret; i++)
		ret = check_job(p, &p->list[g->first + i], &g->jobs[i]);
	return ret;
}

/* In order. */
static int put_group(void *arg, unsigned int slot)
{
	struct wf_gzip_pieces *p = arg;
	const struct group *g = &p->groups[slot];

	for (size_t i = 0; i < g->count; i++)
		p->check = wd_comp_check_combine(
			WD_COMP_GZIP, p->members ? 0 : p->check,
			g->jobs[i].check, g->jobs[i].produced);
	return p->put(p->arg, g->out, g->len);
}

static int run_groups(struct wf_gzip_pieces *p, unsigned int threads)
{
	struct wf_gang gang = {
		.threads = threads,
		.slots = 2 * threads + 1,
		.arg = p,
		.take = take_group,
		.work = unpack_group,
		.put = put_group,
	};
	uint8_t *room = wf_alg_gang_room(gang.slots * p->group_len);
	int ret = room ? 0 : -ENOMEM;

	p->groups = calloc(gang.slots, sizeof(*p->groups));
	for (unsigned int i = 0; p->groups && i < gang.slots; i++) {
		p->groups[i].out = room + i * p->group_len;
		p->groups[i].jobs =
			calloc(GROUP_JOBS, sizeof(struct wd_comp_job));
		ret = p->groups[i].jobs ? ret : -ENOMEM;
	}
	if (!ret)
		ret = p->groups ? wf_alg_gang_run(&gang) : -ENOMEM;
	for (unsigned int i = 0; p->groups && i < gang.slots; i++)
		free(p->groups[i].jobs);
	free(p->groups);
	free(room);
	return ret;
}

int wf_tools_gzip_pieces_run(struct wf_gzip_pieces *p, struct wf_gzip_io *io,
			     int (*put)(void *arg, const uint8_t *data,
					size_t len),
			     void *arg)
{
	unsigned int threads = io->options->threads;
	int ret;

	p->driver = driver_for(p, io->options->driver);
	if (!p->driver)
		return -ENOTSUP;
	p->io = io;
	p->put = put;
	p->arg = arg;
	p->check = wd_comp_check_init(WD_COMP_GZIP);
	p->group_len = UNDER_WAY / threads;
	if (p->group_len < GROUP_LEAST)
		p->group_len = GROUP_LEAST;
	if (p->group_len > GROUP_MOST)
		p->group_len = GROUP_MOST;
	if (p->group_len < p->largest)
		p->group_len = p->largest;
	ret = run_groups(p, threads);
	if (!ret && !p->members && p->check != get(io->map + p->end))
		ret = -EBADMSG;
	io->driver = p->by_library > p->by_device ?
			     p->library :
			     wf_alg_registry_driver(p->driver)->name;
	io->points = (unsigned int)p->count;
	io->check = p->check;
	if (!ret)
		io->total_in = io->size;
	wf_alg_registry_put(p->driver);
	return ret;
}
