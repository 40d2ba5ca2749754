/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels to UACCE device nodes: an open file is a queue of the device.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "chan/core.h"
#include "chan/uacce_defs.h"

static bool is_seed(const struct wd_chan *ch)
{
	return ch->dev_info->kind == WD_DEV_UACCE_SEED;
}

static int node_open(struct wd_chan *ch)
{
	ch->fd = open(ch->dev_info->dev_path, O_RDWR | O_CLOEXEC);
	if (ch->fd >= 0)
		return 0;
	return errno == ENOENT || errno == ENXIO ? -ENODEV : -errno;
}

/* Closing the descriptor does the same, but not before every mapping of it is
 * gone. */
static int node_stop(struct wd_chan *ch)
{
	unsigned long command =
		is_seed(ch) ? WF_UACCE_SEED_PUT_Q : WF_UACCE_PUT_Q;

	return ioctl(ch->fd, command) ? -errno : 0;
}

static void node_close(struct wd_chan *ch)
{
	(void)ch;
}

static int node_start(struct wd_chan *ch)
{
	unsigned long command =
		is_seed(ch) ? WF_UACCE_SEED_START : WF_UACCE_START_Q;

	return ioctl(ch->fd, command) ? -errno : 0;
}

static int node_wait(struct wd_chan *ch, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = ch->fd, .events = POLLIN };
	int n = poll(&poll_fd, 1, timeout_ms);

	if (n < 0)
		return -errno;
	if (!n)
		return -ETIMEDOUT;
	return poll_fd.revents & (POLLERR | POLLHUP | POLLNVAL) ? -ENODEV : 0;
}

/* The doorbell of hardware needs no help. */
static int node_kick(struct wd_chan *ch)
{
	(void)ch;
	return 0;
}

static bool node_alive(struct wd_chan *ch)
{
	struct pollfd poll_fd = { .fd = ch->fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) <= 0 ||
	       !(poll_fd.revents & (POLLERR | POLLHUP | POLLNVAL));
}

static int node_reserve(struct wd_chan *ch, size_t size, void **va,
			uint64_t *dma)
{
	unsigned long address = 0;
	int err;

	if (!ch->dev_info->qfrs_size[UACCE_QFRT_SS])
		return -EOPNOTSUPP;
	*va = NULL;
	err = wf_chan_memory_map(
		ch->fd, ch->dev_info->qfrs_offset[UACCE_QFRT_SS], size, va);
	if (err)
		return err;
	if (ioctl(ch->fd, WF_UACCE_SEED_GET_SS_DMA, &address)) {
		err = -errno;
		munmap(*va, size);
		return err;
	}
	*dma = address;
	return 0;
}

static int node_share(struct wd_chan *owner, struct wd_chan *target)
{
	if (!is_seed(owner) || !is_seed(target))
		return -EINVAL;
	return ioctl(owner->fd, WF_UACCE_SEED_SHARE_SVAS, target->fd) ? -errno :
									0;
}

const struct wf_chan_ops wf_chan_node_ops = {
	.open = node_open,
	.stop = node_stop,
	.close = node_close,
	.start = node_start,
	.wait = node_wait,
	.kick = node_kick,
	.alive = node_alive,
	.reserve = node_reserve,
	.share = node_share,
};
