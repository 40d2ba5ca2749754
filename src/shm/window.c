/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a peer that we map, too.
 */
#include "shm/window.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fabric.h>

#include "base/log.h"
#include "os/file.h"
#include "os/memory.h"
#include "os/process.h"
#include "shm/out.h"

/* Windows that are looked at by one sweep. */
#define SWEPT 4

static void unmap(struct wf_shm_window *w)
{
	if (w->map)
		wf_os_munmap(w->map, w->map_bytes);
	*w = (struct wf_shm_window){ 0 };
}

/* Where memory is accounted strictly, a page that was never touched may be
 * refused when it is: to us that would be a signal. */
static bool is_strict(void)
{
	char text[8];

	return wf_os_read_text("/proc/sys/vm/overcommit_memory", text,
			       sizeof(text)) > 0 &&
	       text[0] == '2';
}

/* The file may not shrink under us: memory that is gone is a signal, too. Huge
 * pages may be missing when they are touched. */
static bool is_sound(int fd, uint64_t end)
{
	int seals = wf_os_seals(fd);
	struct wf_os_stat st;

	return seals >= 0 && (seals & WF_OS_SEAL_SHRINK) &&
	       !wf_os_fstat(fd, &st) && st.in_memory && end <= st.bytes;
}

/* 0 or -errno. */
static int map_file(struct wf_shm_out *out, const struct wf_reg_entry *entry,
		    struct wf_shm_window *w)
{
	const struct wf_reg_file *file = &entry->file;
	uint64_t len = entry->segs[0].len;
	uint64_t skip = file->offset % wf_os_page_bytes();
	bool write = entry->access & FI_REMOTE_WRITE;
	void *map = NULL;
	int fd, err;

	if (!len || file->offset > INT64_MAX - len || is_strict())
		return -EINVAL;
	fd = wf_os_fd_open(out->mover.pid, file->fd, file->inode, write);
	if (fd < 0)
		return fd;
	/* The pid was the peer's if it still is. */
	err = wf_shm_mover_prove(&out->mover);
	if (!err && !is_sound(fd, file->offset + len))
		err = -EINVAL;
	if (!err)
		err = wf_os_mmap_at(&map, len + skip,
				    write ? PROT_READ | PROT_WRITE : PROT_READ,
				    MAP_SHARED | MAP_NORESERVE, fd,
				    file->offset - skip);
	wf_os_close(fd);
	if (err)
		return err;
	/* A child would keep the pages. */
	wf_os_madvise(map, len + skip, MADV_DONTFORK);
	w->map = map;
	w->map_bytes = len + skip;
	w->base = (uint8_t *)map + skip;
	return 0;
}

static struct wf_shm_windows *windows_of(struct wf_shm_out *out)
{
	if (!out->windows)
		out->windows = calloc(1, sizeof(*out->windows));
	return out->windows;
}

void wf_shm_window_open(struct wf_shm_out *out, uint64_t key)
{
	struct wf_shm_windows *windows = windows_of(out);
	struct wf_reg_entry entry;
	struct wf_shm_window *w;
	uint32_t slot;
	int err;

	if (!windows || out->mover.way != WF_SHM_WAY_CMA)
		return;
	w = &windows->all[key % WF_SHM_WINDOWS];
	if (w->is_used &&
	    wf_op_reg_is_current(&out->regs.view, w->slot, w->seq))
		return; /* of another key, or it cannot be mapped */
	unmap(w);
	if (wf_op_reg_copy(&out->regs.view, key, &entry, &slot) ||
	    !(entry.flags & WF_REG_FILE) || entry.seg_count != 1)
		return;
	w->is_used = true;
	w->key = key;
	w->slot = slot;
	w->seq = wf_shared_load(&entry.seq, relaxed);
	w->addr = entry.flags & WF_REG_OFFSETS ? 0 : entry.segs[0].addr;
	w->len = entry.segs[0].len;
	w->access = entry.access;
	w->events = entry.flags & WF_REG_EVENTS;
	err = map_file(out, &entry, w);
	if (err)
		wf_info("memory of a peer cannot be mapped (error %d): it is "
			"copied by CMA",
			-err);
}

void wf_shm_window_sweep(struct wf_shm_out *out)
{
	struct wf_shm_windows *windows = out->windows;

	if (!windows)
		return;
	for (int i = 0; i < SWEPT; i++) {
		struct wf_shm_window *w =
			&windows->all[windows->swept++ % WF_SHM_WINDOWS];

		if (w->is_used &&
		    !wf_op_reg_is_current(&out->regs.view, w->slot, w->seq))
			unmap(w);
	}
}

void wf_shm_window_forked(struct wf_shm_out *out)
{
	free(out->windows);
	out->windows = NULL;
}

void wf_shm_window_close_all(struct wf_shm_out *out)
{
	for (int i = 0; out->windows && i < WF_SHM_WINDOWS; i++)
		unmap(&out->windows->all[i]);
	free(out->windows);
	out->windows = NULL;
}
