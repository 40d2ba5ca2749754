/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unpacks one file: passes it to the engine (alg/unpack.h) with its input and
 * output. In a regular output file, the thread that made a piece writes it at
 * its place; otherwise pieces are written in order.
 */
#include "tools/gzip/gzip.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weft/wd_comp.h>

#include "alg/unpack.h"
#include "tools/gzip/sidecar.h"
#include "tools/gzip/index.h"
#include "tools/gzip/pieces.h"

#define BUFFER (256u << 10)

struct unpacker {
	struct wf_gzip_io *io;
	uint8_t first[2]; /* of what is read: they tell whether it is gzip */
	size_t first_at;
	size_t first_len;
	int stop; /* an eventfd: no more is wanted */
	/* Where each piece is written to its place: */
	off_t base;
	pthread_mutex_t lock;
	uint64_t most; /* the end of what was written */
	/* What is wanted of the output: */
	uint64_t at;
	struct wf_gzip_index index;
	struct wf_unpack_point *points;
	struct wf_gzip_sidecar *sidecar;
	const char *why; /* the engine's */
	char index_name[4096 + 8];
};

static ssize_t read_input(void *arg, uint8_t *buf, size_t len)
{
	struct unpacker *u = arg;
	size_t n = u->first_len - u->first_at;
	ssize_t got;

	if (n) {
		n = n < len ? n : len;
		memcpy(buf, u->first + u->first_at, n);
		u->first_at += n;
		return (ssize_t)n;
	}
	do {
		struct pollfd fds[2] = { { .fd = u->io->in, .events = POLLIN },
					 { .fd = u->stop, .events = POLLIN } };

		/* It waits for either; a file is always ready. */
		if (u->stop >= 0 && poll(fds, 2, -1) > 0 && fds[1].revents)
			return 0;
		got = read(u->io->in, buf, len);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static void stop(void *arg)
{
	struct unpacker *u = arg;

	if (u->stop >= 0)
		eventfd_write(u->stop, 1);
}

static int put(void *arg, const uint8_t *data, size_t len)
{
	struct unpacker *u = arg;
	const struct wf_gzip_options *o = u->io->options;
	uint64_t from = u->at, to = u->at + len;

	u->at = to;
	wf_tools_gzip_progress(u->io, u->at);
	if (!o->range)
		return wf_tools_gzip_write(u->io, data, len);
	if (from < o->range_from)
		from = o->range_from < to ? o->range_from : to;
	if (to > o->range_to)
		to = o->range_to > from ? o->range_to : from;
	return wf_tools_gzip_write(u->io, data + (from - (u->at - len)),
				   (size_t)(to - from));
}

static int put_at(void *arg, uint64_t at, const uint8_t *data, size_t len)
{
	struct unpacker *u = arg;

	pthread_mutex_lock(&u->lock);
	if (at + len > u->most)
		u->most = at + len;
	pthread_mutex_unlock(&u->lock);
	return wf_tools_gzip_write_at(u->io, data, len, u->base + (off_t)at);
}

/* Whether pieces can be written to their places. */
static bool can_place(struct unpacker *u)
{
	int flags = u->io->out < 0 ? -1 : fcntl(u->io->out, F_GETFL);
	struct stat st;

	u->base = u->io->out < 0 ? -1 : lseek(u->io->out, 0, SEEK_CUR);
	return flags >= 0 && !(flags & O_APPEND) && u->base >= 0 &&
	       !fstat(u->io->out, &st) && S_ISREG(st.st_mode) &&
	       !u->io->options->range && u->io->options->threads > 1;
}

/* The file ends behind the valid data, as if it had been written in order. */
static int end_places(struct unpacker *u, uint64_t good)
{
	struct stat st;

	if (u->most > good && !fstat(u->io->out, &st) &&
	    st.st_size == u->base + (off_t)u->most &&
	    ftruncate(u->io->out, u->base + (off_t)good))
		return -errno;
	u->io->total_out = good;
	return lseek(u->io->out, u->base + (off_t)good, SEEK_SET) < 0 ? -errno :
									0;
}

/* Files that weft packed have an index in their header. */
static void read_header(void *arg, struct wf_unpack *engine,
			const uint8_t *extra, size_t len, uint64_t end)
{
	struct unpacker *u = arg;
	struct wf_gzip_index *index = &u->index;
	uint64_t at = end;

	u->io->around = (size_t)(end / 8) + WF_GZIP_TRAILER;
	if (engine->points || !len ||
	    !wf_tools_gzip_index_read(index, extra, len))
		return;
	u->points = calloc(index->count + 1, sizeof(*u->points));
	if (!u->points)
		return;
	for (uint32_t i = 0; i <= index->count; i++) {
		static const uint8_t nothing[1];

		u->points[i] = (struct wf_unpack_point){
			.at.bit = at,
			.out = (uint64_t)i * index->span,
			.window = nothing,
		};
		if (i < index->count)
			at += (uint64_t)index->lengths[i] * 8;
	}
	engine->points = u->points;
	engine->points_count = index->count + 1;
	u->io->points = index->count + 1;
}

static int note_piece(void *arg, const struct wf_unpack_point *begin,
		      uint32_t check, size_t len)
{
	struct unpacker *u = arg;
	const struct wf_gzip_options *o = u->io->options;
	int ret;

	if (o->make_index)
		return wf_tools_gzip_sidecar_add(u->sidecar, begin, check, len);
	ret = wf_tools_gzip_sidecar_check(u->sidecar, begin->out, check, len);
	/* Nothing more is wanted. */
	return ret ? ret : u->at >= o->range_to ? -ECANCELED : 0;
}

/* By a driver that was asked for: in order, member after member. */
static int run_driver(struct unpacker *u, uint8_t *in, uint8_t *out)
{
	struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP,
				   .stream_mode = WD_COMP_STATEFUL,
				   .driver = u->io->options->driver };
	size_t have = 0, at = 0;
	bool between = true, first = true;
	ssize_t n = 1;
	int ret = 0;

	while (!ret) {
		size_t used, room = BUFFER;

		if (n && have - at < 2) {
			memmove(in, in + at, have - at);
			have -= at;
			at = 0;
			n = read_input(u, in + have, BUFFER - have);
			have += n > 0 ? (size_t)n : 0;
			ret = n < 0 ? (int)n : 0;
			continue;
		}
		if (between && !first && have > at && !in[at]) {
			at++;
			u->io->total_in++;
			continue;
		}
		if (between &&
		    (have - at < 2 || in[at] != 0x1f || in[at + 1] != 0x8b)) {
			u->io->garbage = !first && have > at;
			ret = first ? -ENODATA : 0;
			break;
		}
		ctx.new_stream = between;
		used = have - at;
		ret = wd_alg_inflate(&ctx, in + at, &used, out, &room);
		at += used;
		u->io->total_in += used;
		if (room && (!ret || ret == -EBADMSG)) {
			int bad = put(u, out, room);

			ret = ret ? ret : bad;
		}
		between = ctx.status == WD_COMP_END;
		first = false;
		if (!ret && !n && !used && !room && !between)
			ret = -ENODATA;
	}
	u->io->driver = ctx.used;
	wd_alg_end(&ctx);
	return ret;
}

/* By a driver that was asked for, or is to be considered, and takes many pieces at
 * once. 1: it does not, or the file has none. */
static int run_pieces(struct unpacker *u)
{
	struct wf_gzip_pieces *pieces;
	int ret = 1;

	if (u->io->options->range || u->io->options->make_index ||
	    (!u->io->options->driver &&
	     !wf_tools_gzip_pieces_are_considered(u->io)))
		return 1;
	pieces = wf_tools_gzip_pieces_find(u->io);
	if (pieces && wf_tools_gzip_pieces_can(pieces, u->io))
		ret = wf_tools_gzip_pieces_run(pieces, u->io, put, u);
	wf_tools_gzip_pieces_free(pieces);
	return ret;
}

/* As it is, like cat. */
static int copy(struct unpacker *u)
{
	uint8_t *buf = malloc(BUFFER);
	ssize_t n = buf ? 1 : -ENOMEM;
	int ret = 0;

	while (n > 0 && !ret) {
		n = read_input(u, buf, BUFFER);
		if (n > 0)
			ret = put(u, buf, (size_t)n);
		u->io->total_in += n > 0 ? (size_t)n : 0;
	}
	free(buf);
	return n < 0 ? (int)n : ret;
}

static int run_engine(struct unpacker *u)
{
	struct wf_gzip_io *io = u->io;
	const struct wf_gzip_options *o = io->options;
	struct wf_unpack engine = {
		.alg = WD_COMP_GZIP,
		.members = true,
		.threads = o->threads,
		.in = io->map,
		.in_len = io->map ? (size_t)io->size : 0,
		.read = read_input,
		.stop = stop,
		.put = put,
		.header = read_header,
		.arg = u,
	};
	struct wf_unpack_point start;
	int ret;

	if (can_place(u))
		engine.put_at = put_at;
	if (o->make_index || o->range)
		engine.piece = note_piece;
	if (u->sidecar && !o->make_index) {
		engine.points = wf_tools_gzip_sidecar_points(
			u->sidecar, &engine.points_count);
		io->points = (unsigned int)engine.points_count;
		if (o->range && wf_tools_gzip_sidecar_find(
					u->sidecar, o->range_from, &start,
					&engine.points, &engine.points_count)) {
			engine.start = &start;
			u->at = start.out;
		}
	}
	ret = wf_alg_unpack_run(&engine);
	if (!ret && o->range)
		ret = wf_tools_gzip_sidecar_check_end(u->sidecar);
	if (ret == -ECANCELED)
		ret = 0;
	if (engine.put_at) {
		int bad = end_places(u, engine.total_out);

		ret = ret ? ret : bad;
	}
	io->total_in = engine.total_in;
	io->mtime = engine.mtime;
	io->check = engine.check;
	io->garbage = engine.garbage;
	u->why = engine.why;
	io->ahead = engine.ahead;
	io->driver = "weft";
	return ret;
}

static int run(struct unpacker *u)
{
	struct wf_gzip_io *io = u->io;
	uint8_t *in, *out;
	int ret;

	/* The first two bytes tell whether it is gzip. */
	if (io->as_is || io->options->driver) {
		while (u->first_len < 2) {
			ssize_t n = read(io->in, u->first + u->first_len,
					 2 - u->first_len);

			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0)
				return -errno;
			if (!n)
				break;
			u->first_len += (size_t)n;
		}
	}
	if (io->as_is &&
	    (u->first_len < 2 || u->first[0] != 0x1f || u->first[1] != 0x8b))
		return copy(u);
	ret = run_pieces(u);
	if (ret <= 0)
		return ret;
	if (!io->options->driver)
		return run_engine(u);
	in = malloc(BUFFER);
	out = malloc(BUFFER);
	ret = in && out ? run_driver(u, in, out) : -ENOMEM;
	free(in);
	free(out);
	return ret;
}

