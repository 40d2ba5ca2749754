/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes decode tables. Symbols are sorted by the length of their codes; codes
 * are given out in that order, as numbers with their bits reversed, since the
 * input is read from the lowest bit on. The root grows by copying itself
 * whenever the length of codes grows: then each code is stored once, however
 * short it is. It must not trust the lengths beyond their range.
 */
#include "deflate/table.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define LITS_MOST 288
#define END_OF_BLOCK (WF_TABLE_OTHER)
#define BAD (WF_TABLE_OTHER | WF_TABLE_BAD)

#define LITERAL(n) (WF_TABLE_LITERAL | (uint32_t)(n) << 16)
#define LITERAL4(n) LITERAL(n), LITERAL(n + 1), LITERAL(n + 2), LITERAL(n + 3)
#define LITERAL16(n)                                                           \
	LITERAL4(n), LITERAL4(n + 4), LITERAL4(n + 8), LITERAL4(n + 12)
#define LITERAL64(n)                                                           \
	LITERAL16(n), LITERAL16(n + 16), LITERAL16(n + 32), LITERAL16(n + 48)
/* Least value and number of extra bits. */
#define VALUE(base, extra) ((uint32_t)(base) << 16 | (extra))

/* The value of an entry except the length of its code, which is added to both
 * its fields of bits. RFC 1951, 3.2.5; 286 and 287 must not occur. */
static const uint32_t lit_entries[LITS_MOST] = {
	LITERAL64(0),	LITERAL64(64), LITERAL64(128),
	LITERAL64(192), END_OF_BLOCK,  VALUE(3, 0),
	VALUE(4, 0),	VALUE(5, 0),   VALUE(6, 0),
	VALUE(7, 0),	VALUE(8, 0),   VALUE(9, 0),
	VALUE(10, 0),	VALUE(11, 1),  VALUE(13, 1),
	VALUE(15, 1),	VALUE(17, 1),  VALUE(19, 2),
	VALUE(23, 2),	VALUE(27, 2),  VALUE(31, 2),
	VALUE(35, 3),	VALUE(43, 3),  VALUE(51, 3),
	VALUE(59, 3),	VALUE(67, 4),  VALUE(83, 4),
	VALUE(99, 4),	VALUE(115, 4), VALUE(131, 5),
	VALUE(163, 5),	VALUE(195, 5), VALUE(227, 5),
	VALUE(258, 0),	BAD,	       BAD,
};

static const uint32_t dist_entries[32] = {
	VALUE(1, 0),
	VALUE(2, 0),
	VALUE(3, 0),
	VALUE(4, 0),
	VALUE(5, 1),
	VALUE(7, 1),
	VALUE(9, 2),
	VALUE(13, 2),
	VALUE(17, 3),
	VALUE(25, 3),
	VALUE(33, 4),
	VALUE(49, 4),
	VALUE(65, 5),
	VALUE(97, 5),
	VALUE(129, 6),
	VALUE(193, 6),
	VALUE(257, 7),
	VALUE(385, 7),
	VALUE(513, 8),
	VALUE(769, 8),
	VALUE(1025, 9),
	VALUE(1537, 9),
	VALUE(2049, 10),
	VALUE(3073, 10),
	VALUE(4097, 11),
	VALUE(6145, 11),
	VALUE(8193, 12),
	VALUE(12289, 12),
	VALUE(16385, 13),
	VALUE(24577, 13),
	BAD,
	BAD,
};

static const uint32_t pre_entries[WF_TABLE_PRES] = {
	VALUE(0, 0),  VALUE(1, 0),  VALUE(2, 0),  VALUE(3, 0),	VALUE(4, 0),
	VALUE(5, 0),  VALUE(6, 0),  VALUE(7, 0),  VALUE(8, 0),	VALUE(9, 0),
	VALUE(10, 0), VALUE(11, 0), VALUE(12, 0), VALUE(13, 0), VALUE(14, 0),
	VALUE(15, 0), VALUE(16, 2), VALUE(17, 3), VALUE(18, 7),
};

/* Adds a code's length to an entry. */
#define CODE_BITS(n) ((uint32_t)(n)*0x101u)

/* A set of codes: how many have each length, symbols in their order. */
struct set {
	uint16_t count[WF_TABLE_MAX_BITS + 1];
	uint16_t syms[LITS_MOST];
	unsigned int longest;
};

