/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libfabric's functions, loaded when the first of them is called. Linked in
 * the plain way, libfabric brings libraries that take a fifth of a second to
 * start (libinfinipath measures its clock): every `weft gzip` would pay that.
 * It owns the handle; a function that is used and missing here fails to link.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
	int (*getinfo)(uint32_t, const char *, const char *, uint64_t,
		       const struct fi_info *, struct fi_info **);
	void (*freeinfo)(struct fi_info *);
	struct fi_info *(*dupinfo)(const struct fi_info *);
	int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	const char *(*strerror)(int);
	uint32_t (*version)(void);
	int (*getparams)(struct fi_param **, int *);
	void (*freeparams)(struct fi_param *);
} lib;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The versions are those that a plain link against 1.17 asks for. */
static void *symbol(void *handle, const char *name, const char *version)
{
	void *found = dlvsym(handle, name, version);

	if (!found) {
		fprintf(stderr, "weft: libfabric has no %s@%s\n", name,
			version);
		exit(1);
	}
	return found;
}

static void load(void)
{
	void *h = dlopen("libfabric.so.1", RTLD_NOW | RTLD_GLOBAL);

	if (!h) {
		fprintf(stderr, "weft: %s; install libfabric1\n", dlerror());
		exit(1);
	}
	lib.getinfo = symbol(h, "fi_getinfo", "FABRIC_1.3");
	lib.freeinfo = symbol(h, "fi_freeinfo", "FABRIC_1.3");
	lib.dupinfo = symbol(h, "fi_dupinfo", "FABRIC_1.3");
	lib.fabric = symbol(h, "fi_fabric", "FABRIC_1.1");
	lib.strerror = symbol(h, "fi_strerror", "FABRIC_1.0");
	lib.version = symbol(h, "fi_version", "FABRIC_1.0");
	lib.getparams = symbol(h, "fi_getparams", "FABRIC_1.0");
	lib.freeparams = symbol(h, "fi_freeparams", "FABRIC_1.0");
}

int fi_getinfo(uint32_t version, const char *node, const char *service,
	       uint64_t flags, const struct fi_info *hints,
	       struct fi_info **info)
{
	pthread_once(&once, load);
	return lib.getinfo(version, node, service, flags, hints, info);
}

void fi_freeinfo(struct fi_info *info)
{
	pthread_once(&once, load);
	lib.freeinfo(info);
}

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	pthread_once(&once, load);
	return lib.dupinfo(info);
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
	      void *context)
{
	pthread_once(&once, load);
	return lib.fabric(attr, fabric, context);
}

const char *fi_strerror(int errnum)
{
	pthread_once(&once, load);
	return lib.strerror(errnum);
}

uint32_t fi_version(void)
{
	pthread_once(&once, load);
	return lib.version();
}

int fi_getparams(struct fi_param **params, int *count)
{
	pthread_once(&once, load);
	return lib.getparams(params, count);
}

void fi_freeparams(struct fi_param *params)
{
	pthread_once(&once, load);
	lib.freeparams(params);
}
