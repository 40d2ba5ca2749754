/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compresses standard input to standard output with zlib, as gzip would.
 * Nothing in here knows of weft: LD_PRELOAD=libweft-z.so.1 makes it faster.
 */
#include <stdio.h>
#include <zlib.h>

int main(void)
{
	static unsigned char in[65536], out[65536];
	z_stream z = { .zalloc = Z_NULL };
	int flush, ret;

	/* 16: a gzip header and trailer */
	if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		return 1;
	do {
		z.avail_in = (uInt)fread(in, 1, sizeof(in), stdin);
		z.next_in = in;
		flush = feof(stdin) ? Z_FINISH : Z_NO_FLUSH;
		if (ferror(stdin))
			return 1;
		do {
			size_t made;

			z.next_out = out;
			z.avail_out = sizeof(out);
			ret = deflate(&z, flush);
			made = sizeof(out) - z.avail_out;
			if (ret == Z_STREAM_ERROR ||
			    fwrite(out, 1, made, stdout) != made)
				return 1;
		} while (!z.avail_out);
	} while (flush != Z_FINISH);
	deflateEnd(&z);
	return fflush(stdout) ? 1 : 0;
}
