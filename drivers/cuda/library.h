/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CUDA's libraries, loaded when the first channel is opened: the calls of
 * cuda_defs.h as pointers. It also says why there is nothing to load.
 */
#ifndef WF_CUDA_LIBRARY_H
#define WF_CUDA_LIBRARY_H

#include <stdbool.h>

#include "cuda/cuda_defs.h"

/* Whether a driver of NVIDIA's is likely to be here: it costs two system calls,
 * where loading libcuda costs milliseconds. */
bool wf_cuda_library_is_likely(void);

/* 0, or -ENODEV and in *@why a line. */
int wf_cuda_library_load(struct wf_cu *cu, const char **why);
int wf_cuda_library_load_compiler(struct wf_nvrtc *nvrtc, const char **why);

/* One line on standard error. */
void wf_cuda_library_say(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

#endif
