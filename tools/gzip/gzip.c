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

static void worse(int code)
{
	/* An error outweighs a warning. */
	if (exit_code != FAILED && code)
		exit_code = code;
}

void wf_tools_gzip_say(const struct wf_gzip_io *io, const char *text)
{
	fprintf(stderr, "weft %s: %s: %s\n",
		io->options->decompress ? "gunzip" : "gzip", io->name, text);
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
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static bool ends_with(const char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);

	return n > s && !strcmp(name + n - s, suffix);
}

/* The name of the output; false with a word why not. */
static bool output_name(const struct wf_gzip_options *o, const char *name,
			char *out, size_t room)
{
	static const char *const ends[][2] = {
		{ ".gz", "" }, { "-gz", "" },	   { ".z", "" },
		{ "-z", "" },  { ".tgz", ".tar" }, { ".taz", ".tar" },
	};

	if (!o->decompress) {
		if (ends_with(name, o->suffix) && !o->force) {
			if (!o->quiet)
				fprintf(stderr,
					"weft gzip: %s already has %s suffix -- "
					"unchanged\n",
					name, o->suffix);
			return false;
		}
		return (size_t)snprintf(out, room, "%s%s", name, o->suffix) <
		       room;
	}
	if (ends_with(name, o->suffix)) {
		snprintf(out, room, "%.*s",
			 (int)(strlen(name) - strlen(o->suffix)), name);
		return true;
	}
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (!ends_with(name, ends[i][0]))
			continue;
		snprintf(out, room, "%.*s%s",
			 (int)(strlen(name) - strlen(ends[i][0])), name,
			 ends[i][1]);
		return true;
	}
	if (!o->quiet)
		fprintf(stderr, "weft gunzip: %s: unknown suffix -- ignored\n",
			name);
	return false;
}

static void map_input(struct wf_gzip_io *io, const struct stat *st)
{
	off_t at = lseek(io->in, 0, SEEK_CUR);
	void *map;

	if (!S_ISREG(st->st_mode) || at != 0 || st->st_size <= 0)
		return;
	map = mmap(NULL, (size_t)st->st_size, PROT_READ, MAP_PRIVATE, io->in,
		   0);
	if (map == MAP_FAILED)
		return;
	madvise(map, (size_t)st->st_size, MADV_SEQUENTIAL);
	io->map = map;
	io->map_len = (uint64_t)st->st_size;
}

static void report(const struct wf_gzip_io *io, uint64_t ns)
{
	const struct wf_gzip_options *o = io->options;
	uint64_t plain = o->decompress ? io->total_out : io->total_in;
	uint64_t packed = o->decompress ? io->total_in : io->total_out;
	double saved =
		plain ? 100.0 - 100.0 * (double)packed / (double)plain : 0;

	if (o->verbose)
		fprintf(stderr, "%s:\t%5.1f%%%s\n", io->name, saved,
			o->test ? " OK" : "");
	if (o->stats)
		fprintf(stderr,
			"%s: %llu bytes in, %llu out, %.3f s, %.1f MB/s of plain "
			"data, driver %s, %u threads, %u restart points\n",
			io->name, (unsigned long long)io->total_in,
			(unsigned long long)io->total_out, (double)ns / 1e9,
			ns ? (double)plain * 1e3 / (double)ns : 0,
			io->driver ? io->driver : "none", o->threads,
			io->points);
}

static int work(struct wf_gzip_io *io)
{
	uint64_t begin = wf_base_clock_ns();
	struct stat st;
	int ret;

	if (!fstat(io->in, &st))
		map_input(io, &st);
	ret = io->options->decompress ? wf_tools_gzip_unpack(io) :
					wf_tools_gzip_pack(io);
	if (io->map)
		munmap((void *)(uintptr_t)io->map, (size_t)io->map_len);
	worse(ret ? FAILED : OK);
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

static void list_file(const struct wf_gzip_options *o, const char *name)
{
	static bool titled;
	struct wf_gzip_options quiet = *o;
	struct wf_gzip_io io = { .options = &quiet, .name = name, .out = -1 };
	char plain[4096];

	quiet.verbose = false;
	quiet.stats = false;
	quiet.decompress = true;
	io.in = open(name, O_RDONLY | O_CLOEXEC);
	if (io.in < 0) {
		wf_tools_gzip_say(&io, strerror(errno));
		worse(FAILED);
		return;
	}
	/* By reading it all: the length in the trailer is cut to 32 bits, and
	 * belongs to the last member alone. */
	if (!work(&io)) {
		if (!titled && !o->quiet)
			printf("%19s %19s  ratio uncompressed_name\n",
			       "compressed", "uncompressed");
		titled = true;
		quiet.quiet = true;
		if (!output_name(&quiet, name, plain, sizeof(plain)))
			snprintf(plain, sizeof(plain), "%s", name);
		printf("%19llu %19llu %5.1f%% %s\n",
		       (unsigned long long)io.total_in,
		       (unsigned long long)io.total_out,
		       io.total_out ? 100.0 - 100.0 * (double)io.total_in /
						      (double)io.total_out :
				      0,
		       plain);
	}
	close(io.in);
}

/* Opens what may be packed: plain files with one name, unless forced. */
static int open_input(const struct wf_gzip_options *o, struct wf_gzip_io *io,
		      struct stat *st)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

	if (!o->force && !o->to_stdout)
		flags |= O_NOFOLLOW;
	io->in = open(io->name, flags);
	if (io->in < 0 || fstat(io->in, st)) {
		wf_tools_gzip_say(io, strerror(errno));
		worse(FAILED);
		return -1;
	}
	if (S_ISREG(st->st_mode) || o->to_stdout || o->test) {
		if (st->st_nlink > 1 && !o->force && !o->keep && !o->test) {
			if (!o->quiet)
				wf_tools_gzip_say(io, "has another name too -- "
						      "unchanged; -f or -k");
			worse(WARNED);
			return -1;
		}
		return 0;
	}
	if (!o->quiet)
		wf_tools_gzip_say(io, "not a plain file -- ignored");
	worse(WARNED);
	return -1;
}

