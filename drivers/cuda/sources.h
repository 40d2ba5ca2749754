/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sources of the kernels, as texts in the plug-in (scripts/embed): the
 * first is the program, the others are what it includes.
 */
#ifndef WF_CUDA_SOURCES_H
#define WF_CUDA_SOURCES_H

#define WF_CUDA_SOURCES 10

extern const char *const wf_cuda_source_names[WF_CUDA_SOURCES];
extern const char *const wf_cuda_source_texts[WF_CUDA_SOURCES];

#endif
