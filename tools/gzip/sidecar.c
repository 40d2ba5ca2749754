/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index file next to a gzip file, in memory and on disk. An index that is
 * read from disk is checked before any of it is used.
 */
#include "tools/gzip/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/wd_comp.h>

#define MAGIC "WFINDEX1"
#define HEAD 40
#define PLACE 28
#define AT_MEMBER (1ull << 63)
#define SPACING (1u << 20) /* plain data between two places, at least */
#define PACKED_MOST (WF_CHUNK_WINDOW + 64)

struct wf_gzip_sidecar {
	size_t count;
	size_t room;
	struct wf_unpack_point *points; /* windows are ours */
	uint32_t *checks;
	uint64_t size; /* plain data */
	/* The segment that sidecar_check() is in. */
	bool checking;
	size_t segment;
	uint32_t check;
};

static void put(uint8_t *out, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		out[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *in, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)in[i] << (8 * i);
	return value;
}

struct wf_gzip_sidecar *wf_tools_gzip_sidecar_new(void)
{
	return calloc(1, sizeof(struct wf_gzip_sidecar));
}

void wf_tools_gzip_sidecar_free(struct wf_gzip_sidecar *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->count; i++)
		free((void *)(uintptr_t)b->points[i].window);
	free(b->points);
	free(b->checks);
	free(b);
}

/* Room for another place. */
static bool grow(struct wf_gzip_sidecar *b)
{
	size_t room = b->room ? 2 * b->room : 64;
	struct wf_unpack_point *points;
	uint32_t *checks;

	if (b->count < b->room)
		return true;
	points = realloc(b->points, room * sizeof(*points));
	if (points)
		b->points = points;
	checks = realloc(b->checks, room * sizeof(*checks));
	if (checks)
		b->checks = checks;
	if (!points || !checks)
		return false;
	b->room = room;
	return true;
}

/* @window: @have bytes. */
static bool add(struct wf_gzip_sidecar *b, struct wf_unpack_point point,
		const uint8_t *window)
{
	uint8_t *copy = malloc(point.have ? point.have : 1);

	if (!copy || !grow(b)) {
		free(copy);
		return false;
	}
	if (point.have)
		memcpy(copy, window, point.have);
	point.window = copy;
	b->checks[b->count] = 0;
	b->points[b->count++] = point;
	return true;
}

int wf_tools_gzip_sidecar_add(struct wf_gzip_sidecar *b,
			      const struct wf_unpack_point *begin,
			      uint32_t check, size_t len)
{
	uint64_t last = b->count ? b->points[b->count - 1].out : 0;

	if (begin->window && (!b->count || begin->out - last >= SPACING) &&
	    !add(b, *begin, begin->window + WF_CHUNK_WINDOW - begin->have))
		return -ENOMEM;
	if (b->count)
		b->checks[b->count - 1] = wd_comp_check_combine(
			WD_COMP_GZIP, b->checks[b->count - 1], check, len);
	b->size = begin->out + len;
	return 0;
}

static bool path_of(const char *name, char *path, size_t room)
{
	return (size_t)snprintf(path, room, "%s" WF_GZIP_SIDECAR_SUFFIX, name) <
	       room;
}

/* The last bytes of the file that an index is for. */
static void last_bytes(const uint8_t *map, size_t size, uint8_t out[8])
{
	size_t n = size < 8 ? size : 8;

	memset(out, 0, 8);
	if (n)
		memcpy(out, map + size - n, n);
}

/* All but the head; its length, 0 without memory. */
static size_t body_of(const struct wf_gzip_sidecar *b, uint8_t **body)
{
	uint8_t *out = malloc(b->count * (PLACE + PACKED_MOST) + 1);
	size_t at = 0;

	*body = out;
	for (size_t i = 0; out && i < b->count; i++) {
		const struct wf_unpack_point *p = &b->points[i];
		struct wd_comp_ctx ctx = { .comp_level = 6, .tight = 1 };
		size_t in = p->have, packed = PACKED_MOST;

		put(out + at, p->at.bit | (p->at.member ? AT_MEMBER : 0), 8);
		put(out + at + 8, p->out, 8);
		put(out + at + 16, b->checks[i], 4);
		put(out + at + 20, p->have, 4);
		if (!p->have)
			packed = 0;
		else if (wd_alg_deflate(&ctx, p->window, &in, out + at + PLACE,
					&packed))
			return 0;
		put(out + at + 24, packed, 4);
		at += PLACE + packed;
	}
	return out ? at : 0;
}

int wf_tools_gzip_sidecar_write(const struct wf_gzip_sidecar *b,
				const char *name, const uint8_t *map,
				size_t size, unsigned int *count)
{
	char path[4096];
	uint8_t head[HEAD] = MAGIC, *body = NULL;
	size_t len = body_of(b, &body);
	FILE *file = NULL;
	int ret = 0;

	*count = (unsigned int)b->count;
	put(head + 8, size, 8);
	last_bytes(map, size, head + 16);
	put(head + 24, b->size, 8);
	put(head + 32, b->count, 4);
	put(head + 36, wd_comp_check(WD_COMP_GZIP, 0, body, len), 4);
	if (!body || (b->count && !len))
		ret = -ENOMEM;
	else if (!path_of(name, path, sizeof(path)))
		ret = -ENAMETOOLONG;
	else if (!(file = fopen(path, "wbe")))
		ret = -errno;
	if (file && (fwrite(head, 1, HEAD, file) != HEAD ||
		     fwrite(body, 1, len, file) != len))
		ret = -errno;
	if (file && fclose(file))
		ret = -errno;
	if (file && ret)
		unlink(path);
	free(body);
	return ret;
}

