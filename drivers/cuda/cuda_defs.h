/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is used of CUDA's driver interface (libcuda.so.1) and of its compiler
 * (libnvrtc): types, numbers and signatures as NVIDIA documents them. Both are
 * loaded at run time, so nothing of theirs is needed to build weft.
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

_Static_assert(sizeof(size_t) == 8 && sizeof(void *) == 8,
	       "CUDA exists for 64-bit systems");

typedef uint64_t wf_cu_ptr; /* CUdeviceptr */

/* name, arguments */
#define WF_CU_CALLS(call)                                                                            \
	call(cuInit, (unsigned int)) call(cuDeviceGetCount, (int *)) call(                           \
		cuDeviceGet,                                                                         \
		(int *,                                                                              \
		 int)) call(cuDeviceGetName,                                                         \
			    (char *, int,                                                            \
			     int)) call(cuDeviceGetAttribute,                                        \
					(int *, int,                                                 \
					 int)) call(cuDevicePrimaryCtxRetain,                        \
						    (void **, int))                                  \
		call(cuCtxPushCurrent_v2, (void *)) call(                                            \
			cuCtxPopCurrent_v2,                                                          \
			(void **)) call(cuModuleLoadData,                                            \
					(void **,                                                    \
					 const void                                                  \
						 *)) call(cuModuleGetFunction,                       \
							  (void **, void *,                          \
							   const char *))                            \
			call(cuModuleUnload, (void *)) call(                                         \
				cuMemAlloc_v2,                                                       \
				(wf_cu_ptr *,                                                        \
				 size_t)) call(cuMemFree_v2,                                         \
					       (wf_cu_ptr)) call(cuMemHostAlloc,                     \
								 (void **,                           \
								  size_t,                            \
								  unsigned int))                     \
				call(cuMemFreeHost, (void *)) call(                                  \
					cuMemcpyHtoDAsync_v2,                                        \
					(wf_cu_ptr, const void *, size_t,                            \
					 void *)) call(cuMemcpyDtoHAsync_v2,                         \
						       (void *, wf_cu_ptr,                           \
							size_t, void *))                             \
					call(cuMemcpyDtoDAsync_v2,                                   \
					     (wf_cu_ptr, wf_cu_ptr, size_t,                          \
					      void *)) call(cuStreamCreate,                          \
							    (void **,                                \
							     unsigned int)) call(cuStreamDestroy_v2, \
										 (void *))           \
						call(cuEventCreate, (void **, unsigned int)) call(   \
							cuEventDestroy_v2,                           \
							(void *)) call(cuEventRecord,                \
								       (void *, void *))             \
							call(cuEventQuery, (void *)) call(           \
								cuLaunchKernel,                      \
								(void *,                             \
								 unsigned int,                       \
								 unsigned int,                       \
								 unsigned int,                       \
								 unsigned int,                       \
								 unsigned int,                       \
								 unsigned int,                       \
								 unsigned int,                       \
								 void *,                             \
								 void **,                            \
								 void **))                           \
								call(cuPointerGetAttribute,          \
								     (void *,                        \
								      int,                           \
								      wf_cu_ptr))                    \
									call(cuGetErrorString,       \
									     (int,                   \
									      const char             \
										      **))

/* name, arguments; the last two are not in versions before 11.1 */
#define WF_NVRTC_CALLS(call)                                                   \
	call(nvrtcCreateProgram,                                               \
	     (void **, const char *, const char *, int, const char *const *,   \
	      const char *const *)) call(nvrtcDestroyProgram, (void **))       \
		call(nvrtcCompileProgram, (void *, int, const char *const *))  \
			call(nvrtcGetProgramLogSize, (void *, size_t *)) call( \
				nvrtcGetProgramLog, (void *, char *))          \
				call(nvrtcGetCUBINSize, (void *, size_t *))    \
					call(nvrtcGetCUBIN, (void *, char *))

#endif