static void one_file(const struct wf_gzip_options *o, const char *name)
{
	struct wf_gzip_io io = {
		.options = o, .name = name, .in = -1, .out = -1
	};
	const char *base = strrchr(name, '/');
	struct wf_gzip_out out = { .fd = -1 };
	char path[4096];
	struct stat st;
	int ret;

	if (o->list) {
		list_file(o, name);
		return;
	}
	if (!o->to_stdout && !o->test &&
	    !output_name(o, name, path, sizeof(path))) {
		worse(WARNED);
		return;
	}
	if (open_input(o, &io, &st))
		goto done;
	if (!o->decompress && !o->no_name) {
		io.stored = base ? base + 1 : name;
		io.mtime = (uint32_t)st.st_mtim.tv_sec;
	}
	if (o->to_stdout) {
		io.out = STDOUT_FILENO;
		work(&io);
		goto done;
	}
	if (o->test) {
		work(&io);
		goto done;
	}
	ret = wf_tools_gzip_out_open(&out, path, o->force);
	if (ret) {
		fprintf(stderr, "weft %s: %s: %s%s\n",
			o->decompress ? "gunzip" : "gzip", path, strerror(-ret),
			ret == -EEXIST ? "; -f replaces it" : "");
		/* As gzip: a file that is there is a warning. */
		worse(ret == -EEXIST ? WARNED : FAILED);
		goto done;
	}
	io.out = out.fd;
	if (work(&io)) {
		wf_tools_gzip_out_drop(&out);
		goto done;
	}
	if (o->decompress && o->restore_name && io.mtime) {
		st.st_mtim.tv_sec = io.mtime;
		st.st_mtim.tv_nsec = 0;
	}
	ret = wf_tools_gzip_out_finish(&out, &st);
	if (ret) {
		fprintf(stderr, "weft %s: %s: %s\n",
			o->decompress ? "gunzip" : "gzip", path,
			strerror(-ret));
		worse(FAILED);
	} else if (!o->keep && unlink(name)) {
		wf_tools_gzip_say(&io, strerror(errno));
		worse(FAILED);
	}
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
				"weft gzip: %s is a directory -- "
				"ignored; -r goes into it\n",
				name);
		worse(WARNED);
		return;
	}
	dir = opendir(name);
	if (!dir) {
		fprintf(stderr, "weft gzip: %s: %s\n", name, strerror(errno));
		worse(FAILED);
		return;
	}
	while ((entry = readdir(dir))) {
		const char *n = entry->d_name;

		if (!strcmp(n, ".") || !strcmp(n, ".."))
			continue;
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", name, n) >=
		    sizeof(path))
			continue;
		/* What this run writes may turn up in the listing. */
		if (lstat(path, &st) || S_ISDIR(st.st_mode) ||
		    ends_with(n, o->suffix) == o->decompress)
			walk(o, path);
	}
	closedir(dir);
}

static void standard(const struct wf_gzip_options *o)
{
	struct wf_gzip_io io = { .options = o,
				 .name = "standard input",
				 .in = STDIN_FILENO,
				 .out = o->test || o->list ? -1 :
							     STDOUT_FILENO };

	if (!o->force && !o->test && !o->list &&
	    isatty(o->decompress ? STDIN_FILENO : STDOUT_FILENO)) {
		fprintf(stderr,
			"weft gzip: compressed data is not %s a "
			"terminal; -f if you mean it\n",
			o->decompress ? "read from" : "written to");
		worse(FAILED);
		return;
	}
	work(&io);
}

static int run(int argc, char **argv, bool decompress)
{
	struct wf_gzip_options o = { .decompress = decompress };
	int ret = wf_tools_gzip_options(&o, argc, argv);

	if (ret >= 0)
		return ret;
	exit_code = OK;
	wf_tools_gzip_out_catch_signals();
	if (optind == argc)
		standard(&o);
	for (int i = optind; i < argc; i++) {
		if (!strcmp(argv[i], "-"))
			standard(&o);
		else
			walk(&o, argv[i]);
	}
	wd_alg_async_fini();
	return exit_code;
}

int wf_tools_gzip_main(int argc, char **argv)
{
	return run(argc, argv, false);
}

int wf_tools_gunzip_main(int argc, char **argv)
{
	return run(argc, argv, true);
}
