/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of fixed blocks (RFC 1951, 3.2.6), as constants: nothing is built
 * when such a block begins. The macros count through the indices of a table;
 * they pass on the code, which is the index with its bits reversed.
 */
#include "deflate/table.h"

#define BITS(n) ((uint32_t)(n)*0x101u)
#define LITERAL(n, bits)                                                       \
	(WF_TABLE_LITERAL | (uint32_t)((n)&0xff) << 16 | BITS(bits))
#define BAD(bits) (WF_TABLE_OTHER | WF_TABLE_BAD | BITS(bits))
#define END(bits) (WF_TABLE_OTHER | BITS(bits))

/* Code @n of a length or distance: extra bits, least value. */
#define LEN_EXTRA(n) ((n) < 8 || (n) > 27 ? 0 : (n) / 4 - 1)
#define LEN_BASE(n)                                                            \
	((n) < 8  ? (n) + 3 :                                                  \
	 (n) > 27 ? 258 :                                                      \
		    ((4 + (n) % 4) << LEN_EXTRA(n)) + 3)
#define LENGTH(n, bits)                                                        \
	((uint32_t)LEN_BASE(n) << 16 | (BITS(bits) + LEN_EXTRA(n)))
#define DIST_EXTRA(n) ((n) < 4 ? 0 : (n) / 2 - 1)
#define DIST_BASE(n) ((n) < 4 ? (n) + 1 : ((2 + (n) % 2) << DIST_EXTRA(n)) + 1)
#define DISTANCE(n)                                                            \
	((n) > 29 ?                                                            \
		 BAD(5) :                                                      \
		 ((uint32_t)DIST_BASE(n) << 16 | (BITS(5) + DIST_EXTRA(n))))

/* The symbol whose code begins the 9 bits @c, highest bit first. */
#define LIT(c)                                                                 \
	((c) < 4   ? END(7) :                                                  \
	 (c) < 96  ? LENGTH((c) / 4 - 1, 7) :                                  \
	 (c) < 384 ? LITERAL((c) / 2 - 48, 8) :                                \
	 (c) < 396 ? LENGTH((c) / 2 - 192 + 23, 8) :                           \
	 (c) < 400 ? BAD(8) :                                                  \
		     LITERAL((c)-400 + 144, 9))

#define LIT2(c) LIT(c), LIT((c) + 256)
#define LIT4(c) LIT2(c), LIT2((c) + 128)
#define LIT8(c) LIT4(c), LIT4((c) + 64)
#define LIT16(c) LIT8(c), LIT8((c) + 32)
#define LIT32(c) LIT16(c), LIT16((c) + 16)
#define LIT64(c) LIT32(c), LIT32((c) + 8)
#define LIT128(c) LIT64(c), LIT64((c) + 4)
#define LIT256(c) LIT128(c), LIT128((c) + 2)

#define DIST2(c) DISTANCE(c), DISTANCE((c) + 16)
#define DIST4(c) DIST2(c), DIST2((c) + 8)
#define DIST8(c) DIST4(c), DIST4((c) + 4)
#define DIST16(c) DIST8(c), DIST8((c) + 2)
#define DIST32 DIST16(0), DIST16(1)

#define LIT_ROOT 9

static const uint32_t lit[1 << LIT_ROOT] = { LIT256(0), LIT256(1) };
static const uint32_t dist[1 << WF_TABLE_DIST_BITS] = {
	DIST32, DIST32, DIST32, DIST32, DIST32, DIST32, DIST32, DIST32,
};

const struct wf_table_pair wf_deflate_fixed = {
	.lit = lit,
	.dist = dist,
	.lit_bits = LIT_ROOT,
};
