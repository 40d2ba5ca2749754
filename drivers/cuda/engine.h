/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One GPU and its batches, shared by all channels of the process: jobs of
 * several threads go together. There is no thread of our own: each thread that
 * submits, polls or waits moves the batches on. A batch is launched when it is
 * full, or when the GPU would be idle otherwise, so jobs gather while it works
 * on others.
 */
#ifndef WF_CUDA_ENGINE_H
#define WF_CUDA_ENGINE_H

#include <weft/wd_comp_drv.h>

/* The members of struct wd_alg_comp. */
int wf_cuda_engine_open(void **chan, struct wd_chan *ch, unsigned int can);
void wf_cuda_engine_close(void *chan);
int wf_cuda_engine_submit(void *chan, struct wd_comp_job *const *jobs,
			  unsigned int n);
int wf_cuda_engine_poll(void *chan, struct wd_comp_job **done, unsigned int n);
int wf_cuda_engine_wait(void *chan, int timeout_ms);

/* And of struct wd_drv_dev: whether the GPU can be used, which starts it; pinned
 * memory. */
int wf_cuda_engine_start(void);
int wf_cuda_engine_reserve(size_t size, void **va, uint64_t *dma);
void wf_cuda_engine_release(void *va, size_t size);

#endif