/* The index next to the file: read it, or make it. */
static int with_index(struct unpacker *u)
{
	struct wf_gzip_io *io = u->io;
	const char *wrong = NULL;
	int ret;

	if (io->options->make_index)
		u->sidecar = wf_tools_gzip_sidecar_new();
	else if (io->map)
		u->sidecar = wf_tools_gzip_sidecar_read(
			io->name, io->map, (size_t)io->size, &wrong);
	if (wrong && !io->options->quiet)
		fprintf(stderr,
			"%s: %s" WF_GZIP_SIDECAR_SUFFIX " %s -- ignored\n",
			wf_tools_gzip_program(), io->name, wrong);
	if (io->options->make_index && !u->sidecar)
		return -ENOMEM;
	ret = run(u);
	if (!ret && io->options->range && io->options->range_from &&
	    u->at <= io->options->range_from)
		ret = -ERANGE;
	if (!ret && io->options->make_index) {
		ret = wf_tools_gzip_sidecar_write(u->sidecar, io->name, io->map,
						  (size_t)io->size,
						  &io->points);
		if (ret) {
			snprintf(u->index_name, sizeof(u->index_name),
				 "%s" WF_GZIP_SIDECAR_SUFFIX, io->name);
			io->output = u->index_name;
			atomic_store(&io->full, -ret);
		}
	}
	wf_tools_gzip_sidecar_free(u->sidecar);
	return ret;
}

