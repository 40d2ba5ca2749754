/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decode tables of deflate (RFC 1951) and how they are made from the lengths
 * of codes. A set of lengths is accepted if and only if zlib accepts it: no
 * set may be over-subscribed, an incomplete one only has a single code of one
 * bit, and distances may have no code at all.
 *
 * A table has a root, indexed by the next bits of the input; codes longer
 * than that go on in subtables behind it. An entry is 32 bits:
 *
 *	0-7	bits to drop: those of the code and of what follows it as extra
 *		bits; of a subtable's pointer: the root's
 *	8-13	bits of the code alone (without those that the root took); of a
 *		subtable's pointer: bits that index the subtable
 *	14	pointer to a subtable
 *	15	no literal, length or distance: pointer, end of block, or a code
 *		that must not occur
 *	16-30	literal, or least length or distance, or where the subtable is
 *	31	literal
 *
 * So a length or distance is its bits 16-30 plus the extra bits, which are the
 * bits from the code's end (8-13) up to those to drop (0-7).
 */
#ifndef WF_DEFLATE_TABLE_H
#define WF_DEFLATE_TABLE_H

#include <stdint.h>

#define WF_TABLE_LITS 286    /* codes that a dynamic block may have */
#define WF_TABLE_DISTS 30    /* ... for distances */
#define WF_TABLE_PRES 19     /* ... for the lengths of codes */
#define WF_TABLE_MAX_BITS 15 /* of a code; 7 of those for lengths */

#define WF_TABLE_LIT_BITS 11 /* root of the table for literals, at most */
#define WF_TABLE_DIST_BITS 8 /* root of the table for distances, always */
#define WF_TABLE_PRE_BITS 7
/* The most that 288 codes of 15 bits can need with such a root, and 32. */
#define WF_TABLE_LIT_SIZE 2342
#define WF_TABLE_DIST_SIZE 402

#define WF_TABLE_SUB 0x4000u
#define WF_TABLE_OTHER 0x8000u
#define WF_TABLE_LITERAL 0x80000000u
/* Flag of an entry with WF_TABLE_OTHER and without WF_TABLE_SUB: a code that must
 * not occur. Without this flag such an entry is the end of the block. */
#define WF_TABLE_BAD 0x10000u

static inline unsigned int wf_table_drop(uint32_t entry)
{
	return entry & 0xff;
}

static inline unsigned int wf_table_code(uint32_t entry)
{
	return entry >> 8 & 0x3f;
}

static inline unsigned int wf_table_base(uint32_t entry)
{
	return entry >> 16 & 0x7fff;
}

/* The length or distance of an entry; @bits are the input from its code on,
 * behind the root's bits if the entry is a subtable's. */
static inline unsigned int wf_table_value(uint32_t entry, uint64_t bits)
{
	uint64_t own = bits & (((uint64_t)1 << wf_table_drop(entry)) - 1);

	return wf_table_base(entry) +
	       (unsigned int)(own >> wf_table_code(entry));
}

/* Where the entry for @bits is that a pointer leads to; @bits are those behind
 * the root's. */
static inline unsigned int wf_table_sub(uint32_t pointer, uint64_t bits)
{
	return wf_table_base(pointer) +
	       (unsigned int)(bits &
			      (((uint64_t)1 << wf_table_code(pointer)) - 1));
}

/* The two tables that a block is decoded with. */
struct wf_table_pair {
	const uint32_t *lit;
	const uint32_t *dist;  /* root of WF_TABLE_DIST_BITS */
	unsigned int lit_bits; /* root of lit */
};

/* The tables of fixed blocks, which are constants. */
extern const struct wf_table_pair wf_deflate_fixed;

/*
 * Make a table from the lengths of @count codes (at most 288 and 32), each at
 * most WF_TABLE_MAX_BITS. 0, or -EBADMSG where zlib refuses the set. The caller
 * must check that there is a code for the end of the block.
 */
int wf_deflate_table_lit(uint32_t table[WF_TABLE_LIT_SIZE],
			 unsigned int *root_bits, const uint8_t *lens,
			 unsigned int count);
int wf_deflate_table_dist(uint32_t table[WF_TABLE_DIST_SIZE],
			  const uint8_t *lens, unsigned int count);
/* For WF_TABLE_PRES lengths of at most 7 bits; bits 16-30 are the symbol, extra
 * bits say how often it is repeated. All lengths may be 0: then each bit reads
 * as the symbol 0, as with zlib. */
int wf_deflate_table_pre(uint32_t table[1 << WF_TABLE_PRE_BITS],
			 const uint8_t lens[WF_TABLE_PRES]);

/* The same two where the used symbols are known: @used of the @count lengths
 * are not 0, and @syms are their numbers in ascending order. */
int wf_deflate_table_lit_of(uint32_t table[WF_TABLE_LIT_SIZE],
			    unsigned int *root_bits, const uint8_t *lens,
			    const uint16_t *syms, unsigned int used);
int wf_deflate_table_dist_of(uint32_t table[WF_TABLE_DIST_SIZE],
			     const uint8_t *lens, const uint16_t *syms,
			     unsigned int used);

/* How many entries zlib's own table would have, whose root has @root_bits at
 * most; 0 if zlib refuses the set. @pre: the set is one for lengths of codes,
 * which may not be incomplete. */
unsigned int wf_deflate_table_zlib_size(const uint8_t *lens, unsigned int count,
					unsigned int root_bits, int pre);

#endif
