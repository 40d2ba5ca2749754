/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A libcuda and libnvrtc for tests on machines without a GPU: a thread does
 * what was put into streams, in order, and later than the call; kernels run as
 * plain C. "Device" memory has no access rights but for this thread's work, so
 * that a driver that touches it is caught. FAKE_CUDA_FAIL_AFTER=n: everything
 * from the Nth launch on fails. It must not be installed.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda/cuda_defs.h"
#include "cuda/deflate.h"
#include "cuda/inflate.h"

#define QUEUE 65536u
#define RANGES 256
#define FAILED 719 /* CUDA_ERROR_LAUNCH_FAILED */
#define INVALID 1

enum kind { COPY, KERNEL, EVENT };

struct op {
	enum kind kind;
	void *to;
	const void *from;
	size_t len;
	bool inflate;
	uint32_t *tokens;
	void *before; /* what was to be copied when the call was made */
};

struct range {
	uintptr_t at;
	size_t len;
	unsigned int type;
};

struct event {
	unsigned long wanted, done; /* how often it was recorded */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct op ops[QUEUE];
static unsigned long put, got;
static struct range ranges[RANGES];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int launches, failing;
static bool opened; /* the device's memory */
static int inflate_kernel, deflate_kernel;

#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static void run_kernel(const struct op *op)
{
	static struct wf_inflate_space inflate;
	static struct wf_deflate_space deflate;
	struct wf_piece *p = op->to;

	for (size_t i = 0; i < op->len; i++) {
		const uint8_t *src = (const uint8_t *)(uintptr_t)p[i].src;
		uint8_t *dst = (uint8_t *)(uintptr_t)p[i].dst;
		const uint8_t *dict = (const uint8_t *)(uintptr_t)p[i].dict;

		if (op->inflate)
			wf_piece_inflate(&p[i], src, dst, dict, &inflate);
		else
			wf_piece_deflate(&p[i], src, dst,
					 op->tokens + i * WF_PIECE_TOKENS,
					 &deflate);
	}
}

/* Rights to the device's memory, for as long as the device works. */
static void open_ranges(int rights)
{
	for (int i = 0; i < RANGES; i++)
		if (ranges[i].type == WF_CU_TYPE_DEVICE)
			mprotect((void *)ranges[i].at, ranges[i].len, rights);
}

static void run_op(const struct op *op)
{
	struct event *event = op->to;

	switch (op->kind) {
	case COPY:
		/* A driver must leave it alone from the call on. */
		if (op->before && memcmp(op->before, op->from, op->len) != 0)
			abort();
		free(op->before);
		memcpy(op->to, op->from, op->len);
		break;
	case KERNEL:
		run_kernel(op);
		break;
	case EVENT:
		pthread_mutex_lock(&lock);
		event->done++;
		pthread_mutex_unlock(&lock);
		break;
	}
}

static void *device(void *arg)
{
	(void)arg;
	for (;;) {
		struct op op;

		pthread_mutex_lock(&lock);
		while (put == got)
			pthread_cond_wait(&more, &lock);
		op = ops[got % QUEUE];
		if (!opened)
			open_ranges(PROT_READ | PROT_WRITE);
		opened = true;
		pthread_mutex_unlock(&lock);
		run_op(&op);
		pthread_mutex_lock(&lock);
		got++;
		if (put == got) {
			open_ranges(PROT_NONE);
			opened = false;
		}
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void start(void)
{
	const char *value = getenv("FAKE_CUDA_FAIL_AFTER");
	pthread_t thread;

	failing = value ? atoi(value) : -1;
	if (pthread_create(&thread, NULL, device, NULL))
		abort();
	pthread_detach(thread);
}

static int add(struct op op)
{
	pthread_mutex_lock(&lock);
	if (put - got == QUEUE)
		abort();
	ops[put++ % QUEUE] = op;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
	return 0;
}

static void note_range(void *at, size_t len, unsigned int type)
{
	int i = 0;

	pthread_mutex_lock(&lock);
	while (ranges[i].type)
		if (++i == RANGES)
			abort();
	ranges[i] = (struct range){ (uintptr_t)at, len, type };
	opened = false;
	pthread_mutex_unlock(&lock);
}

static void *make_range(size_t len, unsigned int type)
{
	void *at = mmap(NULL, len,
			type == WF_CU_TYPE_HOST ? PROT_READ | PROT_WRITE :
						  PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	note_range(at, len, type);
	return at;
}

/* Forgets the range that begins at @at. Returns its length, 0 if there is none. */
static size_t forget_range(uintptr_t at)
{
	size_t len = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < RANGES; i++) {
		if (ranges[i].type && ranges[i].at == at) {
			len = ranges[i].len;
			ranges[i].type = 0;
		}
	}
	pthread_mutex_unlock(&lock);
	return len;
}

static void drop_range(uintptr_t at)
{
	size_t len = forget_range(at);

	/* Memory that is freed twice would be an error of CUDA's. */
	if (!len)
		abort();
	munmap((void *)at, len);
}

int cuInit(unsigned int flags)
{
	(void)flags;
	pthread_once(&once, start);
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = getenv("FAKE_CUDA_NO_GPU") ? 0 : 1;
	return 0;
}

int cuDeviceGet(int *device_, int number)
{
	*device_ = number;
	return 0;
}

int cuDeviceGetName(char *name, int len, int number)
{
	(void)number;
	snprintf(name, (size_t)len, "none");
	return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int number)
{
	(void)number;
	*value = attribute == WF_CU_MAJOR ? 9 : 0;
	return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int number)
{
	(void)number;
	*context = &launches;
	return 0;
}

int cuCtxPushCurrent_v2(void *context)
{
	return context == &launches ? 0 : INVALID;
}

int cuCtxPopCurrent_v2(void **context)
{
	*context = &launches;
	return 0;
}

int cuModuleLoadData(void **module, const void *code)
{
	*module = &launches;
	return strcmp(code, "compiled") ? INVALID : 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
	(void)module;
	*function = strstr(name, "inflate") ? &inflate_kernel : &deflate_kernel;
	return 0;
}

int cuModuleUnload(void *module)
{
	(void)module;
	return 0;
}

int cuMemAlloc_v2(wf_cu_ptr *at, size_t len)
{
	*at = (uintptr_t)make_range(len, WF_CU_TYPE_DEVICE);
	return *at ? 0 : 2;
}

int cuMemFree_v2(wf_cu_ptr at)
{
	drop_range(at);
	return 0;
}

int cuMemHostAlloc(void **at, size_t len, unsigned int flags)
{
	(void)flags;
	*at = make_range(len, WF_CU_TYPE_HOST);
	return *at ? 0 : 2;
}

int cuMemFreeHost(void *at)
{
	drop_range((uintptr_t)at);
	return 0;
}

int cuMemHostRegister_v2(void *at, size_t len, unsigned int flags)
{
	(void)flags;
	note_range(at, len, WF_CU_TYPE_HOST);
	return 0;
}

int cuMemHostUnregister(void *at)
{
	return forget_range((uintptr_t)at) ? 0 : INVALID;
}

/* Another address than the processor's, as in a domain of its own. */
int cuMemHostGetDevicePointer_v2(wf_cu_ptr *at, void *host, unsigned int flags)
{
	(void)flags;
	*at = (uintptr_t)host ^ (uint64_t)1 << 52;
	return 0;
}

int cuMemcpyHtoDAsync_v2(wf_cu_ptr to, const void *from, size_t len, void *s)
{
	(void)s;
	return add((struct op){ COPY, (void *)to, from, len, 0, NULL,
				memcpy(malloc(len), from, len) });
}

int cuMemcpyDtoHAsync_v2(void *to, wf_cu_ptr from, size_t len, void *s)
{
	(void)s;
	return add((struct op){ COPY, to, (const void *)from, len, 0, NULL,
				NULL });
}

int cuMemcpyDtoDAsync_v2(wf_cu_ptr to, wf_cu_ptr from, size_t len, void *s)
{
	(void)s;
	return add((struct op){ COPY, (void *)to, (const void *)from, len, 0,
				NULL, NULL });
}

int cuStreamCreate(void **stream, unsigned int flags)
{
	(void)flags;
	*stream = &launches;
	return 0;
}

int cuStreamDestroy_v2(void *stream)
{
	(void)stream;
	return 0;
}

int cuEventCreate(void **event, unsigned int flags)
{
	(void)flags;
	*event = calloc(1, sizeof(struct event));
	return *event ? 0 : 2;
}

int cuEventDestroy_v2(void *event)
{
	free(event);
	return 0;
}

int cuEventRecord(void *event, void *stream)
{
	(void)stream;
	pthread_mutex_lock(&lock);
	((struct event *)event)->wanted++;
	pthread_mutex_unlock(&lock);
	return add((struct op){ EVENT, event, NULL, 0, 0, NULL, NULL });
}

int cuEventQuery(void *event)
{
	const struct event *e = event;
	bool ready;

	pthread_mutex_lock(&lock);
	ready = e->wanted == e->done;
	pthread_mutex_unlock(&lock);
	return !ready				  ? WF_CU_NOT_READY :
	       failing >= 0 && launches > failing ? FAILED :
						    0;
}

int cuLaunchKernel(void *function, unsigned int x, unsigned int y,
		   unsigned int z, unsigned int tx, unsigned int ty,
		   unsigned int tz, unsigned int shared, void *stream,
		   void **args, void **extra)
{
	bool inflate = function == &inflate_kernel;
	uint32_t count = *(uint32_t *)args[1];

	(void)shared;
	(void)stream;
	(void)extra;
	if (y * z * ty * tz != 1 || tx != (inflate ? 64 : 32) ||
	    x != (inflate ? (count + 1) / 2 : count))
		return INVALID;
	launches++;
	return add((struct op){
		KERNEL, (void *)*(wf_cu_ptr *)args[0], NULL, count, inflate,
		inflate ? NULL : (uint32_t *)*(wf_cu_ptr *)args[2], NULL });
}

int cuPointerGetAttribute(void *value, int attribute, wf_cu_ptr at)
{
	unsigned int type = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < RANGES; i++)
		if (ranges[i].type && at >= ranges[i].at &&
		    at - ranges[i].at < ranges[i].len)
			type = ranges[i].type;
	pthread_mutex_unlock(&lock);
	*(unsigned int *)value = attribute == WF_CU_POINTER_TYPE ? type : 0;
	return type ? 0 : INVALID;
}

int cuGetErrorString(int error, const char **text)
{
	*text = error == FAILED ? "launch failure" : "some error";
	return 0;
}

/* -- the compiler
 * ----------------------------------------------------------- */

int nvrtcVersion(int *major, int *minor)
{
	*major = 0;
	*minor = 0;
	return 0;
}

int nvrtcCreateProgram(void **program, const char *text, const char *name,
		       int count, const char *const *headers,
		       const char *const *names)
{
	int missing = !strstr(text, "weft_inflate_1") ||
		      strcmp(name, "cuda/kernels.cu") != 0;

	for (int i = 0; i < count; i++)
		missing |= !strstr(headers[i], "SPDX") ||
			   strncmp(names[i], "cuda/", 5) != 0;
	*program = &launches;
	return missing;
}

int nvrtcDestroyProgram(void **program)
{
	(void)program;
	return 0;
}

int nvrtcCompileProgram(void *program, int count, const char *const *options)
{
	(void)program;
	return getenv("FAKE_CUDA_NO_COMPILE") || count < 1 ||
	       strcmp(options[0], "-arch=sm_90") != 0;
}

int nvrtcGetProgramLogSize(void *program, size_t *size)
{
	(void)program;
	*size = 8;
	return 0;
}

int nvrtcGetProgramLog(void *program, char *log)
{
	(void)program;
	strcpy(log, "it says");
	return 0;
}

int nvrtcGetCUBINSize(void *program, size_t *size)
{
	(void)program;
	*size = sizeof("compiled");
	return 0;
}

int nvrtcGetCUBIN(void *program, char *code)
{
	(void)program;
	strcpy(code, "compiled");
	return 0;
}