enum verdict { COMPLETE, SINGLE, EMPTY, REFUSED };

static enum verdict classify(struct set *set)
{
	unsigned int longest = WF_TABLE_MAX_BITS;
	uint32_t room = 1; /* codes of this length that are free */

	while (longest && !set->count[longest])
		longest--;
	set->longest = longest;
	if (!longest)
		return EMPTY;
	for (unsigned int len = 1; len <= longest; len++) {
		room <<= 1;
		if (set->count[len] > room)
			return REFUSED;
		room -= set->count[len];
	}
	return !room ? COMPLETE : longest == 1 ? SINGLE : REFUSED;
}

static enum verdict sort(struct set *set, const uint8_t *lens,
			 const uint16_t *syms, unsigned int used)
{
	uint16_t at[WF_TABLE_MAX_BITS + 1];
	enum verdict verdict;

	memset(set->count, 0, sizeof(set->count));
	for (unsigned int i = 0; i < used; i++)
		set->count[lens[syms[i]]]++;
	verdict = classify(set);
	if (verdict == REFUSED)
		return verdict;
	at[1] = 0;
	for (unsigned int len = 1; len < WF_TABLE_MAX_BITS; len++)
		at[len + 1] = (uint16_t)(at[len] + set->count[len]);
	for (unsigned int i = 0; i < used; i++)
		set->syms[at[lens[syms[i]]]++] = syms[i];
	return verdict;
}

/* The code after @code among those of @len bits, all reversed. The last one is
 * followed by 0. */
static inline unsigned int next_code(unsigned int code, unsigned int len)
{
	unsigned int zeros = code ^ ((1u << len) - 1);
	unsigned int top;

	if (!zeros)
		return 0;
	top = 1u << (31 - __builtin_clz(zeros));
	return (code & (top - 1)) | top;
}

/* How many bits index the subtable for codes that begin with @len bits; the
 * counts are of what is not yet in the table. */
static unsigned int sub_bits(const uint16_t *count, unsigned int root,
			     unsigned int len)
{
	unsigned int bits = len - root;
	int room = (1 << bits) - count[len];

	while (room > 0 && len < WF_TABLE_MAX_BITS) {
		bits++;
		len++;
		room = (room << 1) - count[len];
	}
	return bits;
}

/* Codes longer than the root; @code is the first of them. */
static void fill_subs(uint32_t *table, struct set *set, unsigned int root,
		      const uint32_t *entries, const uint16_t *sym,
		      unsigned int code)
{
	unsigned int mask = (1u << root) - 1, at = 1u << root, bits = 0;
	unsigned int begun = mask + 1; /* root index of the current one */

	for (unsigned int len = root + 1; len <= set->longest; len++) {
		while (set->count[len]) {
			uint32_t entry = entries[*sym] + CODE_BITS(len - root);

			if ((code & mask) != begun) {
				at += bits ? 1u << bits : 0;
				begun = code & mask;
				bits = sub_bits(set->count, root, len);
				table[begun] = (uint32_t)at << 16 |
					       WF_TABLE_SUB | WF_TABLE_OTHER |
					       (uint32_t)bits << 8 | root;
			}
			for (unsigned int i = code >> root; i < 1u << bits;
			     i += 1u << (len - root))
				table[at + i] = entry;
			code = next_code(code, len);
			set->count[len]--;
			sym++;
		}
	}
}

/* A complete set. */
static void fill(uint32_t *table, struct set *set, unsigned int root,
		 const uint32_t *entries)
{
	const uint16_t *sym = set->syms;
	unsigned int code = 0, len = 1, size;

	while (len < root && !set->count[len])
		len++;
	size = 1u << len; /* of the root so far */
	for (;;) {
		for (unsigned int n = set->count[len]; n; n--) {
			table[code] = entries[*sym++] + CODE_BITS(len);
			code = next_code(code, len);
		}
		if (len == root)
			break;
		memcpy(table + size, table, size * sizeof(*table));
		size <<= 1;
		len++;
	}
	if (set->longest > root)
		fill_subs(table, set, root, entries, sym, code);
}

/* No code, or a single one of one bit: the rest of the table is bad. */
static void fill_rest(uint32_t *table, const struct set *set, unsigned int root,
		      const uint32_t *entries, enum verdict verdict)
{
	uint32_t bad = BAD + CODE_BITS(1);

	for (unsigned int i = 0; i < 1u << root; i++)
		table[i] = verdict == EMPTY || i & 1 ?
				   bad :
				   entries[set->syms[0]] + CODE_BITS(1);
}

