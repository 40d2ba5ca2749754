/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets: the golden vectors both ways, and packets that are cut, grown or
 * wrong.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/packet.h"
#include "wire/vectors_test.h"

#define MOST 160
#define ROOM (16 * 1024)

/* Those that were written down, then those that were seen. */
static struct vector vectors[MOST];
static size_t made, all;

static int read_vectors(void **state)
{
	(void)state;
	vectors_read("vectors.txt", vectors, MOST, &all);
	made = all;
	vectors_read("captured.txt", vectors, MOST, &all);
	return 0;
}

/* The bytes of a vector that are kept: headers, and the beginning of data. */
static size_t kept_bytes(const struct vector *vector, uint8_t *to)
{
	memcpy(to, vector->header, vector->header_len);
	memcpy(to + vector->header_len, vector->data, vector->data_len);
	return vector->header_len + vector->data_len;
}

/* The packet of a vector, with data for what was not kept. */
static size_t bytes_of(const struct vector *vector, uint8_t *to)
{
	size_t len = kept_bytes(vector, to);

	memset(to + len, 0x5a, vector->rest);
	return len + vector->rest;
}

static void test_encode(void **state)
{
	(void)state;
	for (size_t i = 0; i < all; i++) {
		const struct vector *vector = &vectors[i];
		const struct wf_wire_packet *packet = &vector->packet;
		uint8_t want[VECTOR_BYTES], got[WF_WIRE_HEADER_MAX];
		size_t header = wf_wire_packet_encode(packet, got, sizeof(got));

		print_message("%s\n", vector->what);
		memcpy(want, vector->header, vector->header_len);
		if (vector->unset)
			memset(want + vector->unset, 0, 4);
		assert_int_equal(header, wf_wire_packet_header(packet));
		assert_int_equal(header, vector->header_len);
		assert_memory_equal(got, want, header);
		/* Too little room is said, not overrun. */
		assert_int_equal(wf_wire_packet_encode(packet, got, header - 1),
				 0);
	}
}

static void check_fields(const struct wf_wire_packet *got,
			 const struct wf_wire_packet *want)
{
	struct wf_wire_packet copy = *got;

	copy.data = NULL;
	copy.data_len = 0;
	assert_memory_equal(&copy, want, offsetof(struct wf_wire_packet, data));
	assert_memory_equal(got->rma_iov, want->rma_iov,
			    want->rma_iov_count * sizeof(*want->rma_iov));
	assert_memory_equal(got->read_iov, want->read_iov,
			    want->read_iov_count * sizeof(*want->read_iov));
	assert_memory_equal(got->raw_addr, want->raw_addr, want->raw_addr_len);
	assert_memory_equal(got->extra, want->extra,
			    want->extra_count * sizeof(*want->extra));
}

static void test_decode(void **state)
{
	(void)state;
	for (size_t i = 0; i < all; i++) {
		const struct vector *vector = &vectors[i];
		static uint8_t bytes[ROOM];
		size_t len = bytes_of(vector, bytes);
		struct wf_wire_packet packet;

		print_message("%s\n", vector->what);
		assert_int_equal(wf_wire_packet_decode(&packet, bytes, len), 0);
		check_fields(&packet, &vector->packet);
		assert_int_equal(packet.data_len,
				 vector->data_len + vector->rest);
		assert_memory_equal(packet.data, vector->data,
				    vector->data_len);
		assert_string_not_equal(wf_wire_packet_name(packet.type),
					"unknown");
	}
}

/* Every type is among those that libfabric was seen to send. */
static void test_all_captured(void **state)
{
	(void)state;
	for (unsigned int type = 0; type < 256; type++) {
		bool seen = false;

		for (size_t i = made; i < all; i++)
			seen |= vectors[i].packet.type == type;
		assert_int_equal(seen, strcmp(wf_wire_packet_name(type),
					      "unknown") != 0);
	}
}

/* Every shorter packet is refused or lacks only data; nothing is read beyond
 * its end (the copy has just its size: ASan looks). */
static void test_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < all; i++) {
		const struct vector *vector = &vectors[i];
		size_t header = wf_wire_packet_header(&vector->packet);
		static uint8_t bytes[ROOM];
		size_t len = kept_bytes(vector, bytes);

		for (size_t cut = 0; cut < len; cut++) {
			uint8_t *copy = malloc(cut ? cut : 1);
			struct wf_wire_packet packet;
			int ret;

			memcpy(copy, bytes, cut);
			ret = wf_wire_packet_decode(&packet, copy, cut);
			if (cut < header)
				assert_int_equal(ret, -EPROTO);
			free(copy);
		}
	}
}

/* Any single byte may be anything: decoded or refused, never out of bounds, and
 * what is decoded encodes to a header of the same length. */
