/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream being decompressed: raw deflate (RFC 1951), zlib (RFC 1950) or gzip
 * (RFC 1952). It can stop and go on at every byte of input and of output, and
 * it answers as zlib does: the same results, texts, counts, bits left over and
 * window after each call. It changes no byte behind the output that it
 * reports, and it reads no byte behind the end of its stream for good.
 *
 * A stream is plain memory of some 200 bytes; the codes of a dynamic block are
 * apart from it, because who reads headers only has no use for them. Nothing
 * but the window is allocated here, and that when the first call with output
 * returns and the stream goes on.
 */
#ifndef WF_DEFLATE_INFLATE_H
#define WF_DEFLATE_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/wd_comp_drv.h>

#include "deflate/table.h"

enum wf_inflate_ret {
	WF_INFLATE_OK,
	WF_INFLATE_END,
	WF_INFLATE_NEED_DICT,
	WF_INFLATE_NO_PROGRESS, /* or not at its end, with WF_INFLATE_FINISH */
	WF_INFLATE_BAD_DATA,	/* msg says what is wrong */
	WF_INFLATE_NO_MEMORY,
	WF_INFLATE_BAD_CALL,
};

enum wf_inflate_flush {
	WF_INFLATE_GO,
	WF_INFLATE_FINISH, /* says: the end should come in this call */
	WF_INFLATE_BLOCK,  /* stop at the next border between blocks */
	WF_INFLATE_TREES,  /* and behind each block's header */
};

/* The deflate data may have one of these around it. */
enum wf_inflate_wrap {
	WF_INFLATE_RAW = 0,
	WF_INFLATE_ZLIB = 1,
	WF_INFLATE_GZIP = 2,
	WF_INFLATE_EITHER = WF_INFLATE_ZLIB | WF_INFLATE_GZIP,
	WF_INFLATE_CHECK = 4, /* the checksum is compared */
};

/* Where a stream is. The order is zlib's: some questions compare it. */
enum wf_inflate_mode {
	WF_INFLATE_HEAD,
	WF_INFLATE_GZ_FLAGS,
	WF_INFLATE_GZ_TIME,
	WF_INFLATE_GZ_OS,
	WF_INFLATE_GZ_EXTRA_LEN,
	WF_INFLATE_GZ_EXTRA,
	WF_INFLATE_GZ_NAME,
	WF_INFLATE_GZ_COMMENT,
	WF_INFLATE_GZ_CRC,
	WF_INFLATE_DICT_ID,
	WF_INFLATE_DICT,
	WF_INFLATE_TYPE,     /* between blocks: may stop here */
	WF_INFLATE_TYPE_DO,  /* ... and has done so */
	WF_INFLATE_STORED,   /* before the lengths of a stored block */
	WF_INFLATE_COPY_NEW, /* behind them: may stop here */
	WF_INFLATE_COPY,
	WF_INFLATE_TABLE, /* before the counts of a dynamic block */
	WF_INFLATE_PRE_LENS,
	WF_INFLATE_LENS,
	WF_INFLATE_CODE_NEW, /* behind the header: may stop here */
	WF_INFLATE_CODE,     /* before a literal or length */
	WF_INFLATE_LENGTH_EXTRA,
	WF_INFLATE_DISTANCE,
	WF_INFLATE_DISTANCE_EXTRA,
	WF_INFLATE_MATCH,   /* has length and distance */
	WF_INFLATE_LITERAL, /* has a literal */
	WF_INFLATE_SUM,	    /* before the checksum */
	WF_INFLATE_SIZE,    /* before gzip's length */
	WF_INFLATE_DONE,
	WF_INFLATE_BAD,
	WF_INFLATE_LOST, /* no memory */
	WF_INFLATE_SYNC, /* looking for a flush */
};

/* Which tables zlib would have built last. */
enum wf_inflate_tables {
	WF_INFLATE_TABLES_NONE,
	WF_INFLATE_TABLES_PRE,
	WF_INFLATE_TABLES_LIT,
	WF_INFLATE_TABLES_BOTH,
};

/* Where the parts of a gzip header go. The layout is that of zlib's
 * gz_header, so that the caller's can be filled in as it comes. */
struct wf_inflate_head {
	int text;
	unsigned long time;
	int xflags;
	int os;
	uint8_t *extra;
	unsigned int extra_len;
	unsigned int extra_max;
	uint8_t *name;
	unsigned int name_max;
	uint8_t *comment;
	unsigned int comment_max;
	int hcrc;
	int done; /* 1: read, -1: there is none, 0: not yet */
};

/* The codes of a dynamic block. */
struct wf_inflate_codes {
	uint8_t pre_lens[WF_TABLE_PRES];
	uint8_t lens[WF_TABLE_LITS + WF_TABLE_DISTS];
	/* Until the lengths are read, dist is the table for reading them. */
	uint32_t lit[WF_TABLE_LIT_SIZE];
	uint32_t dist[WF_TABLE_DIST_SIZE];
};

