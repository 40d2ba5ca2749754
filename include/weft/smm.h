/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SMM: small blocks out of one big piece of memory, such as the memory
 * reserved for a device. Everything SMM knows lies at the start of that piece,
 * as offsets: it works on any memory, also shared between processes and mapped
 * at different addresses. Blocks carry no header, so they keep the alignment,
 * and writing past one cannot break the bookkeeping of its neighbours.
 */
#ifndef WEFT_SMM_H
#define WEFT_SMM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/*
 * Makes @size bytes at @pt_addr a pool. Blocks are aligned to @align_mask + 1
 * (a power of two; 0 and small ones mean 64) in the address space of the
 * caller. -EINVAL: no memory, or a mask that is none; -ENOMEM: too small for
 * even one block; -E2BIG: more than 2^30 - 1 units of that alignment.
 */
int smm_init(void *pt_addr, size_t size, int align_mask);

/* NULL with errno: EINVAL (not a pool, or size 0), ENOMEM (no block so large),
 * ENOTRECOVERABLE (a process died here and left rubbish). O(1), but when there
 * seems to be none it looks through the pool for what threads keep: each keeps
 * a few blocks that it freed, to have them again without a lock. */
void *smm_alloc(void *pt_addr, size_t size);

/* 0; -EINVAL: @ptr is not a block in use (freed twice, foreign, the middle of
 * a block), or this is no pool; nothing is changed then. NULL is freed with no
 * effect. O(1). */
int smm_free(void *pt_addr, void *ptr);

/* Bytes free, in all and (if not NULL) in the largest block that smm_alloc()
 * is certain to give. 0 if it is not a pool. Looks through the pool. */
size_t smm_available(void *pt_addr, size_t *largest);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