/* One place; how long it is, 0 if it cannot be. */
static size_t read_place(struct wf_gzip_sidecar *b, const uint8_t *in,
			 size_t len)
{
	uint8_t window[WF_CHUNK_WINDOW];
	struct wd_comp_ctx ctx = { 0 };
	struct wf_unpack_point p;
	size_t packed, used, made = sizeof(window);
	uint64_t bit;

	if (len < PLACE)
		return 0;
	bit = get(in, 8);
	p.at.bit = bit & ~AT_MEMBER;
	p.at.member = bit & AT_MEMBER;
	p.out = get(in + 8, 8);
	p.have = get(in + 20, 4);
	packed = get(in + 24, 4);
	used = packed;
	if (packed > len - PLACE || p.have > WF_CHUNK_WINDOW ||
	    (p.have &&
	     (wd_alg_inflate(&ctx, in + PLACE, &used, window, &made) ||
	      made != p.have)))
		return 0;
	if (b->count && (b->points[b->count - 1].at.bit >= p.at.bit ||
			 b->points[b->count - 1].out >= p.out))
		return 0;
	if (!add(b, p, window))
		return 0;
	b->checks[b->count - 1] = (uint32_t)get(in + 16, 4);
	return PLACE + packed;
}

static bool parse(struct wf_gzip_sidecar *b, const uint8_t *in, size_t len,
		  const uint8_t *map, size_t size)
{
	uint8_t last[8];
	size_t at = HEAD;
	uint64_t count;

	last_bytes(map, size, last);
	if (get(in + 8, 8) != size || memcmp(in + 16, last, 8) != 0 ||
	    get(in + 36, 4) !=
		    wd_comp_check(WD_COMP_GZIP, 0, in + HEAD, len - HEAD))
		return false;
	b->size = get(in + 24, 8);
	count = get(in + 32, 4);
	while (b->count < count) {
		size_t n = read_place(b, in + at, len - at);

		if (!n || b->points[b->count - 1].at.bit / 8 > size)
			return false;
		at += n;
	}
	return count && at == len;
}

struct wf_gzip_sidecar *wf_tools_gzip_sidecar_read(const char *name,
						   const uint8_t *map,
						   size_t size,
						   const char **wrong)
{
	struct wf_gzip_sidecar *b = NULL;
	char path[4096];
	struct stat st;
	uint8_t *in = NULL;
	size_t len = 0;
	int fd = -1;

	*wrong = NULL;
	if (path_of(name, path, sizeof(path)))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size >= 0) {
		len = (size_t)st.st_size;
		in = malloc(len + 1);
	}
	if (!in || pread(fd, in, len, 0) != (ssize_t)len)
		*wrong = "cannot be read";
	else if (len < HEAD || memcmp(in, MAGIC, 8) != 0)
		*wrong = "is no index";
	else
		b = wf_tools_gzip_sidecar_new();
	close(fd);
	if (b && !parse(b, in, len, map, size)) {
		*wrong = "is damaged, or belongs to another file";
		wf_tools_gzip_sidecar_free(b);
		b = NULL;
	}
	free(in);
	return b;
}

const struct wf_unpack_point *
wf_tools_gzip_sidecar_points(const struct wf_gzip_sidecar *b, size_t *count)
{
	*count = b->count;
	return b->points;
}

/* How many places are at or before @out in the plain data. */
static size_t places_up_to(const struct wf_gzip_sidecar *b, uint64_t out)
{
	size_t low = 0, high = b->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (b->points[middle].out <= out)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool wf_tools_gzip_sidecar_find(const struct wf_gzip_sidecar *b, uint64_t from,
				struct wf_unpack_point *start,
				const struct wf_unpack_point **points,
				size_t *count)
{
	size_t low = places_up_to(b, from);

	if (!low)
		return false;
	*start = b->points[low - 1];
	*points = b->points + low - 1;
	*count = b->count - low + 1;
	return true;
}

int wf_tools_gzip_sidecar_check(struct wf_gzip_sidecar *b, uint64_t out,
				uint32_t check, size_t len)
{
	uint64_t limit;

	if (!b)
		return 0;
	/* It begins with the piece that begins at a place. */
	if (!b->checking) {
		size_t places = places_up_to(b, out);

		if (!places || b->points[places - 1].out != out)
			return 0;
		b->checking = true;
		b->segment = places - 1;
		b->check = 0;
	}
	b->check = wd_comp_check_combine(WD_COMP_GZIP, b->check, check, len);
	limit = b->segment + 1 < b->count ? b->points[b->segment + 1].out :
					    b->size;
	if (out + len < limit)
		return 0;
	b->checking = false;
	/* Pieces end at every place, unless the data has changed: a piece that
	 * ends behind a place has another length than before. */
	return out + len == limit && b->check == b->checks[b->segment] ?
		       0 :
		       -EBADMSG;
}

int wf_tools_gzip_sidecar_check_end(const struct wf_gzip_sidecar *b)
{
	return b && b->checking ? -EBADMSG : 0;
}