struct wf_inflate {
	struct wd_comp_mem mem;
	struct wf_inflate_codes *codes;
	enum wf_inflate_mode mode;
	uint8_t wrap; /* enum wf_inflate_wrap */
	bool last;    /* the block is the last one */
	bool has_dict;
	bool fixed; /* the block's tables are the constant ones */
	int flags;  /* of the gzip header; 0: zlib's; -1: none read */
	uint32_t check;
	uint64_t total; /* output */
	/* This is what the last call found out, for the caller to pass on. */
	const char *msg; /* NULL: nothing new */
	uint32_t adler;
	bool adler_new;
	bool counted; /* not so when a dictionary is asked for, as in zlib */

	uint64_t hold; /* input that is taken and not yet used */
	unsigned int bits;

	uint8_t *window; /* circular */
	unsigned int wbits;
	unsigned int wsize; /* 0: not in use */
	unsigned int whave;
	unsigned int wnext;

	unsigned int length;   /* of a match or stored block; a literal */
	unsigned int distance; /* of a match */
	unsigned int extra;    /* bits that follow */
	unsigned int was;      /* length of the match when it began */
	int back;	       /* bits of the symbol so far, -1: in none */

	unsigned int nlen;
	unsigned int ndist;
	unsigned int npre;
	unsigned int have; /* lengths read; bytes of a flush found */
	unsigned int lit_bits;
	/* For wf_deflate_inflate_codes_used(). */
	enum wf_inflate_tables tables;
	unsigned int tables_nlen;
	unsigned int tables_ndist;
	struct wf_inflate_head *head;
};

/* Input and output of a call; advanced by it. */
struct wf_inflate_io {
	const uint8_t *in;
	size_t in_len;
	uint8_t *out;
	size_t out_len;
};

/* @codes are the caller's, and need no value; NULL: only the header is
 * read, by wf_deflate_head_read(). @mem is kept, for the window. @wbits: log2
 * of the window, 8 to 15, or 0: the header says it. */
void wf_deflate_inflate_init(struct wf_inflate *s,
			     struct wf_inflate_codes *codes,
			     struct wd_comp_mem mem, int wrap,
			     unsigned int wbits);
/* Changes the format and the size of the window, then resets the stream. */
void wf_deflate_inflate_reset2(struct wf_inflate *s, int wrap,
			       unsigned int wbits);
void wf_deflate_inflate_reset(struct wf_inflate *s);
/* Resets the stream and keeps the window. */
void wf_deflate_inflate_reset_keep(struct wf_inflate *s);
/* Gives the window back; @s itself is the caller's. */
void wf_deflate_inflate_end(struct wf_inflate *s);
/* Makes @to a second stream like @from, with codes of its own.
 * WF_INFLATE_NO_MEMORY: @to is not changed. */
enum wf_inflate_ret wf_deflate_inflate_copy(struct wf_inflate *to,
					    struct wf_inflate_codes *codes,
					    const struct wf_inflate *from,
					    struct wd_comp_mem mem);

/* Reads the header and no more. 1: it is over, and *@used bytes of @in were
 * the rest of it; 0: all of @in was read, and it goes on; -EBADMSG: as s->msg
 * says, or it asks for a dictionary. */
int wf_deflate_head_read(struct wf_inflate *s, const uint8_t *in, size_t len,
			 size_t *used);

enum wf_inflate_ret wf_deflate_inflate_run(struct wf_inflate *s,
					   struct wf_inflate_io *io,
					   enum wf_inflate_flush flush);
/* Returns the value that zlib puts into data_type after a call. */
int wf_deflate_inflate_data_type(const struct wf_inflate *s);

/* As zlib's functions of such names. The window's bytes go to @dict, if that
 * is not NULL; returns how many there are. */
unsigned int wf_deflate_inflate_get_dict(const struct wf_inflate *s,
					 uint8_t *dict);
enum wf_inflate_ret wf_deflate_inflate_set_dict(struct wf_inflate *s,
						const uint8_t *dict,
						size_t len);
enum wf_inflate_ret wf_deflate_inflate_prime(struct wf_inflate *s, int bits,
					     unsigned int value);
enum wf_inflate_ret wf_deflate_inflate_sync(struct wf_inflate *s,
					    struct wf_inflate_io *io);
bool wf_deflate_inflate_sync_point(const struct wf_inflate *s);
long wf_deflate_inflate_mark(const struct wf_inflate *s);
void wf_deflate_inflate_validate(struct wf_inflate *s, bool check);
unsigned long wf_deflate_inflate_codes_used(const struct wf_inflate *s);

#endif
