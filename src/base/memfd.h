/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory with a descriptor and without a file, which processes of a node share.
 */
#ifndef WF_BASE_MEMFD_H
#define WF_BASE_MEMFD_H

#include <stdbool.h>
#include <stddef.h>

#include "os/types.h"

/* Creates a memfd of a fixed size. Its pages are allocated now, so that a lack
 * of memory is an error here and not a signal later. Returns the descriptor or
 * -errno. */
int wf_base_memfd_create(const char *name, size_t bytes);

/* The same without pages: the caller allocates them piece by piece. */
int wf_base_memfd_create_sparse(const char *name, size_t bytes);

/* Allocates the pages of [at, at + bytes). 0 or -errno. */
int wf_base_memfd_reserve(int memfd, off_t at, size_t bytes);

/* After this, nobody who has the descriptor can map it for writing; existing
 * mappings stay as they are. 0 or -errno, -EINVAL before Linux 5.1. */
int wf_base_memfd_seal_writing(int memfd);

/* After this, nobody who has the descriptor can add seals, for example one that
 * prevents others from mapping it for writing. 0 or -errno. */
int wf_base_memfd_seal_seals(int memfd);

/* Whether a peer's memfd has @bytes and can never shrink: touching missing
 * memory would be a signal. */
bool wf_base_memfd_is_sound(int memfd, size_t bytes);

#endif
