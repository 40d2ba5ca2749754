/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header finds where GPUs are in the machine.
 */
#ifndef WF_CUDA_NODE_H
#define WF_CUDA_NODE_H

/* The NUMA node that all GPUs of NVIDIA's are at, as sysfs (WEFT_SYSFS or /sys)
 * says; -1 if they are at several, or none is said. CUDA is not asked: it would
 * have to start for that. */
int wf_cuda_node_read(void);

#endif
