/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packs one file: several threads pack a block each and write it when it is its
 * turn. The result is one gzip member. At regular distances a block begins
 * without a dictionary; if the start of the output can be rewritten, the header
 * says where those blocks are.
 */
#include "tools/gzip/gzip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/wd_comp_drv.h>

#include "alg/gang.h"
#include "alg/wrap.h"
#include "tools/gzip/index.h"

#define DICT 32768u
#define BLOCK (512u << 10)     /* with a dictionary */
#define BLOCK_ALONE (1u << 20) /* without */
#define RESTART 2	       /* blocks with a dictionary in a row */
#define ROOM_UNKNOWN 512       /* points, where nobody knows the size */
#define AHEAD (4u << 20)       /* read before their number is chosen */
#define HEADER_MAX (12 + 65536 + 256)
/* Blocks of --rsyncable: 144 KiB on average. */
#define RSYNC_LEAST (16u << 10)
#define RSYNC_BITS 17

struct slot {
	struct wd_comp_ctx ctx;
	uint8_t *buf; /* dictionary and input, where it is read */
	const uint8_t *in;
	size_t len;
	uint8_t *out;
	bool restart;
	uint64_t at; /* in the compressed data */
};

struct packer {
	struct wf_gzip_io *io;
	size_t block;
	bool dict;
	unsigned int count; /* slots */
	uint8_t *room;	    /* of all slots */
	struct slot *slots;
	/* Of the thread that takes input: */
	uint64_t next;	/* block to take */
	uint64_t taken; /* bytes of input */
	bool eof;
	uint8_t tail[DICT]; /* the end of the last block that was read */
	size_t tail_len;
	uint64_t numbers[256];
	uint8_t *ahead; /* input that was read already */
	size_t ahead_at;
	size_t ahead_len;
	/* Of the thread that writes: */
	uint64_t first;	 /* blocks written */
	uint64_t packed; /* bytes of input in them */
	uint32_t check;
	uint64_t written; /* compressed data, without the header */
	struct wf_gzip_index index;
	off_t header_at;
	off_t data_at;	 /* behind the header */
	bool places;	 /* each block is written at its place */
	size_t index_at; /* in the header */
};

/* Whether the driver that gets this level can use a dictionary. */
static bool uses_dict(const struct wf_gzip_options *options)
{
	for (unsigned int i = 0;; i++) {
		const struct wd_alg_comp *d = wd_alg_comp_list(i);

		if (!d)
			return false;
		if (options->driver && strcmp(options->driver, d->name) != 0)
			continue;
		if (d->can & WD_COMP_CAN_DEFLATE &&
		    d->levels >> options->level & 1)
			return d->can & WD_COMP_CAN_DEFLATE_DICT;
	}
}

static size_t write_header(struct packer *p, uint8_t *out)
{
	const char *name = p->io->stored;
	struct wf_wrap_member member = {
		.level = p->io->options->level,
		.mtime = p->io->mtime,
		.name = name && strlen(name) < 256 ? name : NULL,
	};
	uint8_t *extra = NULL;
	size_t n;

	if (p->index.room) {
		member.extra_len = wf_tools_gzip_index_size(&p->index);
		extra = malloc(member.extra_len);
		if (!extra)
			return 0;
		wf_tools_gzip_index_write(&p->index, extra);
		p->index_at = 12; /* behind the header's first part */
	}
	member.extra = extra;
	n = wf_alg_wrap_member(out, &member);
	free(extra);
	return n;
}

/* Whether an index can be filled in at the end. */
static bool can_index(struct packer *p)
{
	int flags = p->io->out < 0 ? -1 : fcntl(p->io->out, F_GETFL);
	struct stat st;

	p->header_at = lseek(p->io->out, 0, SEEK_CUR);
	return flags >= 0 && !(flags & O_APPEND) && p->header_at >= 0 &&
	       !fstat(p->io->out, &st) && S_ISREG(st.st_mode);
}

