/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walking vectors of buffers.
 */
#include "op/iov.h"

#include <assert.h>

size_t wf_op_iov_slice(const struct iovec *iov, size_t count, size_t offset,
		       size_t len, struct iovec *out)
{
	size_t n = 0;

	for (size_t i = 0; i < count && len; i++) {
		size_t part;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		part = iov[i].iov_len - offset;
		if (part > len)
			part = len;
		/* As integers: it may be any address of another process. */
		out[n].iov_base = (void *)((uintptr_t)iov[i].iov_base + offset);
		out[n++].iov_len = part;
		len -= part;
		offset = 0;
	}
	return n;
}

void wf_op_iov_scatter(const struct iovec *iov, size_t count, size_t offset,
		       const void *from, size_t len)
{
	struct iovec parts[WF_OP_IOV_PARTS_MAX];
	const char *pos = from;
	size_t n;

	assert(count <= WF_OP_IOV_PARTS_MAX);
	n = wf_op_iov_slice(iov, count, offset, len, parts);
	for (size_t i = 0; i < n; i++) {
		memcpy(parts[i].iov_base, pos, parts[i].iov_len);
		pos += parts[i].iov_len;
	}
}

void wf_op_iov_gather(const struct iovec *iov, size_t count, size_t offset,
		      void *to, size_t len)
{
	struct iovec parts[WF_OP_IOV_PARTS_MAX];
	char *pos = to;
	size_t n;

	assert(count <= WF_OP_IOV_PARTS_MAX);
	n = wf_op_iov_slice(iov, count, offset, len, parts);
	for (size_t i = 0; i < n; i++) {
		memcpy(pos, parts[i].iov_base, parts[i].iov_len);
		pos += parts[i].iov_len;
	}
}
