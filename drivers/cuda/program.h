/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernels as code for one kind of GPU: built beforehand (cuda.fatbin beside
 * the plug-in), from the cache of this user, or compiled now.
 */
#ifndef WF_CUDA_PROGRAM_H
#define WF_CUDA_PROGRAM_H

#include "cuda/library.h"

/* In the names of the kernels: code of another version is not used. */
#define WF_CUDA_INFLATE "weft_inflate_1"
#define WF_CUDA_DEFLATE "weft_deflate_1"

struct wf_cuda_program {
	void *module;
	void *inflate; /* kernels */
	void *deflate;
};

/* For compute capability @major.@minor, in the current context. 0, or -errno
 * and in *@why a line, which is constant. */
int wf_cuda_program_load(struct wf_cuda_program *program,
			 const struct wf_cu *cu, int major, int minor,
			 const char **why);

#endif