/* Place for it: as many points as there will be, if that is known. */
static void plan_index(struct packer *p)
{
	uint32_t span = (uint32_t)(p->block * (p->dict ? RESTART : 1));
	uint64_t points = p->io->size ? p->io->size / span : ROOM_UNKNOWN;

	p->places = can_index(p) && p->io->options->threads > 1;
	if (!points || !can_index(p) || p->io->options->rsyncable ||
	    p->io->options->reproducible)
		return;
	p->index.span = span;
	p->index.room = (uint32_t)(points + 2) & ~1u;
	if (p->index.room > ROOM_UNKNOWN * 8)
		p->index.room = ROOM_UNKNOWN * 8;
}

static int begin(struct packer *p)
{
	uint8_t *header = malloc(HEADER_MAX);
	size_t len;
	int ret;

	if (!header)
		return -ENOMEM;
	len = write_header(p, header);
	ret = len ? wf_tools_gzip_write(p->io, header, len) : -ENOMEM;
	free(header);
	p->data_at = p->header_at + (off_t)len;
	p->io->around = len + WF_GZIP_TRAILER;
	return ret;
}

static int finish(struct packer *p)
{
	uint8_t trailer[8];
	uint8_t *bytes;
	size_t len;
	int ret;

	wf_alg_wrap_trailer(trailer, WD_COMP_GZIP, p->check, p->taken);
	/* Blocks were written without moving it. */
	if (p->places &&
	    lseek(p->io->out, p->data_at + (off_t)p->written, SEEK_SET) < 0)
		return -errno;
	ret = wf_tools_gzip_write(p->io, trailer, sizeof(trailer));
	if (ret || !p->index.count)
		return ret;
	len = wf_tools_gzip_index_size(&p->index);
	bytes = malloc(len);
	if (!bytes)
		return 0; /* the file is whole without it */
	wf_tools_gzip_index_write(&p->index, bytes);
	ret = wf_tools_gzip_write_at(p->io, bytes, len,
				     p->header_at + (off_t)p->index_at);
	free(bytes);
	p->io->points = p->index.count + 1;
	return ret;
}

static ssize_t read_full(int fd, uint8_t *buf, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = read(fd, buf + at, len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		at += (size_t)n;
	}
	return (ssize_t)at;
}

/* Data that was read ahead, then data that is still to be read. */
static ssize_t read_input(struct packer *p, uint8_t *buf, size_t len)
{
	size_t n = p->ahead_len - p->ahead_at;
	ssize_t more;

	n = n < len ? n : len;
	if (n)
		memcpy(buf, p->ahead + p->ahead_at, n);
	p->ahead_at += n;
	if (n == len)
		return (ssize_t)n;
	more = read_full(p->io->in, buf + n, len - n);
	return more < 0 ? more : more + (ssize_t)n;
}

/*
 * The header, which comes first, contains the index: if the size of the input
 * is not known, read some of it first. Small input is then treated like a file;
 * larger input gets 2 KiB for the index.
 */
static int look_ahead(struct packer *p)
{
	ssize_t n;

	n = read_full(p->io->in, p->ahead, AHEAD);
	if (n < 0)
		return (int)n;
	p->ahead_len = (size_t)n;
	if (p->ahead_len < AHEAD) {
		p->io->map = p->ahead;
		p->io->size = p->ahead_len;
	}
	return 0;
}

