/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver "cuda": compression on NVIDIA's GPUs, as a plug-in. It is there
 * for many independent pieces at once; one piece alone is slower on a GPU than
 * on a processor, so it is below the libraries and is used when it is asked
 * for.
 */
#include <errno.h>

#include <weft/wd_comp_drv.h>
#include <weft/wd_drv.h>

#include "cuda/batch.h"
#include "cuda/engine.h"
#include "cuda/library.h"
#include "cuda/node.h"

#define API "weft_cuda_v1"

/* Asked in every process that compresses: it must cost nothing. */
static int look(void)
{
	return wf_cuda_library_is_likely() ? 0 : -ENODEV;
}

static const struct wd_alg_comp table = {
	.name = "cuda",
	.priority = 40,
	.node = -1,
	.can = WD_COMP_CAN_DEFLATE | WD_COMP_CAN_INFLATE |
	       WD_COMP_CAN_INFLATE_DICT | WD_COMP_CAN_INFLATE_PIECE |
	       WD_COMP_CAN_CHECK | WD_COMP_SIZED,
	.levels = 1u << 1,
	.min_window = 15,
	.init = look,
	.version = WD_COMP_DRV_VERSION,
	.size = sizeof(struct wd_alg_comp),
	.about = "NVIDIA GPUs, for many pieces at once",
	.api = API,
	.limits = {
		.in_flight = WF_BATCH_PIECES,
		.src_max = 32u << 20,
		/* A whole stream of that size is decompressed by one warp. */
		.timeout_ms = 60000,
		.memory = WD_COMP_MEM_RESERVED,
	},
	.open_chan = wf_cuda_engine_open,
	.close_chan = wf_cuda_engine_close,
	.submit = wf_cuda_engine_submit,
	.poll = wf_cuda_engine_poll,
	.wait = wf_cuda_engine_wait,
};

/* The GPU of this process as a device with channels: their memory is pinned. */
static const struct wd_drv_dev dev = {
	.size = sizeof(struct wd_drv_dev),
	.name = "cuda-0",
	.api = API,
	.algs = "deflate\ninflate",
	.node = wf_cuda_node_read,
	.open = wf_cuda_engine_start,
	.reserve = wf_cuda_engine_reserve,
	.release = wf_cuda_engine_release,
};

static const struct wd_alg_comp *const tables[] = { &table, NULL };
static const struct wd_drv_dev *const devs[] = { &dev, NULL };

const struct wd_driver wd_driver = {
	.version = WD_DRIVER_VERSION,
	.size = sizeof(struct wd_driver),
	.comp = tables,
	.devs = devs,
};
