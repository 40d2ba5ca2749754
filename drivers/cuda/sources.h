/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sources of the kernels, as texts in the plug-in: the first is the program,
 * the others are what it includes.
 */
#ifndef WF_CUDA_SOURCES_H
#define WF_CUDA_SOURCES_H

#define WF_CUDA_SOURCES 10

struct wf_cuda_source {
	const char *name;
	const char *text;
};

extern const struct wf_cuda_source wf_cuda_sources[WF_CUDA_SOURCES];
extern const char *const wf_cuda_source_names[WF_CUDA_SOURCES];
extern const char *const wf_cuda_source_texts[WF_CUDA_SOURCES];

#endif
