/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft gzip` and `weft gunzip`: goes through the files, as gzip would, and
 * leaves the work to pack.c and unpack.c. An input file is removed only after
 * its output is whole and has its name.
 */
#include "tools/gzip/gzip.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <weft/wd_comp.h>

#include "base/clock.h"
#include "tools/gzip/options.h"

enum { OK, FAILED, WARNED };

static int exit_code;
/* An error after which, as with gzip, no more files are taken. */
static bool ended;
static const char *program = "weft gzip";
/* These are the sums of -l so far. */
static struct {
	unsigned int count;
	unsigned int asked; /* files named on the command line */
	uint64_t packed;
	uint64_t plain;
	size_t around; /* of the last one */
} listed;

static void worse(int code)
{
	/* An error outweighs a warning. */
	if (exit_code != FAILED && code)
		exit_code = code;
}

const char *wf_tools_gzip_program(void)
{
	return program;
}

void wf_tools_gzip_say(const struct wf_gzip_io *io, const char *text)
{
	const char *name = io->name;

	if (atomic_load(&io->full))
		name = io->output ? io->output : "standard output";
	fprintf(stderr, "%s: %s: %s\n", program, name, text);
}

/* -errno; the error is one of the output. */
static int note_full(struct wf_gzip_io *io)
{
	int err = errno;

	atomic_store(&io->full, err);
	return -err;
}

int wf_tools_gzip_write_at(struct wf_gzip_io *io, const uint8_t *data,
			   size_t len, off_t at)
{
	while (len) {
		ssize_t n = pwrite(io->out, data, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return note_full(io);
		data += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int wf_tools_gzip_write(struct wf_gzip_io *io, const void *data, size_t len)
{
	const char *p = data;

	io->total_out += len;
	while (len && io->out >= 0) {
		ssize_t n = write(io->out, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return note_full(io);
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static void look_at_input(struct wf_gzip_io *io)
{
	struct stat st;
	void *map;

	if (fstat(io->in, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    lseek(io->in, 0, SEEK_CUR) != 0)
		return;
	io->size = (uint64_t)st.st_size;
	/* 2 % of packing at level 1 less than reading it. */
	map = mmap(NULL, io->size, PROT_READ, MAP_PRIVATE, io->in, 0);
	if (map == MAP_FAILED)
		return;
	madvise(map, io->size, MADV_SEQUENTIAL);
	io->map = map;
}

/* As gzip: a header and a trailer are not counted. */
static double saved(uint64_t packed, uint64_t plain, size_t around)
{
	return plain ? 100.0 - 100.0 * ((double)packed - (double)around) /
				       (double)plain :
		       0;
}

static void report(const struct wf_gzip_io *io, uint64_t ns)
{
	const struct wf_gzip_options *o = io->options;
	uint64_t plain = o->decompress ? io->total_out : io->total_in;
	uint64_t packed = o->decompress ? io->total_in : io->total_out;

	if (o->verbose && o->test)
		fprintf(stderr, "%s:\t OK\n", io->name);
	else if (o->verbose)
		fprintf(stderr, "%s:\t%5.1f%%%s%s\n", io->name,
			saved(packed, plain, io->around),
			!io->output ? "" :
			o->keep	    ? " -- created " :
				      " -- replaced with ",
			io->output ? io->output : "");
	if (o->stats)
		fprintf(stderr,
			"%s: %llu bytes in, %llu out, %.3f s, %.1f MB/s of plain "
			"data, driver %s, %u threads, %u restart points, %u "
			"pieces ahead\n",
			io->name, (unsigned long long)io->total_in,
			(unsigned long long)io->total_out, (double)ns / 1e9,
			ns ? (double)plain * 1e3 / (double)ns : 0,
			io->driver ? io->driver : "none", o->threads,
			io->points, io->ahead);
}

static int work(struct wf_gzip_io *io)
{
	uint64_t begin = wf_base_clock_ns();
	int ret;

	look_at_input(io);
	ret = io->options->decompress ? wf_tools_gzip_unpack(io) :
					wf_tools_gzip_pack(io);
	if (io->map)
		munmap((void *)(uintptr_t)io->map, io->size);
	worse(ret ? FAILED : OK);
	ended = ended || (ret && !io->go_on && !io->options->list);
	if (!ret && io->garbage) {
		if (!io->options->quiet)
			wf_tools_gzip_say(io, "decompression OK, trailing "
					      "garbage ignored");
		worse(WARNED);
	}
	if (!ret)
		report(io, wf_base_clock_ns() - begin);
	return ret;
}

/* Prints what gzip -lv prints before the rest: the checksum is the last
 * member's. */
static void list_more(const struct wf_gzip_io *io)
{
	time_t when = io->options->restore_name ? io->mtime : 0;
	struct stat st;
	char date[32] = "";
	struct tm tm;

	if (!when && !fstat(io->in, &st) && S_ISREG(st.st_mode))
		when = st.st_mtim.tv_sec;
	if (localtime_r(&when, &tm))
		strftime(date, sizeof(date), "%b %e %H:%M", &tm);
	printf("defla %08x %s ", io->check, date);
}

static void list_line(uint64_t packed, uint64_t plain, size_t around,
		      const char *name)
{
	printf("%19llu %19llu %5.1f%% %s\n", (unsigned long long)packed,
	       (unsigned long long)plain, saved(packed, plain, around), name);
}

/* As gzip: of the last header alone, so that one file has the same ratio. */
static void list_totals(const struct wf_gzip_options *o)
{
	if (o->quiet || listed.asked < 2 || !listed.packed || !listed.plain)
		return;
	if (o->verbose)
		printf("%28s", "");
	list_line(listed.packed, listed.plain, listed.around, "(totals)");
}

/* @in is read to its end: the length in the trailer is cut to 32 bits, and
 * belongs to the last member alone. */
static void list_one(const struct wf_gzip_options *o, const char *name, int in)
{
	struct wf_gzip_options quiet = *o;
	struct wf_gzip_io io = {
		.options = &quiet, .name = name, .in = in, .out = -1
	};
	char plain[4096];

	quiet.verbose = false;
	quiet.stats = false;
	quiet.decompress = true;
	if (work(&io))
		return;
	if (!listed.count++ && !o->quiet)
		printf("%s%19s %19s  ratio uncompressed_name\n",
		       o->verbose ? "method  crc     date  time  " : "",
		       "compressed", "uncompressed");
	listed.packed += io.total_in;
	listed.plain += io.total_out;
	listed.around = io.around;
	quiet.quiet = true;
	if (in == STDIN_FILENO)
		strcpy(plain, "stdout");
	else if (!wf_tools_gzip_name_output(&quiet, name, plain, sizeof(plain)))
		snprintf(plain, sizeof(plain), "%s", name);
	if (o->restore_name && in != STDIN_FILENO)
		wf_tools_gzip_name_stored(in, name, plain, sizeof(plain));
	if (o->verbose)
		list_more(&io);
	list_line(io.total_in, io.total_out, io.around, plain);
}

static void list_file(const struct wf_gzip_options *o, const char *name)
{
	struct wf_gzip_io io = { .options = o, .name = name };

	io.in = open(name, O_RDONLY | O_CLOEXEC);
	if (io.in < 0) {
		wf_tools_gzip_say(&io, strerror(errno));
		worse(FAILED);
		return;
	}
	list_one(o, name, io.in);
	close(io.in);
}

static int ignore(const struct wf_gzip_io *io, const char *why)
{
	if (!io->options->quiet)
		wf_tools_gzip_say(io, why);
	worse(WARNED);
	return -1;
}

/* Opens what may be packed: plain files with one name, unless forced. */
static int open_input(const struct wf_gzip_options *o, struct wf_gzip_io *io,
		      struct stat *st)
{
	int flags = O_RDONLY | O_CLOEXEC;

	/* An input that stays may be a link, a pipe, anything. */
	if (!o->to_stdout && !o->test)
		flags |= O_NONBLOCK | (o->force ? 0 : O_NOFOLLOW);
	io->in = open(io->name, flags);
	if (io->in < 0 || fstat(io->in, st)) {
		wf_tools_gzip_say(io, strerror(errno));
		worse(FAILED);
		return -1;
	}
	if (o->to_stdout || o->test)
		return 0;
	if (!S_ISREG(st->st_mode))
		return ignore(io, "not a plain file -- ignored");
	/* As gzip, also with -f: the output would have to be given away or
	 * have rights that its content was not meant to have. */
	if (st->st_mode & (S_ISUID | S_ISGID | S_ISVTX))
		return ignore(io, "is set-user-ID, set-group-ID or sticky -- "
				  "ignored; -c");
	if (st->st_nlink > 1 && !o->force && !o->keep)
		return ignore(io,
			      "has another name too -- unchanged; -f or -k");
	return 0;
}

/* Compressed data is nothing for terminals. */
static bool is_for_terminal(const struct wf_gzip_options *o, int fd)
{
	if (o->force || o->test || o->list || !isatty(fd))
		return false;
	fprintf(stderr,
		"%s: compressed data is not %s a terminal; -f if you mean "
		"it\n",
		program, o->decompress ? "read from" : "written to");
	worse(FAILED);
	return true;
}

/* Whether the input is unchanged since it was read: it is about to be
 * removed. */
static bool is_same(const struct wf_gzip_io *io, const struct stat *before)
{
	struct stat now;

	return !fstat(io->in, &now) && now.st_size == before->st_size &&
	       now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

/* From a file into a file, which takes its place. */
static void in_place(struct wf_gzip_io *io, struct stat *st, const char *path)
{
	const struct wf_gzip_options *o = io->options;
	struct wf_gzip_out out = { .fd = -1 };
	int ret = wf_tools_gzip_out_open(&out, path, o->force);

	if (ret) {
		fprintf(stderr, "%s: %s: %s%s\n", program, path, strerror(-ret),
			ret == -EEXIST ? "; -f replaces it" : "");
		/* Like gzip: an output file that exists is a warning. */
		worse(ret == -EEXIST ? WARNED : FAILED);
		return;
	}
	io->out = out.fd;
	io->output = path;
	if (work(io)) {
		wf_tools_gzip_out_drop(&out);
		return;
	}
	if (!o->keep && !is_same(io, st)) {
		wf_tools_gzip_out_drop(&out);
		wf_tools_gzip_say(io, "changed while it was read -- unchanged; "
				      "again, or -k");
		worse(FAILED);
		return;
	}
	if (o->decompress && o->restore_name && io->mtime) {
		st->st_mtim.tv_sec = io->mtime;
		st->st_mtim.tv_nsec = 0;
	}
	ret = wf_tools_gzip_out_finish(&out, st);
	if (ret) {
		fprintf(stderr, "%s: %s: %s\n", program, path, strerror(-ret));
		worse(FAILED);
	} else if (!o->keep && unlink(io->name)) {
		wf_tools_gzip_say(io, strerror(errno));
		worse(FAILED);
	}
}

static void one_file(const struct wf_gzip_options *o, const char *name)
{
	struct wf_gzip_io io = {
		.options = o, .name = name, .in = -1, .out = -1
	};
	const char *base = strrchr(name, '/');
	char path[4096];
	struct stat st;

	if (o->list) {
		list_file(o, name);
		return;
	}
	if (o->to_stdout && !o->decompress && is_for_terminal(o, STDOUT_FILENO))
		return;
	if (open_input(o, &io, &st))
		goto done;
	if (!o->to_stdout && !o->test &&
	    !wf_tools_gzip_name_output(o, name, path, sizeof(path))) {
		/* As gzip: nothing to do is not even a warning. */
		worse(o->decompress ? WARNED : OK);
		goto done;
	}
	if (!o->decompress && !o->no_name) {
		io.stored = base ? base + 1 : name;
		io.mtime = (uint32_t)st.st_mtim.tv_sec;
	}
	if (o->to_stdout || o->test) {
		io.out = o->test ? -1 : STDOUT_FILENO;
		io.as_is = o->force && !o->test;
		work(&io);
		goto done;
	}
	if (o->decompress && o->restore_name)
		wf_tools_gzip_name_stored(io.in, name, path, sizeof(path));
	in_place(&io, &st, path);
done:
	if (io.in >= 0)
		close(io.in);
}

static void walk(const struct wf_gzip_options *o, const char *name)
{
	struct stat st;
	struct dirent *entry;
	char path[4096];
	DIR *dir;

	if (lstat(name, &st) || !S_ISDIR(st.st_mode)) {
		one_file(o, name);
		return;
	}
	if (!o->recursive) {
		if (!o->quiet)
			fprintf(stderr,
				"%s: %s is a directory -- "
				"ignored; -r goes into it\n",
				program, name);
		worse(WARNED);
		return;
	}
	dir = opendir(name);
	if (!dir) {
		fprintf(stderr, "%s: %s: %s\n", program, name, strerror(errno));
		worse(FAILED);
		return;
	}
	while (!ended && (entry = readdir(dir))) {
		const char *n = entry->d_name;

		if (!strcmp(n, ".") || !strcmp(n, ".."))
			continue;
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", name, n) >=
		    sizeof(path)) {
			fprintf(stderr, "%s: %s/%s: %s\n", program, name, n,
				strerror(ENAMETOOLONG));
			worse(FAILED);
			continue;
		}
		/* Files that this run writes may turn up in the listing. */
		if (lstat(path, &st) || S_ISDIR(st.st_mode) ||
		    wf_tools_gzip_name_ends(n, o->suffix) == o->decompress)
			walk(o, path);
	}
	closedir(dir);
}

static void standard(const struct wf_gzip_options *o)
{
	struct wf_gzip_io io = { .options = o,
				 .name = "standard input",
				 .in = STDIN_FILENO,
				 .out = o->test ? -1 : STDOUT_FILENO,
				 .as_is = o->force && !o->test };

	if (o->make_index) {
		fprintf(stderr,
			"%s: --index needs a file, because it writes the index "
			"next to it\n",
			program);
		worse(FAILED);
	} else if (o->list)
		list_one(o, io.name, STDIN_FILENO);
	else if (!is_for_terminal(o,
				  o->decompress ? STDIN_FILENO : STDOUT_FILENO))
		work(&io);
}

static int run(int argc, char **argv, struct wf_gzip_options o)
{
	char *slash = strrchr(argv[0], '/');
	int ret;

	/* getopt() begins its messages with it, too. */
	argv[0] = slash ? slash + 1 : argv[0];
	program = argv[0];
	ret = wf_tools_gzip_options(&o, argc, argv);
	if (ret >= 0)
		return ret;
	exit_code = OK;
	wf_tools_gzip_out_catch_signals();
	if (optind == argc)
		standard(&o);
	listed.asked = (unsigned int)(argc - optind);
	for (int i = optind; i < argc && !ended; i++) {
		char path[4096];

		if (!strcmp(argv[i], "-"))
			standard(&o);
		else
			walk(&o, wf_tools_gzip_name_find(&o, argv[i], path,
							 sizeof(path)));
	}
	if (o.list)
		list_totals(&o);
	wd_alg_async_fini();
	return exit_code;
}

int wf_tools_gzip_main(int argc, char **argv)
{
	return run(argc, argv, (struct wf_gzip_options){ 0 });
}

int wf_tools_gunzip_main(int argc, char **argv)
{
	return run(argc, argv, (struct wf_gzip_options){ .decompress = true });
}

int wf_tools_zcat_main(int argc, char **argv)
{
	return run(argc, argv,
		   (struct wf_gzip_options){ .decompress = true,
					     .to_stdout = true,
					     .keep = true });
}

/* As igzip: keeps its input, and has the levels 0 to 3. */
int wf_tools_igzip_main(int argc, char **argv)
{
	return run(argc, argv,
		   (struct wf_gzip_options){ .keep = true, .igzip = true });
}
