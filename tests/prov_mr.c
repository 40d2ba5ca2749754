/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The call to register memory: messages do not need it, but it works for
 * programs that register everything they send. Keys are unique, invalid
 * requests are refused, a domain with registrations cannot be closed, and
 * descriptors are accepted. rma_keys tests what peers may access.
 */
#include "common/fabric.h"

#include <string.h>

#include <rdma/fi_errno.h>

static void try_calls(struct weft_test *t)
{
	static char memory[2][64];
	struct iovec iov[2] = { { memory[0], 64 }, { memory[1], 64 } };
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = 2,
		.access = FI_RECV,
		.requested_key = 3,
	};
	struct fid_mr *mr[3], *other;

	CHECK_OK(fi_mr_reg(t->domain, memory[0], 64, FI_SEND | FI_RECV, 0, 1, 0,
			   &mr[0], NULL));
	CHECK_OK(fi_mr_regv(t->domain, iov, 2, FI_SEND, 0, 2, 0, &mr[1], NULL));
	CHECK_OK(fi_mr_regattr(t->domain, &attr, 0, &mr[2]));
	CHECK(fi_mr_key(mr[2]) == 3 && fi_mr_desc(mr[0]));
	CHECK(fi_mr_reg(t->domain, memory[0], 64, FI_SEND, 0, 2, 0, &other,
			NULL) == -FI_ENOKEY);
	CHECK(fi_mr_reg(t->domain, memory[0], 64, 1, 0, 4, 0, &other, NULL) ==
	      -FI_EINVAL);
	CHECK(fi_mr_reg(t->domain, memory[0], SIZE_MAX, FI_REMOTE_READ, 0, 4, 0,
			&other, NULL) == -FI_EINVAL);
	CHECK(fi_mr_reg(t->domain, memory[0], 64, FI_REMOTE_READ, 5, 4, 0,
			&other, NULL) == -FI_EINVAL);
	CHECK(fi_mr_regv(t->domain, iov, 0, FI_SEND, 0, 4, 0, &other, NULL) ==
	      -FI_EINVAL);
	CHECK_OK(fi_close(&mr[1]->fid));
	CHECK_OK(fi_mr_reg(t->domain, memory[0], 64, FI_SEND, 0, 2, 0, &mr[1],
			   NULL));
	for (int i = 0; i < 3; i++)
		CHECK_OK(fi_close(&mr[i]->fid));
}

static void send_with_descriptor(struct weft_test *t)
{
	char from[8] = "weft", to[8] = "";
	struct fid_mr *mr;
	fi_addr_t self = weft_test_insert(t, t->name);

	CHECK_OK(fi_mr_reg(t->domain, from, sizeof(from), FI_SEND, 0, 9, 0, &mr,
			   NULL));
	CHECK(fi_close(&t->domain->fid) == -FI_EBUSY);
	CHECK_OK(weft_test_trecv(t, to, sizeof(to), 1, 0, NULL));
	CHECK_OK(fi_tsend(t->ep, from, sizeof(from), fi_mr_desc(mr), self, 1,
			  NULL));
	weft_test_wait_ok(t->txcq, NULL);
	weft_test_wait_ok(t->rxcq, NULL);
	CHECK(!strcmp(to, "weft"));
	CHECK_OK(fi_close(&mr->fid));
}

int main(void)
{
	struct weft_test t;

	weft_test_begin(30);
	weft_test_open(&t, NULL);
	try_calls(&t);
	send_with_descriptor(&t);
	weft_test_close(&t);
	return 0;
}
