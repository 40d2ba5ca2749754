/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takes the sources in when it is assembled. WF_CUDA_FOLDER is where they are.
 */
#include "cuda/sources.h"

#define TEXT(symbol, file)                                                     \
	__asm__(".section .rodata\n"                                           \
		".global wf_cuda_text_" #symbol "\n"                           \
		".hidden wf_cuda_text_" #symbol "\n"                           \
		"wf_cuda_text_" #symbol ":\n"                                  \
		".incbin \"" WF_CUDA_FOLDER "/" file "\"\n"                    \
		".byte 0\n"                                                    \
		".previous\n");                                                \
	extern const char wf_cuda_text_##symbol[]                              \
		__attribute__((visibility("hidden")));

/* symbol, file */
#define SOURCES(each)                                                          \
	each(kernels, "kernels.cu") each(block, "block.h")                     \
		each(check, "check.h") each(codes, "codes.h") each(            \
			deflate, "deflate.h") each(huffman, "huffman.h")       \
			each(inflate, "inflate.h") each(lanes, "lanes.h")      \
				each(packer, "packer.h")                       \
					each(piece_defs, "piece_defs.h")

SOURCES(TEXT)

#define SOURCE(symbol, file) { "cuda/" file, wf_cuda_text_##symbol },
#define NAME(symbol, file) "cuda/" file,
#define ADDRESS(symbol, file) wf_cuda_text_##symbol,

const struct wf_cuda_source wf_cuda_sources[WF_CUDA_SOURCES] = { SOURCES(
	SOURCE) };
const char *const wf_cuda_source_names[WF_CUDA_SOURCES] = { SOURCES(NAME) };
const char *const wf_cuda_source_texts[WF_CUDA_SOURCES] = { SOURCES(ADDRESS) };
