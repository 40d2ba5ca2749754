/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of algorithms, and those that every device has: enough to test all
 * of a channel without any library.
 */
#include "devd/alg.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "devd/comp.h"

/* -- crc32 ----------------------------------------------------------------- */

#define CRC_POLYNOMIAL 0xedb88320u /* reflected, as in gzip: RFC 1952, 8 */

static uint32_t crc_table[256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void make_crc_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? CRC_POLYNOMIAL : 0);
		crc_table[i] = crc;
	}
}

static int run_crc32(struct wf_devd_work *work)
{
	uint32_t crc = ~work->checksum;

	pthread_once(&crc_once, make_crc_table);
	for (size_t i = 0; i < work->in_len; i++)
		crc = crc >> 8 ^ crc_table[(crc ^ work->in[i]) & 0xff];
	work->checksum = ~crc;
	work->consumed = work->in_len;
	return 0;
}

/* -- copy, nop ------------------------------------------------------------- */

static int run_copy(struct wf_devd_work *work)
{
	if (work->in_len > work->out_len)
		return ENOSPC;
	if (work->in != work->out)
		memmove(work->out, work->in, work->in_len);
	work->consumed = work->produced = work->in_len;
	return 0;
}

static int run_nop(struct wf_devd_work *work)
{
	(void)work;
	return 0;
}

/* -- the table ------------------------------------------------------------- */

static const struct wf_devd_alg table[WF_ACCEL_ALGS] = {
	[WF_ACCEL_NOP] = { .name = "nop", .run = run_nop },
	[WF_ACCEL_COPY] = {
		.name = "copy",
		.flags = WF_DEVD_ALG_IN | WF_DEVD_ALG_OUT | WF_DEVD_ALG_PIECES,
		.run = run_copy,
	},
	[WF_ACCEL_CRC32] = {
		.name = "crc32",
		.flags = WF_DEVD_ALG_IN | WF_DEVD_ALG_PIECES,
		.run = run_crc32,
	},
	[WF_ACCEL_DEFLATE] = {
		.name = "deflate",
		.flags = WF_DEVD_ALG_IN | WF_DEVD_ALG_OUT | WF_DEVD_ALG_STREAM,
		.run = wf_devd_comp_deflate,
	},
	[WF_ACCEL_INFLATE] = {
		.name = "inflate",
		.flags = WF_DEVD_ALG_IN | WF_DEVD_ALG_OUT | WF_DEVD_ALG_STREAM,
		.run = wf_devd_comp_inflate,
	},
};

const struct wf_devd_alg *wf_devd_alg_get(unsigned int alg)
{
	return alg < WF_ACCEL_ALGS && table[alg].run ? &table[alg] : NULL;
}

uint32_t wf_devd_alg_bit(const char *name)
{
	for (unsigned int i = 0; i < WF_ACCEL_ALGS; i++) {
		if (table[i].run && !strcmp(table[i].name, name))
			return 1u << i;
	}
	return 0;
}

uint32_t wf_devd_alg_all(void)
{
	uint32_t all = 0;

	for (unsigned int i = 0; i < WF_ACCEL_ALGS; i++)
		all |= table[i].run ? 1u << i : 0;
	return all;
}

void wf_devd_alg_names(uint32_t algs, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < WF_ACCEL_ALGS; i++) {
		if (!(algs >> i & 1) || !table[i].run)
			continue;
		at += (size_t)snprintf(text + at, size - at, "%s%s",
				       at ? "\n" : "", table[i].name);
		if (at >= size)
			return;
	}
}