/* Errors of one file that are no reason to skip the others, or only in a test;
 * gzip ends at all other errors. */
static const struct {
	const char *why;
	const char *text;
	bool in_test;
} mild[] = {
	{ "incorrect data check", "the data is damaged: wrong checksum", true },
	{ "incorrect length check", "the data is damaged: wrong length", true },
	{ "header crc mismatch", "the header is damaged: wrong checksum",
	  false },
	{ "unknown compression method", "unknown method -- not supported",
	  false },
	{ "unknown header flags set", "has unknown flags -- not supported",
	  false },
};

#define MILD (sizeof(mild) / sizeof(mild[0]))

static void say_why(struct unpacker *u, int ret)
{
	struct wf_gzip_io *io = u->io;
	const char *text = strerror(-ret);
	int full = atomic_load(&io->full);
	char line[128];

	/* Below are the words for what is wrong with the input. */
	if (full) {
		wf_tools_gzip_say(io, strerror(full));
		return;
	}
	switch (ret) {
	case -EINVAL:
		text = io->options->make_index ?
			       "not in gzip format; --index takes a gzip file, "
			       "so compress it first" :
			       "not in gzip format";
		io->go_on = true;
		break;
	case -EBADMSG:
		snprintf(line, sizeof(line), "the data is damaged%s%s",
			 u->why ? ": " : "", u->why ? u->why : "");
		text = line;
		break;
	case -ENODATA:
		text = "unexpected end of file";
		break;
	case -ENOTSUP:
		text = wf_tools_gzip_driver_why(io->options);
		break;
	case -ERANGE:
		snprintf(line, sizeof(line),
			 "has %llu bytes, the range begins behind them",
			 (unsigned long long)u->at);
		text = line;
		io->go_on = true;
		break;
	default:
		break;
	}
	for (size_t i = 0; i < MILD && ret == -EBADMSG && u->why; i++) {
		if (strcmp(mild[i].why, u->why) != 0)
			continue;
		text = mild[i].text;
		io->go_on = !mild[i].in_test || io->options->test;
	}
	wf_tools_gzip_say(io, text);
}

int wf_tools_gzip_unpack(struct wf_gzip_io *io)
{
	struct unpacker *u = calloc(1, sizeof(*u));
	int ret;

	if (!u)
		return -ENOMEM;
	u->io = io;
	u->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&u->lock, NULL);
	ret = with_index(u);
	if (u->stop >= 0)
		close(u->stop);
	wf_tools_gzip_progress_end();
	pthread_mutex_destroy(&u->lock);
	if (ret)
		say_why(u, ret);
	free(u->points);
	free(u);
	return ret;
}
