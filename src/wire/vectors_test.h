/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads packets that were made outside of weft, bytes and fields, from the text
 * files beside this one. vectors.txt explains their lines. A line that cannot be
 * read fails the test.
 */
#ifndef WF_WIRE_VECTORS_TEST_H
#define WF_WIRE_VECTORS_TEST_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/packet.h"

#define VECTOR_BYTES 512
#define VECTOR_LINE 256

struct vector {
	char what[VECTOR_LINE];
	uint8_t header[VECTOR_BYTES];
	size_t header_len;
	uint8_t data[VECTOR_BYTES];
	size_t data_len;
	size_t rest; /* bytes of data that follow and are not kept */
	/* Where four bytes of padding are that the sender did not set: they have
	 * what was in its buffer before. 0: none. */
	size_t unset;
	struct wf_wire_packet packet;
};

/* Numbers: a name, and where they are in the packet. */
#define FIELD(name_)                                                           \
	{                                                                      \
		.name = #name_, .at = offsetof(struct wf_wire_packet, name_),  \
		.width = sizeof(((struct wf_wire_packet *)0)->name_),          \
	}

static const struct vector_field {
	const char *name;
	size_t at;
	size_t width;
} vector_fields[] = {
	FIELD(flags),
	FIELD(msg_id),
	FIELD(send_id),
	FIELD(recv_id),
	FIELD(connid),
	FIELD(tag),
	FIELD(cq_data),
	FIELD(msg_length),
	FIELD(seg_offset),
	FIELD(seg_length),
	FIELD(recv_length),
	FIELD(runt_length),
	FIELD(credit_request),
	FIELD(datatype),
	FIELD(op),
	FIELD(op_id),
	FIELD(ref_kind),
	FIELD(prov_errno),
	FIELD(host_id),
	FIELD(device_version),
	FIELD(qpn),
	FIELD(qkey),
	FIELD(p2p),
};

#undef FIELD

static inline void vector_fail(const char *problem, const char *text)
{
	fail_msg("%s: '%s'", problem, text);
}

/* Adds the bytes of @hex to @len that are there. */
static inline void vector_hex(const char *hex, uint8_t *to, size_t room,
			      size_t *len)
{
	unsigned int byte;
	int used;

	for (; *hex; hex += 2) {
		if (*len == room || sscanf(hex, "%2x%n", &byte, &used) != 1 ||
		    used != 2)
			vector_fail("no bytes, or too many", hex);
		to[(*len)++] = (uint8_t)byte;
	}
}

static inline void vector_type(struct vector *vector, const char *text)
{
	size_t len = strcspn(text, ":");

	snprintf(vector->what, sizeof(vector->what), "%s", text);
	for (unsigned int type = 0; type < 256; type++) {
		const char *name = wf_wire_packet_name(type);

		if (strlen(name) == len && !memcmp(name, text, len)) {
			vector->packet.type = (uint8_t)type;
			return;
		}
	}
	vector_fail("no such type", text);
}

static inline void vector_iov(struct wf_wire_iov *iov, uint32_t *count,
			      const char *text)
{
	if (sscanf(text, "%" SCNx64 ",%" SCNx64 ",%" SCNx64, &iov->addr,
		   &iov->len, &iov->key) != 3)
		vector_fail("no addr,len,key", text);
	*count = 1;
}

static inline void vector_number(struct wf_wire_packet *packet,
				 const char *name, const char *text)
{
	size_t count = sizeof(vector_fields) / sizeof(vector_fields[0]);
	uint64_t value = strtoull(text, NULL, 16);

	for (size_t i = 0; i < count; i++) {
		const struct vector_field *field = &vector_fields[i];

		if (!strcmp(field->name, name)) {
			memcpy((uint8_t *)packet + field->at, &value,
			       field->width);
			return;
		}
	}
	vector_fail("no such field", name);
}

static inline void vector_set(struct wf_wire_packet *packet, const char *name,
			      const char *value)
{
	size_t len = 0;

	if (!strcmp(name, "raw_addr")) {
		vector_hex(value, packet->raw_addr, WF_WIRE_RAW_ADDR_MAX, &len);
		packet->raw_addr_len = (uint32_t)len;
	} else if (!strcmp(name, "rma_iov")) {
		vector_iov(packet->rma_iov, &packet->rma_iov_count, value);
	} else if (!strcmp(name, "read_iov")) {
		vector_iov(packet->read_iov, &packet->read_iov_count, value);
	} else if (!strcmp(name, "extra")) {
		packet->extra[0] = strtoull(value, NULL, 16);
		packet->extra_count = 1;
	} else {
		vector_number(packet, name, value);
	}
}

static inline void vector_fields_read(struct wf_wire_packet *packet, char *text)
{
	char *save, *word;

	for (word = strtok_r(text, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');

		if (!value)
			vector_fail("no field=value", word);
		*value = '\0';
		vector_set(packet, word, value + 1);
	}
}

/* A line of a packet: its first word says what the rest is. */
static inline void vector_line(struct vector *vector, const char *word,
			       char *text)
{
	if (!strcmp(word, "header"))
		vector_hex(text, vector->header, VECTOR_BYTES,
			   &vector->header_len);
	else if (!strcmp(word, "data"))
		vector_hex(text, vector->data, VECTOR_BYTES, &vector->data_len);
	else if (!strcmp(word, "rest"))
		vector->rest = strtoul(text, NULL, 10);
	else if (!strcmp(word, "unset"))
		vector->unset = strtoul(text, NULL, 10);
	else if (!strcmp(word, "fields"))
		vector_fields_read(&vector->packet, text);
	else
		vector_fail("no such line", word);
}

/* Adds the packets of src/wire/@name to the @count of @vectors, which are
 * zeroed. */
static inline void vectors_read(const char *name, struct vector *vectors,
				size_t room, size_t *count)
{
	const char *source = getenv("WEFT_SRC");
	char path[4096], line[VECTOR_LINE];
	size_t before = *count;
	FILE *file;

	snprintf(path, sizeof(path), "%s/src/wire/%s", source ? source : ".",
		 name);
	file = fopen(path, "re");
	if (!file)
		vector_fail("WEFT_SRC names the sources; cannot open", path);
	while (fgets(line, sizeof(line), file)) {
		char *text = line + strcspn(line, " \n");

		if (*line == '#' || *line == '\n')
			continue;
		line[strcspn(line, "\n")] = '\0';
		if (*text)
			*text++ = '\0';
		if (!strcmp(line, "packet")) {
			assert_true(*count < room);
			vector_type(&vectors[(*count)++], text);
		} else {
			assert_true(*count > before);
			vector_line(&vectors[*count - 1], line, text);
		}
	}
	fclose(file);
}

#endif