/* A number for each byte; they only need to differ (splitmix64). */
static uint64_t number_of(unsigned int byte)
{
	uint64_t z = (byte + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Where a block ends whose end depends on nothing but the bytes before it: the
 * sum over the last 64 bytes has its top bits zero. */
static size_t cut_at(const struct packer *p, const uint8_t *in, size_t len)
{
	uint64_t sum = 0;

	for (size_t i = RSYNC_LEAST; i < len; i++) {
		sum = (sum << 1) + p->numbers[in[i]];
		if (i >= RSYNC_LEAST + 64 && !(sum >> (64 - RSYNC_BITS)))
			return i + 1;
	}
	return len;
}

/* The data behind the end of a block come again. */
static size_t cut_read(struct packer *p, const uint8_t *in, size_t len)
{
	size_t n = cut_at(p, in, len);

	memcpy(p->ahead, in + n, len - n);
	p->ahead_at = 0;
	p->ahead_len = len - n;
	return n;
}

/* Whether there is more, which is then kept. */
static int is_more(struct packer *p)
{
	ssize_t n;

	if (p->ahead_at < p->ahead_len)
		return 1;
	n = read_full(p->io->in, p->ahead, 1);
	p->ahead_at = 0;
	p->ahead_len = n > 0 ? (size_t)n : 0;
	return (int)n;
}

/* Input for a slot; sets eof when this was the last. */
static int fill(struct packer *p, struct slot *slot)
{
	bool rsync = p->io->options->rsyncable;
	ssize_t n;

	slot->restart = !p->dict || !(p->next % RESTART);
	slot->ctx.dict_len = 0;
	if (p->io->map) {
		uint64_t left = p->io->size - p->taken;

		slot->in = p->io->map + p->taken;
		slot->len = left < p->block ? (size_t)left : p->block;
		if (rsync)
			slot->len = cut_at(p, slot->in, slot->len);
		p->eof = slot->len == left;
		if (!slot->restart) {
			slot->ctx.dict = slot->in - DICT;
			slot->ctx.dict_len = DICT;
		}
		p->taken += slot->len;
		return 0;
	}
	n = read_input(p, slot->buf + DICT, p->block);
	if (n < 0)
		return (int)n;
	slot->in = slot->buf + DICT;
	slot->len = rsync ? cut_read(p, slot->in, (size_t)n) : (size_t)n;
	p->taken += slot->len;
	n = is_more(p);
	if (n < 0)
		return (int)n;
	p->eof = !n;
	if (!slot->restart) {
		memcpy(slot->buf + DICT - p->tail_len, p->tail, p->tail_len);
		slot->ctx.dict = slot->in - p->tail_len;
		slot->ctx.dict_len = p->tail_len;
	}
	if (p->dict && slot->len >= DICT) {
		memcpy(p->tail, slot->in + slot->len - DICT, DICT);
		p->tail_len = DICT;
	}
	return 0;
}

static int take_block(void *arg, unsigned int n, int *none)
{
	struct packer *p = arg;
	struct slot *slot = &p->slots[n];
	int ret;

	if (p->eof) {
		*none = 1;
		return 0;
	}
	ret = fill(p, slot);
	if (ret)
		return ret;
	slot->ctx.alg_type = WD_COMP_RAW;
	slot->ctx.raw_check = WD_COMP_GZIP;
	slot->ctx.comp_level = p->io->options->level;
	slot->ctx.driver = p->io->options->driver;
	slot->ctx.tight = 1;
	slot->ctx.flush_type = p->eof ? WD_COMP_FINISH : WD_COMP_SYNC_FLUSH;
	p->next++;
	return 0;
}

static int pack_block(void *arg, unsigned int n)
{
	struct packer *p = arg;
	struct slot *slot = &p->slots[n];
	size_t in = slot->len;

	slot->ctx.out_len = wd_alg_deflate_bound(&slot->ctx, p->block);
	return wd_alg_deflate(&slot->ctx, slot->in, &in, slot->out,
			      &slot->ctx.out_len);
}

static int place_block(void *arg, unsigned int n)
{
	struct packer *p = arg;
	struct slot *slot = &p->slots[n];

	if (p->first && slot->restart)
		wf_tools_gzip_index_add(&p->index, p->written);
	p->check = wd_comp_check_combine(WD_COMP_GZIP, p->check,
					 slot->ctx.check, slot->len);
	slot->at = p->written;
	p->written += slot->ctx.out_len;
	p->packed += slot->len;
	p->io->driver = slot->ctx.used;
	p->first++;
	wf_tools_gzip_progress(p->io, p->packed);
	if (p->places)
		p->io->total_out += slot->ctx.out_len;
	return 0;
}

static int write_block(void *arg, unsigned int n)
{
	struct packer *p = arg;
	struct slot *slot = &p->slots[n];
	const uint8_t *data = slot->out;
	size_t len = slot->ctx.out_len;

	if (!p->places) {
		place_block(arg, n);
		return wf_tools_gzip_write(p->io, data, len);
	}
	return wf_tools_gzip_write_at(p->io, data, len,
				      p->data_at + (off_t)slot->at);
}

static int run(struct packer *p)
{
	struct wf_gang gang = {
		.threads = p->io->options->threads,
		.slots = p->count,
		.arg = p,
		.take = take_block,
		.work = pack_block,
		.place = p->places ? place_block : NULL,
		.put = write_block,
	};

	return wf_alg_gang_run(&gang);
}

static int make_slots(struct packer *p)
{
	struct wd_comp_ctx ctx = { 0 };
	size_t in = p->io->map ? 0 : DICT + p->block;
	size_t out = wd_alg_deflate_bound(&ctx, p->block);
	uint8_t *room;

	p->count = p->io->options->threads * 2 + 1;
	p->slots = calloc(p->count, sizeof(*p->slots));
	p->room = wf_alg_gang_room(p->count * (in + out));
	if (!p->slots || !p->room)
		return -ENOMEM;
	room = p->room;
	for (unsigned int i = 0; i < p->count; i++) {
		p->slots[i].buf = room;
		p->slots[i].out = room + in;
		room += in + out;
	}
	return 0;
}

/* A file of one block: no threads. */
static int pack_small(struct packer *p)
{
	struct wd_comp_ctx ctx = { .comp_level = p->io->options->level,
				   .driver = p->io->options->driver,
				   .raw_check = WD_COMP_GZIP,
				   .tight = 1 };
	size_t in = (size_t)p->io->size;
	size_t out = wd_alg_deflate_bound(&ctx, in);
	uint8_t *buf = malloc(out);
	int ret = buf ? begin(p) : -ENOMEM;

	if (!ret)
		ret = wd_alg_deflate(&ctx, p->io->map, &in, buf, &out);
	if (!ret)
		ret = wf_tools_gzip_write(p->io, buf, out);
	free(buf);
	p->check = ctx.check;
	p->taken = in;
	p->io->driver = ctx.used;
	return ret ? ret : finish(p);
}

static int pack_large(struct packer *p)
{
	int ret;

	plan_index(p);
	ret = make_slots(p);
	if (!ret)
		ret = begin(p);
	if (!ret)
		ret = run(p);
	return ret ? ret : finish(p);
}

int wf_tools_gzip_pack(struct wf_gzip_io *io)
{
	struct packer *p = calloc(1, sizeof(*p));
	int ret = 0;

	if (!p)
		return -ENOMEM;
	p->io = io;
	p->dict = uses_dict(io->options) && !io->options->rsyncable;
	for (unsigned int i = 0; i < 256; i++)
		p->numbers[i] = number_of(i);
	p->ahead = io->map ? NULL : malloc(AHEAD);
	if (!io->map && !p->ahead)
		ret = -ENOMEM;
	p->block = p->dict ? BLOCK : BLOCK_ALONE;
	if (!ret && !io->map && can_index(p))
		ret = look_ahead(p);
	if (!ret)
		ret = io->map && io->size <= p->block &&
				      !io->options->rsyncable ?
			      pack_small(p) :
			      pack_large(p);
	wf_tools_gzip_progress_end();
	io->total_in = p->taken;
	if (io->map == p->ahead)
		io->map = NULL; /* its caller mapped the file and unmaps it */
	free(p->ahead);
	free(p->room);
	free(p->slots);
	free(p);
	if (ret)
		wf_tools_gzip_say(
			io, ret == -ENOTSUP && !atomic_load(&io->full) ?
				    wf_tools_gzip_driver_why(io->options) :
				    strerror(-ret));
	return ret;
}