int wf_deflate_table_lit_of(uint32_t table[WF_TABLE_LIT_SIZE],
			    unsigned int *root_bits, const uint8_t *lens,
			    const uint16_t *syms, unsigned int used)
{
	enum verdict verdict;
	struct set set;

	verdict = sort(&set, lens, syms, used);
	if (verdict == REFUSED)
		return -EBADMSG;
	*root_bits = set.longest < WF_TABLE_LIT_BITS ? set.longest :
						       WF_TABLE_LIT_BITS;
	if (!*root_bits)
		*root_bits = 1;
	if (verdict == COMPLETE)
		fill(table, &set, *root_bits, lit_entries);
	else
		fill_rest(table, &set, *root_bits, lit_entries, verdict);
	return 0;
}

int wf_deflate_table_dist_of(uint32_t table[WF_TABLE_DIST_SIZE],
			     const uint8_t *lens, const uint16_t *syms,
			     unsigned int used)
{
	enum verdict verdict;
	struct set set;

	verdict = sort(&set, lens, syms, used);
	if (verdict == REFUSED)
		return -EBADMSG;
	if (verdict == COMPLETE)
		fill(table, &set, WF_TABLE_DIST_BITS, dist_entries);
	else
		fill_rest(table, &set, WF_TABLE_DIST_BITS, dist_entries,
			  verdict);
	return 0;
}

static unsigned int list_used(uint16_t *syms, const uint8_t *lens,
			      unsigned int count)
{
	unsigned int used = 0;

	for (unsigned int i = 0; i < count; i++) {
		syms[used] = (uint16_t)i;
		used += lens[i] != 0;
	}
	return used;
}

int wf_deflate_table_lit(uint32_t table[WF_TABLE_LIT_SIZE],
			 unsigned int *root_bits, const uint8_t *lens,
			 unsigned int count)
{
	uint16_t syms[LITS_MOST + 1];

	return wf_deflate_table_lit_of(table, root_bits, lens, syms,
				       list_used(syms, lens, count));
}

int wf_deflate_table_dist(uint32_t table[WF_TABLE_DIST_SIZE],
			  const uint8_t *lens, unsigned int count)
{
	uint16_t syms[LITS_MOST + 1];

	return wf_deflate_table_dist_of(table, lens, syms,
					list_used(syms, lens, count));
}

int wf_deflate_table_pre(uint32_t table[1 << WF_TABLE_PRE_BITS],
			 const uint8_t lens[WF_TABLE_PRES])
{
	uint16_t syms[WF_TABLE_PRES + 1];
	enum verdict verdict;
	struct set set;

	verdict = sort(&set, lens, syms, list_used(syms, lens, WF_TABLE_PRES));
	if (verdict == EMPTY) {
		for (unsigned int i = 0; i < 1u << WF_TABLE_PRE_BITS; i++)
			table[i] = VALUE(0, 0) + CODE_BITS(1);
		return 0;
	}
	if (verdict != COMPLETE)
		return -EBADMSG;
	fill(table, &set, WF_TABLE_PRE_BITS, pre_entries);
	return 0;
}

unsigned int wf_deflate_table_zlib_size(const uint8_t *lens, unsigned int count,
					unsigned int root_bits, int pre)
{
	uint16_t syms[LITS_MOST + 1];
	unsigned int root, size, code = 0, begun = ~0u;
	enum verdict verdict;
	struct set set;

	verdict = sort(&set, lens, syms, list_used(syms, lens, count));
	if (verdict == REFUSED || (pre && verdict == SINGLE))
		return 0;
	if (verdict != COMPLETE)
		return 2;
	root = set.longest < root_bits ? set.longest : root_bits;
	/* It is never smaller than the shortest code. */
	for (unsigned int len = 1; len <= set.longest; len++) {
		if (set.count[len]) {
			root = root > len ? root : len;
			break;
		}
	}
	size = 1u << root;
	for (unsigned int len = 1; len <= set.longest; len++) {
		while (set.count[len]) {
			unsigned int index = code & ((1u << root) - 1);

			if (len > root && index != begun) {
				begun = index;
				size += 1u << sub_bits(set.count, root, len);
			}
			code = next_code(code, len);
			set.count[len]--;
		}
	}
	return size;
}
