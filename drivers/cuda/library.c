/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds CUDA's libraries. A library that was loaded stays loaded, because
 * libcuda has threads of its own.
 */
#include "cuda/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOOLKIT "/usr/local/cuda/lib64/"

struct symbol {
	const char *name;
	size_t at; /* of its pointer */
};

#define CU(name)                                                               \
	{                                                                      \
#name, offsetof(struct wf_cu, name)                            \
	}
#define NVRTC(name)                                                            \
	{                                                                      \
#name, offsetof(struct wf_nvrtc, name)                         \
	}

static const struct symbol cu_symbols[] = {
	CU(cuInit),
	CU(cuDeviceGetCount),
	CU(cuDeviceGet),
	CU(cuDeviceGetName),
	CU(cuDeviceGetAttribute),
	CU(cuDevicePrimaryCtxRetain),
	CU(cuCtxPushCurrent_v2),
	CU(cuCtxPopCurrent_v2),
	CU(cuModuleLoadData),
	CU(cuModuleGetFunction),
	CU(cuModuleUnload),
	CU(cuMemAlloc_v2),
	CU(cuMemFree_v2),
	CU(cuMemHostAlloc),
	CU(cuMemFreeHost),
	CU(cuMemHostGetDevicePointer_v2),
	CU(cuMemcpyHtoDAsync_v2),
	CU(cuMemcpyDtoHAsync_v2),
	CU(cuMemcpyDtoDAsync_v2),
	CU(cuStreamCreate),
	CU(cuStreamDestroy_v2),
	CU(cuEventCreate),
	CU(cuEventDestroy_v2),
	CU(cuEventRecord),
	CU(cuEventQuery),
	CU(cuLaunchKernel),
	CU(cuPointerGetAttribute),
	CU(cuGetErrorString),
};

static const struct symbol nvrtc_symbols[] = {
	NVRTC(nvrtcVersion),	       NVRTC(nvrtcCreateProgram),
	NVRTC(nvrtcDestroyProgram),    NVRTC(nvrtcCompileProgram),
	NVRTC(nvrtcGetProgramLogSize), NVRTC(nvrtcGetProgramLog),
	NVRTC(nvrtcGetCUBINSize),      NVRTC(nvrtcGetCUBIN),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

void wf_cuda_library_say(const char *fmt, ...)
{
	char line[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	fprintf(stderr, "weft: driver cuda: %s\n", line);
}

bool wf_cuda_library_is_likely(void)
{
	/* dxg: GPUs of Windows under WSL. */
	return secure_getenv("WD_CUDA_LIBRARY") ||
	       !access("/dev/nvidiactl", F_OK) || !access("/dev/dxg", F_OK);
}

/* All or nothing. */
static bool find_all(void *handle, void *table, const struct symbol *symbols,
		     size_t count)
{
	for (size_t i = 0; i < count; i++) {
		void *address = dlsym(handle, symbols[i].name);

		if (!address)
			return false;
		memcpy((char *)table + symbols[i].at, &address,
		       sizeof(address));
	}
	return true;
}

int wf_cuda_library_load(struct wf_cu *cu, const char **why)
{
	const char *asked = secure_getenv("WD_CUDA_LIBRARY");
	void *handle =
		dlopen(asked ? asked : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	*why = "there is no libcuda.so.1, which comes with NVIDIA's driver";
	if (!handle)
		return -ENODEV;
	*why = "libcuda.so.1 is too old";
	return find_all(handle, cu, cu_symbols, COUNT(cu_symbols)) ? 0 :
								     -ENODEV;
}

int wf_cuda_library_load_compiler(struct wf_nvrtc *nvrtc, const char **why)
{
	static const char *const names[] = {
		"libnvrtc.so",	    "libnvrtc.so.13",	   "libnvrtc.so.12",
		"libnvrtc.so.11.2", TOOLKIT "libnvrtc.so",
	};
	const char *asked = secure_getenv("WD_CUDA_NVRTC");
	void *handle = asked ? dlopen(asked, RTLD_NOW | RTLD_LOCAL) : NULL;

	for (size_t i = 0; i < COUNT(names) && !handle && !asked; i++)
		handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	*why = "there is no libnvrtc to compile the kernels with";
	if (!handle)
		return -ENODEV;
	*why = "libnvrtc is older than 11.1";
	return find_all(handle, nvrtc, nvrtc_symbols, COUNT(nvrtc_symbols)) ?
		       0 :
		       -ENODEV;
}
