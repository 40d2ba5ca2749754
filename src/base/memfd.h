/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory with a descriptor and without a file: what processes of a node share.
 */
#ifndef WF_BASE_MEMFD_H
#define WF_BASE_MEMFD_H

#include <stdbool.h>
#include <stddef.h>

#include "os/types.h"

/* Makes a memfd of a fixed size; its pages are taken now, so that running out
 * of memory is an error here and not a signal later. The descriptor or
 * -errno. */
int wf_base_memfd_create(const char *name, size_t bytes);

/* The same without its pages: the caller takes them piece by piece. */
int wf_base_memfd_create_sparse(const char *name, size_t bytes);

/* Takes the pages of [at, at + bytes). 0 or -errno. */
int wf_base_memfd_reserve(int memfd, off_t at, size_t bytes);

/* Nobody who has the descriptor can map it for writing any more; mappings that
 * exist stay as they are. 0 or -errno, -EINVAL before Linux 5.1. */
int wf_base_memfd_seal_writing(int memfd);

/* Nobody who has the descriptor can add seals any more, such as one that keeps
 * others from mapping it for writing. 0 or -errno. */
int wf_base_memfd_seal_seals(int memfd);

/* Whether a peer's memfd holds @bytes, and can never be made to hold less:
 * touching it would be a signal then. */
bool wf_base_memfd_is_sound(int memfd, size_t bytes);

#endif