static void test_any_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < all; i++) {
		const struct vector *vector = &vectors[i];
		static uint8_t bytes[ROOM], again[ROOM];
		size_t len = bytes_of(vector, bytes);

		for (size_t at = 0; at < len - vector->rest; at++) {
			uint8_t before = bytes[at];

			for (int value = 0; value < 256; value++) {
				struct wf_wire_packet packet;

				bytes[at] = (uint8_t)value;
				if (wf_wire_packet_decode(&packet, bytes, len))
					continue;
				assert_true(packet.data >= bytes &&
					    packet.data + packet.data_len ==
						    bytes + len);
				assert_int_equal(wf_wire_packet_encode(
							 &packet, again, ROOM),
						 len - packet.data_len);
			}
			bytes[at] = before;
		}
	}
}

static int decode_with(const struct wf_wire_packet *packet, size_t data_len)
{
	static uint8_t bytes[4096];
	struct wf_wire_packet got;
	size_t len = wf_wire_packet_encode(packet, bytes, sizeof(bytes));

	return wf_wire_packet_decode(&got, bytes, len + data_len);
}

static void test_lengths(void **state)
{
	struct wf_wire_packet medium = {
		.type = WF_WIRE_MEDIUM_MSGRTM,
		.flags = WF_WIRE_MSG,
		.msg_length = 1000,
		.seg_offset = 900,
	};
	struct wf_wire_packet cts = { .type = WF_WIRE_CTS };
	struct wf_wire_packet data = {
		.type = WF_WIRE_CTSDATA,
		.seg_length = 10,
	};
	struct wf_wire_packet eor = { .type = WF_WIRE_EOR };

	(void)state;
	assert_int_equal(decode_with(&medium, 100), 0);
	assert_int_equal(decode_with(&medium, 101), -EPROTO);
	medium.seg_offset = UINT64_MAX;
	assert_int_equal(decode_with(&medium, 100), -EPROTO);
	/* A CTS that allows nothing would stall its sender. */
	assert_int_equal(decode_with(&cts, 0), -EPROTO);
	cts.recv_length = 1;
	assert_int_equal(decode_with(&cts, 0), 0);
	assert_int_equal(decode_with(&data, 10), 0);
	assert_int_equal(decode_with(&data, 9), -EPROTO);
	assert_int_equal(decode_with(&eor, 1), -EPROTO);
}

/* Unchecked in the reference: the number of extra words of a handshake. */
static void test_handshake_extra(void **state)
{
	uint8_t bytes[64] = { WF_WIRE_HANDSHAKE, WF_WIRE_VERSION };
	struct wf_wire_packet packet;
	uint32_t counts[] = { 0, 2, 11, 0x7fffffff, 0xffffffff };

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		memcpy(bytes + 4, &counts[i], 4);
		assert_int_equal(wf_wire_packet_decode(&packet, bytes, 64),
				 -EPROTO);
	}
	/* More words than we have room for are passed over. */
	{
		uint8_t many[8 + 8 * 40 + 8] = { WF_WIRE_HANDSHAKE,
						 WF_WIRE_VERSION, 0, 0x80, 43 };

		many[8 + 8 * 40] = 99;
		assert_int_equal(
			wf_wire_packet_decode(&packet, many, sizeof(many)), 0);
		assert_int_equal(packet.extra_count, WF_WIRE_EXTRA_MAX);
		assert_int_equal(packet.connid, 99);
	}
}

static void test_flags_of_the_type(void **state)
{
	struct wf_wire_packet tagged = {
		.type = WF_WIRE_EAGER_TAGRTM,
		.flags = WF_WIRE_MSG,
	};

	(void)state;
	assert_int_equal(decode_with(&tagged, 0), -EPROTO);
	tagged.flags |= WF_WIRE_TAGGED;
	assert_int_equal(decode_with(&tagged, 0), 0);
}

static void test_unknown(void **state)
{
	uint8_t bytes[64] = { 0, WF_WIRE_VERSION };
	struct wf_wire_packet packet;
	int known = 0;

	(void)state;
	for (int type = 0; type < 256; type++) {
		bytes[0] = (uint8_t)type;
		if (!strcmp(wf_wire_packet_name((unsigned int)type), "unknown"))
			assert_int_equal(
				wf_wire_packet_decode(&packet, bytes, 64),
				-EPROTO);
		else
			known++;
	}
	assert_int_equal(known, 36);
	bytes[0] = WF_WIRE_EOR;
	bytes[1] = 5;
	assert_int_equal(wf_wire_packet_decode(&packet, bytes, 16), -EPROTO);
	assert_int_equal(wf_wire_packet_decode(&packet, bytes, 0), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_encode),
		cmocka_unit_test(test_decode),
		cmocka_unit_test(test_all_captured),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_any_byte),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_handshake_extra),
		cmocka_unit_test(test_flags_of_the_type),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, read_vectors, NULL);
}
