/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of descriptors against golden bytes: our encoding has the bytes of
 * the reference structures, and what they hold is what we decode. The bytes
 * were made by filling the structures of rdma-core v64 with the values that the
 * tests name.
 */
#include "nic/wqe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static const struct {
	const char *name;
	const char *hex;
} vectors[] = {
	{ "TX send inline",
	  "3412a01d560405000000000089070000d4c3b2a10000000000000000"
	  "0000000068656c6c6f00000000000000000000000000000000000000"
	  "0000000000000000" },
	{ "TX send 2 SGE imm",
	  "ffff901c01000200efbeadde02000000030000000000000000000000"
	  "0000000000100000efcdab0088776655443322111000000001000000"
	  "0010000000000000" },
	{ "TX rdma read",
	  "0700811d0800010000000000090000000a0000000000000000000000"
	  "0000000000002000ccbbaa9988776655443322110000200042000000"
	  "0000feca7f000000" },
	{ "TX rdma write",
	  "0700821d0800010000000000090000000a0000000000000000000000"
	  "0000000000002000ccbbaa9988776655443322110000200042000000"
	  "0000feca7f000000" },
	{ "RX", "88776655443322112103e022efcdabc0" },
	{ "CQE tx", "34120013560400000000000000000000000000000000000000000000"
		    "00000000" },
	{ "CQE rx", "2103000c56044000ffff7700efbeadde000000000000000000000000"
		    "00000000" },
	{ "CQE tx rnr",
	  "03000a03020000000000000000000000000000000000000000000000"
	  "00000000" },
};

static size_t golden(const char *name, uint8_t *bytes, size_t room)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const char *hex = vectors[i].hex;
		size_t len = strlen(hex) / 2;

		if (strcmp(vectors[i].name, name))
			continue;
		assert_true(len <= room);
		for (size_t at = 0; at < len; at++) {
			unsigned byte;

			assert_int_equal(sscanf(hex + 2 * at, "%2x", &byte), 1);
			bytes[at] = (uint8_t)byte;
		}
		return len;
	}
	fail_msg("no vector %s", name);
	return 0;
}

static void expect(const char *name, const void *ours, size_t len)
{
	uint8_t bytes[64];

	assert_int_equal(golden(name, bytes, sizeof(bytes)), len);
	assert_memory_equal(ours, bytes, len);
}

static void test_tx_inline(void **state)
{
	struct wf_nic_tx_wqe wqe;

	(void)state;
	memset(&wqe, 0, sizeof(wqe));
	wf_nic_wqe_meta(&wqe,
			&(struct wf_nic_wqe_head){ .req_id = 0x1234,
						   .ctrl1 = WF_NIC_OP_SEND |
							    WF_NIC_TX_INLINE,
						   .phase = 1,
						   .dest_qpn = 0x456,
						   .length = 5,
						   .ah = 0x789,
						   .qkey = 0xa1b2c3d4 });
	memcpy(wqe.inline_data, "hello", 5);
	expect("TX send inline", &wqe, sizeof(wqe));
}

static void test_tx_sge(void **state)
{
	struct wf_nic_tx_wqe wqe;

	(void)state;
	memset(&wqe, 0, sizeof(wqe));
	wf_nic_wqe_meta(&wqe,
			&(struct wf_nic_wqe_head){ .req_id = 0xffff,
						   .ctrl1 = WF_NIC_OP_SEND |
							    WF_NIC_TX_HAS_IMM,
						   .dest_qpn = 1,
						   .length = 2,
						   .ah = 2,
						   .imm = 0xdeadbeef,
						   .qkey = 3 });
	wf_nic_wqe_sge(&wqe.sgl[0], 0x1122334455667788, 4096, 0xabcdef);
	wf_nic_wqe_sge(&wqe.sgl[1], 0x1000, 16, 1);
	expect("TX send 2 SGE imm", &wqe, sizeof(wqe));
}

static void rdma(const char *name, enum wf_nic_opcode op)
{
	struct wf_nic_tx_wqe wqe;

	memset(&wqe, 0, sizeof(wqe));
	wf_nic_wqe_meta(&wqe, &(struct wf_nic_wqe_head){ .req_id = 7,
							 .ctrl1 = (uint8_t)op,
							 .phase = 1,
							 .dest_qpn = 8,
							 .length = 1,
							 .ah = 9,
							 .qkey = 0xa });
	wf_nic_wqe_remote(&wqe.rdma.remote, 0x1122334455667788, 2097152,
			  0x99aabbcc);
	wf_nic_wqe_sge(&wqe.rdma.local, 0x7fcafe0000, 2097152, 0x42);
	expect(name, &wqe, sizeof(wqe));
}

static void test_tx_rdma(void **state)
{
	(void)state;
	rdma("TX rdma read", WF_NIC_OP_READ);
	rdma("TX rdma write", WF_NIC_OP_WRITE);
}

static void test_rx(void **state)
{
	struct wf_nic_rx_desc desc;

	(void)state;
	wf_nic_rx_fill(&desc, 0x321, 0x1122334455667788, 8928, 0xabcdef);
	expect("RX", &desc, sizeof(desc));
}

static void test_cqe(void **state)
{
	struct wf_nic_cqe cqe;

	(void)state;
	golden("CQE tx", (uint8_t *)&cqe, sizeof(cqe));
	assert_int_equal(cqe.req_id, 0x1234);
	assert_int_equal(cqe.status, WF_NIC_OK);
	assert_int_equal(cqe.flags & WF_NIC_CQE_PHASE, 1);
	assert_int_equal(wf_nic_cqe_qtype(&cqe), WF_NIC_CQE_SQ);
	assert_int_equal(wf_nic_cqe_op(&cqe), WF_NIC_OP_READ);
	assert_int_equal(cqe.qpn, 0x456);
	golden("CQE rx", (uint8_t *)&cqe, sizeof(cqe));
	assert_int_equal(cqe.req_id, 0x321);
	assert_int_equal(cqe.flags & WF_NIC_CQE_PHASE, 0);
	assert_int_equal(wf_nic_cqe_qtype(&cqe), WF_NIC_CQE_RQ);
	assert_int_equal(cqe.flags,
			 wf_nic_cqe_flags(WF_NIC_CQE_RQ, WF_NIC_OP_SEND, true));
	assert_int_equal(cqe.imm, 0xdeadbeef);
	assert_int_equal(cqe.length, 64);
	assert_int_equal(cqe.ah, WF_NIC_AH_UNKNOWN);
	assert_int_equal(cqe.src_qpn, 0x77);
	golden("CQE tx rnr", (uint8_t *)&cqe, sizeof(cqe));
	assert_int_equal(cqe.status, WF_NIC_RNR);
	assert_int_equal(cqe.qpn, 2);
	assert_int_equal(
		cqe.flags,
		WF_NIC_CQE_PHASE |
			wf_nic_cqe_flags(WF_NIC_CQE_SQ, WF_NIC_OP_SEND, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tx_inline), cmocka_unit_test(test_tx_sge),
		cmocka_unit_test(test_tx_rdma),	  cmocka_unit_test(test_rx),
		cmocka_unit_test(test_cqe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
