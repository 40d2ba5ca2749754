/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft gzip` and `weft gunzip`: what their files share.
 */
#ifndef WF_TOOLS_GZIP_H
#define WF_TOOLS_GZIP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#define WF_GZIP_TRAILER 8 /* checksum and length */

int wf_tools_gzip_main(int argc, char **argv);
int wf_tools_gunzip_main(int argc, char **argv);
/* Called by other programs' names: the behaviour that users of those rely
 * on. */
int wf_tools_zcat_main(int argc, char **argv);
int wf_tools_igzip_main(int argc, char **argv);

struct wf_gzip_options {
	bool decompress;
	bool to_stdout;
	bool keep;
	bool force;
	bool list;
	bool test;
	bool recursive;
	bool quiet;
	bool verbose;
	bool no_name;	   /* -n: neither name nor time */
	bool restore_name; /* -N when unpacking */
	bool stats;
	bool rsyncable;	   /* where blocks begin depends on the data alone */
	bool reproducible; /* the same bytes from every machine */
	bool make_index;   /* beside the file */
	bool range;	   /* only these bytes, the last one not */
	uint64_t range_from;
	uint64_t range_to;
	bool igzip; /* levels as igzip has them */
	int level;  /* 0 to 9, or 12 */
	unsigned int threads;
	const char *driver;
	const char *suffix;
};

/* Where the bytes of one file come from and go to. */
struct wf_gzip_io {
	const struct wf_gzip_options *options;
	const char *name;   /* for messages */
	const char *stored; /* goes into the header, NULL: none */
	uint32_t mtime;	    /* into or from the header */
	int in;
	int out;	    /* -1: nowhere (-t) */
	uint64_t size;	    /* of the input, 0 if nobody knows */
	const uint8_t *map; /* all of it, NULL if it must be read */
	uint64_t total_in;  /* results */
	uint64_t total_out;
	const char *driver;  /* the last one used */
	unsigned int points; /* restart points written or used */
	unsigned int ahead;  /* pieces unpacked before their turn */
	uint32_t check;	     /* of the last member */
	size_t around;	     /* bytes of the first header and of a trailer */
	const char *output;  /* the name of the output, NULL: standard output */
	atomic_int full;     /* errno: the output could not be written; 0 */
	bool go_on;	     /* it failed in a way that ends only this file */
	bool garbage;	     /* something that is no gzip came after */
	bool as_is;	     /* what is no gzip goes through as it is */
};

/* 0, or -errno; said why on standard error. */
int wf_tools_gzip_pack(struct wf_gzip_io *io);
int wf_tools_gzip_unpack(struct wf_gzip_io *io);

/* Writes all of it; -errno. */
int wf_tools_gzip_write(struct wf_gzip_io *io, const void *data, size_t len);
/* The same at a place of the file; it counts nothing, so any thread may call it. */
int wf_tools_gzip_write_at(struct wf_gzip_io *io, const uint8_t *data,
			   size_t len, off_t at);
/* How it was called: "weft gzip", or the name of a link to it. */
const char *wf_tools_gzip_program(void);
/* One line about this file, or about its output if that could not be written:
 * "weft gzip: name: text". */
void wf_tools_gzip_say(const struct wf_gzip_io *io, const char *text);

/* Says why no driver, or not the one that was asked for, does a file.
 * Static. */
const char *wf_tools_gzip_driver_why(const struct wf_gzip_options *o);

/* Called now and then; draws a bar if standard error is a terminal. */
void wf_tools_gzip_progress(const struct wf_gzip_io *io, uint64_t done);
void wf_tools_gzip_progress_end(void);

bool wf_tools_gzip_name_ends(const char *name, const char *suffix);
/* The name of the output; false, with a message, if there is none. */
bool wf_tools_gzip_name_output(const struct wf_gzip_options *o,
			       const char *name, char *out, size_t room);
/* @path becomes the name in the header of the file, if it has one. */
void wf_tools_gzip_name_stored(int fd, const char *input, char *path,
			       size_t room);
/* The file that @name means: as gunzip, also without its suffix. */
const char *wf_tools_gzip_name_find(const struct wf_gzip_options *o,
				    const char *name, char *out, size_t room);

/* Output files that vanish unless they are finished. */
struct wf_gzip_out {
	int fd;
	char path[4096];
	bool named; /* it has its name already and must lose it on failure */
	bool force; /* it may take the place of another */
};

int wf_tools_gzip_out_open(struct wf_gzip_out *out, const char *path,
			   bool force);
/* Gives it the input's metadata and its name. -errno. */
int wf_tools_gzip_out_finish(struct wf_gzip_out *out, const struct stat *like);
void wf_tools_gzip_out_drop(struct wf_gzip_out *out);
/* Signals that end the program take the unfinished file along. */
void wf_tools_gzip_out_catch_signals(void);

#endif
