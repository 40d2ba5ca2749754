/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header declares the names that CUDA's compiler knows by itself, as far
 * as the kernels use them, so that clang can compile them for a GPU where there
 * is no CUDA. For a test only.
 */
#ifndef WF_CUDA_BUILTINS_TEST_H
#define WF_CUDA_BUILTINS_TEST_H

#ifdef __cplusplus

#define __CUDACC__ 1
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

struct three {
	unsigned int x, y, z;
};
extern __device__ const struct three threadIdx, blockIdx, blockDim;

__device__ void __syncwarp(void);
__device__ void __syncthreads(void);
__device__ unsigned int __ballot_sync(unsigned int, int);
__device__ unsigned int __match_any_sync(unsigned int, unsigned int);
__device__ unsigned int __shfl_up_sync(unsigned int, unsigned int,
				       unsigned int);
__device__ unsigned int atomicAdd(unsigned int *, unsigned int);
__device__ unsigned int atomicOr(unsigned int *, unsigned int);
__device__ unsigned int __brev(unsigned int);
__device__ int __popc(int);
__device__ int __ffs(int);
__device__ int __clz(int);
__device__ unsigned int __funnelshift_r(unsigned int, unsigned int,
					unsigned int);

#endif

#endif
