/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walking vectors of buffers. An offset is always inside what the vector
 * holds; callers clamp lengths before.
 */
#ifndef WF_OP_IOV_H
#define WF_OP_IOV_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "os/types.h"

/* Elements a vector has at most where bytes are copied. */
#define WF_OP_IOV_PARTS_MAX 16

static inline size_t wf_op_iov_len(const struct iovec *iov, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += iov[i].iov_len;
	return len;
}

/* Copies @len bytes into the vector from @offset on. */
void wf_op_iov_scatter(const struct iovec *iov, size_t count, size_t offset,
		       const void *from, size_t len);

/* Copies @len bytes out of the vector from @offset on. */
void wf_op_iov_gather(const struct iovec *iov, size_t count, size_t offset,
		      void *to, size_t len);

/* The part [offset, offset + len) of a vector as a vector. Returns how many
 * elements @out got, at most @count. */
size_t wf_op_iov_slice(const struct iovec *iov, size_t count, size_t offset,
		       size_t len, struct iovec *out);

/* The same, inlined for vectors of one element, as most are. @len is not 0 and
 * inside what the vector holds. */
static inline size_t wf_op_iov_part(const struct iovec *iov, size_t count,
				    size_t offset, size_t len,
				    struct iovec *out)
{
	if (count != 1)
		return wf_op_iov_slice(iov, count, offset, len, out);
	out->iov_base = (void *)((uintptr_t)iov->iov_base + offset);
	out->iov_len = len;
	return 1;
}

#endif
