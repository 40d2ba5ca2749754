/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compresses a file into memory by Warpdrive, decompresses it again, and
 * prints how small it became. A gzip stream: gzip could read it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/wd_comp.h>

static void *read_file(const char *name, size_t *len)
{
	FILE *in = fopen(name, "rb");
	char *data = NULL;
	long end;

	if (!in)
		return NULL;
	if (!fseek(in, 0, SEEK_END) && (end = ftell(in)) >= 0 &&
	    (data = malloc((size_t)end + 1))) {
		rewind(in);
		*len = fread(data, 1, (size_t)end, in);
	}
	fclose(in);
	return data;
}

int main(int argc, char **argv)
{
	/* Zeroed, then set: that is how a context begins. */
	struct wd_comp_ctx ctx = {
		.alg_type = WD_COMP_GZIP,
		.comp_level = 6,
		.stream_mode = WD_COMP_STATELESS,
		.flush_type = WD_COMP_FINISH,
	};
	size_t len = 0, taken, packed_len, plain_len;
	void *data, *packed, *plain;
	int err;

	data = argc == 2 ? read_file(argv[1], &len) : NULL;
	if (!data) {
		fprintf(stderr, "usage: compress FILE (that can be read)\n");
		return 2;
	}
	packed_len = wd_alg_deflate_bound(&ctx, len);
	packed = malloc(packed_len);
	plain = malloc(len + 1);
	if (!packed || !plain)
		return 1;

	/* In: how much there is. Out: how much was taken, and made. */
	taken = len;
	err = wd_alg_deflate(&ctx, data, &taken, packed, &packed_len);
	if (err) {
		fprintf(stderr, "compress: %s\n", strerror(-err));
		return 1;
	}
	taken = packed_len;
	plain_len = len + 1;
	err = wd_alg_inflate(&ctx, packed, &taken, plain, &plain_len);
	if (err || plain_len != len || memcmp(plain, data, len) != 0) {
		fprintf(stderr, "compress: not the same again: %s\n",
			strerror(-err));
		return 1;
	}
	wd_alg_end(&ctx);
	printf("%zu bytes became %zu, and the same again\n", len, packed_len);
	free(plain);
	free(packed);
	free(data);
	return 0;
}
