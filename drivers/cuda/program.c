/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compiles the kernels, and keeps what came out in $XDG_CACHE_HOME/weft or
 * ~/.cache/weft. A file there is used if it and its folder belong to this user
 * and nobody else can write to them; its name has a hash of the sources, the
 * kind of GPU and the compiler. Set-user-ID programs have no cache.
 */
#include "cuda/program.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda/sources.h"

#define CODE_MOST (64u << 20)
#define FATBIN "cuda.fatbin"

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3ull;
	return hash;
}

/* Reads a whole file that passes; malloc()ed, with a 0 behind it. */
static char *read_code(int fd, bool mine, size_t *len)
{
	struct stat st;
	char *code = NULL;
	size_t at = 0;
	ssize_t n = 1;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    st.st_size < (off_t)CODE_MOST &&
	    (!mine || (st.st_uid == geteuid() && !(st.st_mode & 022))))
		code = malloc((size_t)st.st_size + 1);
	while (code && at < (size_t)st.st_size && n > 0) {
		n = read(fd, code + at, (size_t)st.st_size - at);
		at += n > 0 ? (size_t)n : 0;
	}
	if (code)
		code[at] = 0;
	*len = at;
	return code;
}

/* The folder of the cache, opened, or -1. */
static int open_cache(void)
{
	const char *home = secure_getenv("XDG_CACHE_HOME");
	char path[4096];
	struct stat st;
	int fd;

	if (home && *home == '/') {
		snprintf(path, sizeof(path), "%s/weft", home);
	} else if ((home = secure_getenv("HOME")) && *home == '/') {
		snprintf(path, sizeof(path), "%s/.cache", home);
		mkdir(path, 0700);
		snprintf(path, sizeof(path), "%s/.cache/weft", home);
	} else {
		return -1;
	}
	mkdir(path, 0700);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 &&
	    (fstat(fd, &st) || st.st_uid != geteuid() || st.st_mode & 022)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static char *read_cached(int folder, const char *name, size_t *len)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char *code = fd < 0 ? NULL : read_code(fd, true, len);

	if (fd >= 0)
		close(fd);
	return code;
}

/* As a whole or not at all. */
static void write_cached(int folder, const char *name, const char *code,
			 size_t len)
{
	char part[128];
	int fd;

	snprintf(part, sizeof(part), "%s.%ld", name, (long)getpid());
	fd = openat(folder, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return;
	if (write(fd, code, len) != (ssize_t)len ||
	    renameat(folder, part, folder, name))
		unlinkat(folder, part, 0);
	close(fd);
}

/* NULL: *@why says why, and the compiler's words are on standard error. */
static char *compile(const struct wf_nvrtc *nvrtc, const char *arch,
		     size_t *len, const char **why)
{
	const char *const options[] = { arch, "-std=c++14" };
	char *code = NULL, log[2048] = "";
	void *program = NULL;
	size_t log_len = 0;

	*why = "the kernels cannot be compiled";
	if (nvrtc->nvrtcCreateProgram(
		    &program, wf_cuda_source_texts[0], wf_cuda_source_names[0],
		    WF_CUDA_SOURCES - 1, &wf_cuda_source_texts[1],
		    &wf_cuda_source_names[1]))
		return NULL;
	if (nvrtc->nvrtcCompileProgram(program, 2, options)) {
		if (!nvrtc->nvrtcGetProgramLogSize(program, &log_len) &&
		    log_len < sizeof(log))
			nvrtc->nvrtcGetProgramLog(program, log);
		wf_cuda_library_say("%s: %s", *why, log);
	} else if (!nvrtc->nvrtcGetCUBINSize(program, len) && *len &&
		   *len < CODE_MOST) {
		code = malloc(*len + 1);
		if (code && nvrtc->nvrtcGetCUBIN(program, code)) {
			free(code);
			code = NULL;
		}
	}
	nvrtc->nvrtcDestroyProgram(&program);
	return code;
}

static int use_code(struct wf_cuda_program *p, const struct wf_cu *cu,
		    const char *code)
{
	if (cu->cuModuleLoadData(&p->module, code))
		return -EINVAL;
	if (!cu->cuModuleGetFunction(&p->inflate, p->module, WF_CUDA_INFLATE) &&
	    !cu->cuModuleGetFunction(&p->deflate, p->module, WF_CUDA_DEFLATE))
		return 0;
	cu->cuModuleUnload(p->module);
	return -EINVAL;
}

/* Beside the plug-in: a user who may write there could write the plug-in,
 * too. */
static int use_prebuilt(struct wf_cuda_program *p, const struct wf_cu *cu)
{
	char path[4096], *end, *code;
	Dl_info info;
	size_t len;
	int fd, ret;

	if (!dladdr((const void *)wf_cuda_source_names, &info) ||
	    !info.dli_fname)
		return -ENOENT;
	snprintf(path, sizeof(path) - sizeof(FATBIN), "%s", info.dli_fname);
	end = strrchr(path, '/');
	if (!end)
		return -ENOENT;
	strcpy(end + 1, FATBIN);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	code = fd < 0 ? NULL : read_code(fd, false, &len);
	if (fd >= 0)
		close(fd);
	ret = code ? use_code(p, cu, code) : -ENOENT;
	free(code);
	return ret;
}

int wf_cuda_program_load(struct wf_cuda_program *program,
			 const struct wf_cu *cu, int major, int minor,
			 const char **why)
{
	uint64_t hash = 0xcbf29ce484222325ull;
	char arch[64], name[96], *code;
	struct wf_nvrtc nvrtc;
	int folder, ret, version[2] = { 0, 0 };
	size_t len;

	if (!use_prebuilt(program, cu))
		return 0;
	ret = wf_cuda_library_load_compiler(&nvrtc, why);
	if (ret)
		return ret;
	nvrtc.nvrtcVersion(&version[0], &version[1]);
	for (unsigned int i = 0; i < WF_CUDA_SOURCES; i++)
		hash = hash_text(hash, wf_cuda_source_texts[i]);
	snprintf(arch, sizeof(arch), "-arch=sm_%d%d", major, minor);
	snprintf(name, sizeof(name), "cuda-%016llx-%d%d-%d.%d",
		 (unsigned long long)hash, major, minor, version[0],
		 version[1]);
	folder = open_cache();
	code = folder < 0 ? NULL : read_cached(folder, name, &len);
	ret = code ? use_code(program, cu, code) : -ENOENT;
	free(code);
	if (!ret)
		goto out;
	code = compile(&nvrtc, arch, &len, why);
	ret = code ? use_code(program, cu, code) : -ENODEV;
	if (!ret && folder >= 0)
		write_cached(folder, name, code, len);
	free(code);
out:
	if (folder >= 0)
		close(folder);
	return ret ? -ENODEV : 0;
}
