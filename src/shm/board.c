/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making and mapping a board.
 */
#include "shm/board.h"

#include <errno.h>

#include "base/memfd.h"
#include "os/file.h"
#include "os/memory.h"

static int map_board(struct wf_shm_board_map *map, int memfd)
{
	void *board = NULL;
	int err = wf_os_mmap(&board, WF_SHM_BOARD_BYTES, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_POPULATE, memfd);

	if (!err)
		map->board = board;
	return err;
}

int wf_shm_board_open(struct wf_shm_board_map *map)
{
	int err;

	*map = (struct wf_shm_board_map){ .memfd = -1 };
	map->memfd = wf_base_memfd_create("weft-board", WF_SHM_BOARD_BYTES);
	if (map->memfd < 0)
		return map->memfd;
	/* One peer could keep all later ones from mapping it. */
	err = wf_base_memfd_seal_seals(map->memfd);
	if (!err)
		err = map_board(map, map->memfd);
	if (err)
		wf_shm_board_close(map);
	return err;
}

int wf_shm_board_map(struct wf_shm_board_map *map, int memfd)
{
	*map = (struct wf_shm_board_map){ .memfd = -1 };
	if (!wf_base_memfd_is_sound(memfd, WF_SHM_BOARD_BYTES))
		return -EPROTO;
	return map_board(map, memfd);
}

void wf_shm_board_close(struct wf_shm_board_map *map)
{
	if (map->board)
		wf_os_munmap(map->board, WF_SHM_BOARD_BYTES);
	if (map->memfd >= 0)
		wf_os_close(map->memfd);
	*map = (struct wf_shm_board_map){ .memfd = -1 };
}
