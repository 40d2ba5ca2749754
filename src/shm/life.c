/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making and mapping a life page.
 */
#include "shm/life.h"

#include <errno.h>

#include "base/memfd.h"
#include "os/file.h"
#include "os/inline.h"
#include "os/memory.h"
#include "os/process.h"
#include "shm/conn_defs.h"

#define PAGE_BYTES ((size_t)4096)

/* The page of this process (NULL: none), and the descriptor by which peers find
 * it. A forked child has a copy of the descriptor, but not of the page. */
WF_PER_PROCESS static void *own_page;
WF_PER_PROCESS static int own_fd;
WF_PER_PROCESS static uint64_t own_inode;

void wf_shm_life_forked(void)
{
	struct wf_os_stat st;

	/* The application may have closed it, and the descriptor may now be
	 * that of another file. */
	if (own_page && wf_os_seals(own_fd) >= 0 && !wf_os_fstat(own_fd, &st) &&
	    st.inode == own_inode)
		wf_os_close(own_fd);
	own_page = NULL;
}

void wf_shm_life_end(void)
{
	if (!own_page)
		return;
	if (wf_os_life_end(own_page))
		wf_os_munmap(own_page, PAGE_BYTES);
	own_page = NULL;
	wf_os_close(own_fd);
}

/* Peers may only read it. */
static int seal(int fd)
{
	int err = wf_base_memfd_seal_writing(fd);

	return err ? err : wf_base_memfd_seal_seals(fd);
}

int wf_shm_life_make(struct wf_shm_life_name *name)
{
	struct wf_os_stat st;
	void *page = NULL;
	int fd, err;

	fd = wf_base_memfd_create("weft-life", PAGE_BYTES);
	if (fd < 0)
		return fd;
	err = wf_os_fstat(fd, &st);
	if (!err)
		err = wf_os_mmap(&page, PAGE_BYTES, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_POPULATE, fd);
	if (err)
		goto err_fd;
	err = wf_os_madvise(page, PAGE_BYTES, MADV_DONTFORK);
	if (!err)
		err = seal(fd);
	if (!err)
		err = wf_os_life_begin(page, PAGE_BYTES);
	if (err)
		goto err_page;
	own_page = page;
	own_fd = fd;
	own_inode = st.inode;
	*name = (struct wf_shm_life_name){
		.inode = st.inode,
		.fd = (uint32_t)fd,
		.is_there = 1,
	};
	return 0;

err_page:
	wf_os_munmap(page, PAGE_BYTES);
err_fd:
	wf_os_close(fd);
	return err;
}

int wf_shm_life_map(struct wf_shm_life *life, pid_t pid,
		    const struct wf_shm_life_name *name)
{
	void *page = NULL;
	int fd, err;

	if (!name->is_there)
		return -ENOENT;
	fd = wf_os_fd_open(pid, name->fd, name->inode, false);
	if (fd < 0)
		return fd;
	err = wf_base_memfd_is_sound(fd, PAGE_BYTES) ?
		      wf_os_mmap(&page, PAGE_BYTES, PROT_READ, MAP_SHARED, fd) :
		      -EPROTO;
	wf_os_close(fd);
	if (err)
		return err;
	life->page = page;
	wf_os_madvise(page, PAGE_BYTES, MADV_DONTFORK);
	err = wf_os_life_find(page, PAGE_BYTES, &life->mark);
	if (err)
		wf_shm_life_unmap(life);
	return err;
}

void wf_shm_life_unmap(struct wf_shm_life *life)
{
	if (life->page)
		wf_os_munmap(life->page, PAGE_BYTES);
	*life = (struct wf_shm_life){ 0 };
}
