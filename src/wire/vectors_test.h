/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets as the reference structures of libfabric write them: fields and
 * bytes. Data, made outside of weft; packet_test.c encodes the one and decodes
 * the other.
 */
#ifndef WF_WIRE_VECTORS_TEST_H
#define WF_WIRE_VECTORS_TEST_H

#include "wire/packet.h"

struct vector {
	const char *what; /* for the one who reads a failure */
	const char *hex;
	const char *data; /* hex of what follows the headers */
	uint16_t rest;	  /* bytes of data that follow and are not kept here */
	/* Where four bytes of padding are that the sender did not set: they have
	 * what was in its buffer before. 0: none. */
	uint16_t unset;
	struct wf_wire_packet packet;
};

static const struct vector vectors[] = {
	{
		.hex = "03040080d4c3b2a111111111222222223333333303000000",
		.data = "",
		.packet = {
			.type = WF_WIRE_CTS,
			.flags = 0x8000u,
			.connid = 0xa1b2c3d4u,
			.send_id = 0x11111111u,
			.recv_id = 0x22222222u,
			.recv_length = 0x333333333u,
		},
	},
	{
		.hex = "030480000000000005000000060000000700000000000000",
		.data = "",
		.packet = {
			.type = WF_WIRE_CTS,
			.flags = 0x0080u,
			.send_id = 0x5u,
			.recv_id = 0x6u,
			.recv_length = 0x7u,
		},
	},
	{
		.hex = "040400802222222204000000000000000100000005000000d4c3b2a100000000deadbeef",
		.data = "deadbeef",
		.packet = {
			.type = WF_WIRE_CTSDATA,
			.flags = 0x8000u,
			.recv_id = 0x22222222u,
			.seg_length = 0x4u,
			.seg_offset = 0x500000001u,
			.connid = 0xa1b2c3d4u,
		},
	},
	{
		.hex = "0404000009000000020000000000000010000000000000000102",
		.data = "0102",
		.packet = {
			.type = WF_WIRE_CTSDATA,
			.flags = 0x0u,
			.recv_id = 0x9u,
			.seg_length = 0x2u,
			.seg_offset = 0x10u,
		},
	},
	{
		.hex = "05040080d4c3b2a1222222221111111103000000000000000a0b0c",
		.data = "0a0b0c",
		.packet = {
			.type = WF_WIRE_READRSP,
			.flags = 0x8000u,
			.connid = 0xa1b2c3d4u,
			.recv_id = 0x22222222u,
			.send_id = 0x11111111u,
			.seg_length = 0x3u,
		},
	},
	{
		.hex = "070400801111111122222222d4c3b2a1",
		.data = "",
		.packet = {
			.type = WF_WIRE_EOR,
			.flags = 0x8000u,
			.send_id = 0x11111111u,
			.recv_id = 0x22222222u,
			.connid = 0xa1b2c3d4u,
		},
	},
	{
		.hex = "08040080d4c3b2a1000000002222222208000000000000000102030405060708",
		.data = "0102030405060708",
		.packet = {
			.type = WF_WIRE_ATOMRSP,
			.flags = 0x8000u,
			.connid = 0xa1b2c3d4u,
			.recv_id = 0x22222222u,
			.seg_length = 0x8u,
		},
	},
	{
		.hex = "09040380040000005a02000000000000d4c3b2a100000000efbefecacefaedfea1ef000000000000",
		.data = "",
		.packet = {
			.type = WF_WIRE_HANDSHAKE,
			.flags = 0x8003u,
			.extra_count = 1,
			.extra[0] = 0x25au,
			.connid = 0xa1b2c3d4u,
			.host_id = 0xfeedfacecafebeefu,
			.device_version = 0xefa1u,
		},
	},
	{
		.hex = "0a0400801111111177777777d4c3b2a1",
		.data = "",
		.packet = {
			.type = WF_WIRE_RECEIPT,
			.flags = 0x8000u,
			.send_id = 0x11111111u,
			.msg_id = 0x77777777u,
			.connid = 0xa1b2c3d4u,
		},
	},
	{
		.hex = "0b0400801111111122222222d4c3b2a1",
		.data = "",
		.packet = {
			.type = WF_WIRE_READ_NACK,
			.flags = 0x8000u,
			.send_id = 0x11111111u,
			.recv_id = 0x22222222u,
			.connid = 0xa1b2c3d4u,
		},
	},
	{
		.hex = "0c040080330000000100000009100000d4c3b2a1",
		.data = "",
		.packet = {
			.type = WF_WIRE_PEER_ERROR,
			.flags = 0x8000u,
			.op_id = 0x33u,
			.ref_kind = 0x1u,
			.prov_errno = 0x1009u,
			.connid = 0xa1b2c3d4u,
		},
	},
	{
		.hex = "400404007777777768656c6c6f",
		.data = "68656c6c6f",
		.packet = {
			.type = WF_WIRE_EAGER_MSGRTM,
			.flags = 0x0004u,
			.msg_id = 0x77777777u,
		},
	},
	{
		.hex = "40040680010000008967452301eeffc0d4c3b2a16869",
		.data = "6869",
		.packet = {
			.type = WF_WIRE_EAGER_MSGRTM,
			.flags = 0x8006u,
			.msg_id = 0x1u,
			.cq_data = 0xc0ffee0123456789u,
			.connid = 0xa1b2c3d4u,
		},
	},
	{
		.hex = "41040c00777777771032547698badcfe68656c6c6f",
		.data = "68656c6c6f",
		.packet = {
			.type = WF_WIRE_EAGER_TAGRTM,
			.flags = 0x000cu,
			.msg_id = 0x77777777u,
			.tag = 0xfedcba9876543210u,
		},
	},
	{
		.hex = "41040d0002000000030000000000000024000000000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f0000000078",
		.data = "78",
		.packet = {
			.type = WF_WIRE_EAGER_TAGRTM,
			.flags = 0x000du,
			.msg_id = 0x2u,
			.tag = 0x3u,
			.raw_addr_len = 36u,
			.raw_addr = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31 },
		},
	},
	{
		.hex = "420404007777777700400000000000000010000000000000",
		.data = "",
		.packet = {
			.type = WF_WIRE_MEDIUM_MSGRTM,
			.flags = 0x0004u,
			.msg_id = 0x77777777u,
			.msg_length = 0x4000u,
			.seg_offset = 0x1000u,
		},
	},
	{
		.hex = "43040c0077777777004000000000000000100000000000001032547698badcfe",
		.data = "",
		.packet = {
			.type = WF_WIRE_MEDIUM_TAGRTM,
			.flags = 0x000cu,
			.msg_id = 0x77777777u,
			.msg_length = 0x4000u,
			.seg_offset = 0x1000u,
			.tag = 0xfedcba9876543210u,
		},
	},
	{
		.hex = "440404007777777700000400000000001111111120000000",
		.data = "",
		.packet = {
			.type = WF_WIRE_LONGCTS_MSGRTM,
			.flags = 0x0004u,
			.msg_id = 0x77777777u,
			.msg_length = 0x40000u,
			.send_id = 0x11111111u,
			.credit_request = 0x20u,
		},
	},
	{
		.hex = "45040c2077777777000004000000000011111111200000001032547698badcfe",
		.data = "",
		.packet = {
			.type = WF_WIRE_LONGCTS_TAGRTM,
			.flags = 0x200cu,
			.msg_id = 0x77777777u,
			.msg_length = 0x40000u,
			.send_id = 0x11111111u,
			.credit_request = 0x20u,
			.tag = 0xfedcba9876543210u,
		},
	},
	{
		.hex = "46040000010000008877665544332211080706050403020100ffeeddccbbaa99",
		.data = "",
		.packet = {
			.type = WF_WIRE_EAGER_RTW,
			.flags = 0x0u,
			.rma_iov_count = 1,
			.rma_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
	{
		.hex = "4704000001000000000004000000000011111111200000008877665544332211080706050403020100ffeeddccbbaa99",
		.data = "",
		.packet = {
			.type = WF_WIRE_LONGCTS_RTW,
			.flags = 0x0u,
			.msg_length = 0x40000u,
			.send_id = 0x11111111u,
			.credit_request = 0x20u,
			.rma_iov_count = 1,
			.rma_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
	{
		.hex = "4804000001000000000100000000000022222222000100008877665544332211080706050403020100ffeeddccbbaa99",
		.data = "",
		.packet = {
			.type = WF_WIRE_SHORT_RTR,
			.flags = 0x0u,
			.msg_length = 0x100u,
			.recv_id = 0x22222222u,
			.recv_length = 0x100u,
			.rma_iov_count = 1,
			.rma_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
	{
		.hex = "4904000001000000000010000000000022222222008000008877665544332211080706050403020100ffeeddccbbaa99",
		.data = "",
		.packet = {
			.type = WF_WIRE_LONGCTS_RTR,
			.flags = 0x0u,
			.msg_length = 0x100000u,
			.recv_id = 0x22222222u,
			.recv_length = 0x8000u,
			.rma_iov_count = 1,
			.rma_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
	{
		.hex = "4a04200077777777010000000700000002000000000000008877665544332211080706050403020100ffeeddccbbaa99",
		.data = "",
		.packet = {
			.type = WF_WIRE_WRITE_RTA,
			.flags = 0x20u,
			.msg_id = 0x77777777u,
			.datatype = 7u,
			.op = 2u,
			.rma_iov_count = 1,
			.rma_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
	{
		.hex = "4b04200077777777010000000700000002000000222222228877665544332211080706050403020100ffeeddccbbaa99",
		.data = "",
		.packet = {
			.type = WF_WIRE_FETCH_RTA,
			.flags = 0x20u,
			.msg_id = 0x77777777u,
			.datatype = 7u,
			.op = 2u,
			.recv_id = 0x22222222u,
			.rma_iov_count = 1,
			.rma_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
	{
		.hex = "4c0420007777777701000000070000000c000000222222228877665544332211080706050403020100ffeeddccbbaa99",
		.data = "",
		.packet = {
			.type = WF_WIRE_COMPARE_RTA,
			.flags = 0x20u,
			.msg_id = 0x77777777u,
			.datatype = 7u,
			.op = 12u,
			.recv_id = 0x22222222u,
			.rma_iov_count = 1,
			.rma_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
	{
		.hex = "8004040077777777000010000000000011111111010000008877665544332211080706050403020100ffeeddccbbaa99",
		.data = "",
		.packet = {
			.type = WF_WIRE_LONGREAD_MSGRTM,
			.flags = 0x0004u,
			.msg_id = 0x77777777u,
			.msg_length = 0x100000u,
			.send_id = 0x11111111u,
			.read_iov_count = 1,
			.read_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
	{
		.hex = "81040c0077777777000010000000000011111111010000001032547698badcfe8877665544332211080706050403020100ffeeddccbbaa99",
		.data = "",
		.packet = {
			.type = WF_WIRE_LONGREAD_TAGRTM,
			.flags = 0x000cu,
			.msg_id = 0x77777777u,
			.msg_length = 0x100000u,
			.send_id = 0x11111111u,
			.tag = 0xfedcba9876543210u,
			.read_iov_count = 1,
			.read_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
	{
		.hex = "8204000001000000000010000000000011111111010000008877665544332211080706050403020100ffeeddccbbaa998877665544332211080706050403020100ffeeddccbbaa99",
		.data = "",
		.packet = {
			.type = WF_WIRE_LONGREAD_RTW,
			.flags = 0x0u,
			.msg_length = 0x100000u,
			.send_id = 0x11111111u,
			.rma_iov_count = 1,
			.rma_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
			.read_iov_count = 1,
			.read_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
	{
		.hex = "85040400777777771111111100000000",
		.data = "",
		.packet = {
			.type = WF_WIRE_DC_EAGER_MSGRTM,
			.flags = 0x0004u,
			.msg_id = 0x77777777u,
			.send_id = 0x11111111u,
		},
	},
	{
		.hex = "86040c007777777711111111000000001032547698badcfe",
		.data = "",
		.packet = {
			.type = WF_WIRE_DC_EAGER_TAGRTM,
			.flags = 0x000cu,
			.msg_id = 0x77777777u,
			.send_id = 0x11111111u,
			.tag = 0xfedcba9876543210u,
		},
	},
	{
		.hex = "8704040077777777111111110000000000400000000000000010000000000000",
		.data = "",
		.packet = {
			.type = WF_WIRE_DC_MEDIUM_MSGRTM,
			.flags = 0x0004u,
			.msg_id = 0x77777777u,
			.send_id = 0x11111111u,
			.msg_length = 0x4000u,
			.seg_offset = 0x1000u,
		},
	},
	{
		.hex = "88040c00777777771111111100000000004000000000000000100000000000001032547698badcfe",
		.data = "",
		.packet = {
			.type = WF_WIRE_DC_MEDIUM_TAGRTM,
			.flags = 0x000cu,
			.msg_id = 0x77777777u,
			.send_id = 0x11111111u,
			.msg_length = 0x4000u,
			.seg_offset = 0x1000u,
			.tag = 0xfedcba9876543210u,
		},
	},
	{
		.hex = "890404007777777700000400000000001111111120000000",
		.data = "",
		.packet = {
			.type = WF_WIRE_DC_LONGCTS_MSGRTM,
			.flags = 0x0004u,
			.msg_id = 0x77777777u,
			.msg_length = 0x40000u,
			.send_id = 0x11111111u,
			.credit_request = 0x20u,
		},
	},
	{
		.hex = "8a040c0077777777000004000000000011111111200000001032547698badcfe",
		.data = "",
		.packet = {
			.type = WF_WIRE_DC_LONGCTS_TAGRTM,
			.flags = 0x000cu,
			.msg_id = 0x77777777u,
			.msg_length = 0x40000u,
			.send_id = 0x11111111u,
			.credit_request = 0x20u,
			.tag = 0xfedcba9876543210u,
		},
	},
	{
		.hex = "8b0400000100000011111111000000008877665544332211080706050403020100ffeeddccbbaa99",
		.data = "",
		.packet = {
			.type = WF_WIRE_DC_EAGER_RTW,
			.flags = 0x0u,
			.send_id = 0x11111111u,
			.rma_iov_count = 1,
			.rma_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
	{
		.hex = "8c04000001000000000004000000000011111111200000008877665544332211080706050403020100ffeeddccbbaa99",
		.data = "",
		.packet = {
			.type = WF_WIRE_DC_LONGCTS_RTW,
			.flags = 0x0u,
			.msg_length = 0x40000u,
			.send_id = 0x11111111u,
			.credit_request = 0x20u,
			.rma_iov_count = 1,
			.rma_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
	{
		.hex = "8d04200077777777010000000500000001000000111111118877665544332211080706050403020100ffeeddccbbaa99",
		.data = "",
		.packet = {
			.type = WF_WIRE_DC_WRITE_RTA,
			.flags = 0x20u,
			.msg_id = 0x77777777u,
			.datatype = 5u,
			.op = 1u,
			.send_id = 0x11111111u,
			.rma_iov_count = 1,
			.rma_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
	{
		.hex = "910404007777777700002000000000001111111101000000002000000000000000000100000000008877665544332211080706050403020100ffeeddccbbaa9972756e",
		.data = "72756e",
		.packet = {
			.type = WF_WIRE_RUNTREAD_MSGRTM,
			.flags = 0x0004u,
			.msg_id = 0x77777777u,
			.msg_length = 0x200000u,
			.send_id = 0x11111111u,
			.seg_offset = 0x2000u,
			.runt_length = 0x10000u,
			.read_iov_count = 1,
			.read_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
	{
		.hex = "92040c007777777700002000000000001111111101000000002000000000000000000100000000001032547698badcfe8877665544332211080706050403020100ffeeddccbbaa99",
		.data = "",
		.packet = {
			.type = WF_WIRE_RUNTREAD_TAGRTM,
			.flags = 0x000cu,
			.msg_id = 0x77777777u,
			.msg_length = 0x200000u,
			.send_id = 0x11111111u,
			.seg_offset = 0x2000u,
			.runt_length = 0x10000u,
			.tag = 0xfedcba9876543210u,
			.read_iov_count = 1,
			.read_iov[0] = { 0x1122334455667788u, 0x0102030405060708u, 0x99aabbccddeeff00u },
		},
	},
};

#endif
