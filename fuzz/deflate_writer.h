/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes deflate streams bit by bit, from random choices: blocks of all kinds,
 * any set of codes, and sometimes a wrong field.
 */
#ifndef FUZZ_DEFLATE_WRITER_H
#define FUZZ_DEFLATE_WRITER_H

#include <stddef.h>
#include <stdint.h>

/* Random numbers: the input of the fuzzer, then numbers computed from it. */
struct wf_fuzz_program {
	const uint8_t *next;
	size_t left;
	uint64_t more;
};

unsigned int wf_fuzz_next(struct wf_fuzz_program *p, unsigned int below);
/* True once in @times. */
#define wf_fuzz_rarely(p, times) (!wf_fuzz_next(p, times))

/*
 * Raw deflate data of about @size bytes, at most @room. @before: the amount of
 * earlier output that it can refer to. @wrong: a field is wrong once in so many
 * times, 0: never. Returns its size; *made is the amount of output that a
 * reader produces, if nothing is wrong.
 */
size_t wf_fuzz_write_deflate(struct wf_fuzz_program *p, uint8_t *to,
			     size_t room, size_t size, size_t before,
			     unsigned int wrong, size_t *made);

#endif
