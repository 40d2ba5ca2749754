/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header declares the parts of CUDA's driver interface (libcuda.so.1) and
 * of its compiler (libnvrtc) that are used: types, numbers and signatures as
 * NVIDIA documents them. Both are loaded at run time, so nothing of theirs is
 * needed to build weft.
 */
#ifndef WF_CUDA_CUDA_DEFS_H
#define WF_CUDA_CUDA_DEFS_H

#include <stddef.h>
#include <stdint.h>

/* CUresult */
#define WF_CU_OK 0
#define WF_CU_NOT_READY 600

/* CUdevice_attribute */
#define WF_CU_MULTIPROCESSORS 16
#define WF_CU_MAJOR 75
#define WF_CU_MINOR 76

/* CUpointer_attribute, and what it answers */
#define WF_CU_POINTER_TYPE 2
#define WF_CU_POINTER_DEVICE 9
#define WF_CU_TYPE_HOST 1
#define WF_CU_TYPE_DEVICE 2

/* Flags */
#define WF_CU_STREAM_APART 1u /* does not wait for the default stream */
#define WF_CU_EVENT_NO_TIME 2u
#define WF_CU_HOST_PORTABLE 1u
#define WF_CU_HOST_MAPPED 2u

_Static_assert(sizeof(size_t) == 8 && sizeof(void *) == 8,
	       "CUDA exists for 64-bit systems");

typedef uint64_t wf_cu_ptr; /* CUdeviceptr */

/* libcuda: names and arguments are NVIDIA's; 0 or a CUresult. */
struct wf_cu {
	int (*cuInit)(unsigned int flags);
	int (*cuDeviceGetCount)(int *count);
	int (*cuDeviceGet)(int *device, int number);
	int (*cuDeviceGetName)(char *name, int len, int device);
	int (*cuDeviceGetAttribute)(int *value, int attribute, int device);
	int (*cuDevicePrimaryCtxRetain)(void **context, int device);
	int (*cuCtxPushCurrent_v2)(void *context);
	int (*cuCtxPopCurrent_v2)(void **context);
	int (*cuModuleLoadData)(void **module, const void *image);
	int (*cuModuleGetFunction)(void **function, void *module,
				   const char *name);
	int (*cuModuleUnload)(void *module);
	int (*cuMemAlloc_v2)(wf_cu_ptr *at, size_t len);
	int (*cuMemFree_v2)(wf_cu_ptr at);
	int (*cuMemHostAlloc)(void **at, size_t len, unsigned int flags);
	int (*cuMemFreeHost)(void *at);
	int (*cuMemHostGetDevicePointer_v2)(wf_cu_ptr *at, void *host,
					    unsigned int flags);
	int (*cuMemcpyHtoDAsync_v2)(wf_cu_ptr to, const void *from, size_t len,
				    void *stream);
	int (*cuMemcpyDtoHAsync_v2)(void *to, wf_cu_ptr from, size_t len,
				    void *stream);
	int (*cuMemcpyDtoDAsync_v2)(wf_cu_ptr to, wf_cu_ptr from, size_t len,
				    void *stream);
	int (*cuStreamCreate)(void **stream, unsigned int flags);
	int (*cuStreamDestroy_v2)(void *stream);
	int (*cuEventCreate)(void **event, unsigned int flags);
	int (*cuEventDestroy_v2)(void *event);
	int (*cuEventRecord)(void *event, void *stream);
	int (*cuEventQuery)(void *event);
	int (*cuLaunchKernel)(void *function, unsigned int grid_x,
			      unsigned int grid_y, unsigned int grid_z,
			      unsigned int block_x, unsigned int block_y,
			      unsigned int block_z, unsigned int shared,
			      void *stream, void **args, void **extra);
	int (*cuPointerGetAttribute)(void *value, int attribute, wf_cu_ptr at);
	int (*cuGetErrorString)(int error, const char **text);
};

/* libnvrtc: 0 or an nvrtcResult. The last two came with 11.1. */
struct wf_nvrtc {
	int (*nvrtcVersion)(int *major, int *minor);
	int (*nvrtcCreateProgram)(void **program, const char *text,
				  const char *name, int count,
				  const char *const *headers,
				  const char *const *names);
	int (*nvrtcDestroyProgram)(void **program);
	int (*nvrtcCompileProgram)(void *program, int count,
				   const char *const *options);
	int (*nvrtcGetProgramLogSize)(void *program, size_t *size);
	int (*nvrtcGetProgramLog)(void *program, char *log);
	int (*nvrtcGetCUBINSize)(void *program, size_t *size);
	int (*nvrtcGetCUBIN)(void *program, char *code);
};

#endif
