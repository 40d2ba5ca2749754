/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For drivers of Warpdrive devices. A driver allocates a struct of its own
 * whose first member is struct wd_chan, hands that to wd_request_channel(),
 * maps MMIO and DUS with mmap() on wd_chan.fd, starts the queue and talks to
 * the device by itself:
 *
 *	struct vendor_chan {
 *		struct wd_chan ch;
 *		... rings, doorbells ...
 *	};
 *
 *	mmio = mmap(NULL, dev->qfrs_size[UACCE_QFRT_MMIO],
 *		    PROT_READ | PROT_WRITE, MAP_SHARED, vc->ch.fd,
 *		    dev->qfrs_offset[UACCE_QFRT_MMIO]);
 *
 * The same calls serve real UACCE nodes and `weft devd`.
 *
 * A device with neither a node nor such a process, a GPU behind the library of
 * its vendor for example, is a struct wd_drv_dev of a plug-in
 * (weft/wd_comp_drv.h).
 */
#ifndef WEFT_WD_DRV_H
#define WEFT_WD_DRV_H

#include <weft/wd.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* The device begins to take descriptors; the regions must be mapped. 0;
 * -EINVAL: bad channel or started; -ENODEV; what the device says. */
int wd_drv_start(struct wd_chan *ch);

/* The device lets go of the channel: when this returns it takes no descriptor
 * any more and touches no memory. Mapped and reserved memory stays until
 * wd_release_channel(), which stops first if nobody did. 0, -EINVAL,
 * -ENODEV. */
int wd_drv_stop(struct wd_chan *ch);

/* A descriptor that becomes readable when the device interrupts, for poll();
 * owned by the channel. -EINVAL, -ENODEV. */
int wd_drv_event_fd(struct wd_chan *ch);

/* Sleeps until the device interrupts, at most @timeout_ms (-1: for ever), and
 * takes the interrupt. 0; -ETIMEDOUT; -EINTR; -ENODEV as soon as the device
 * is gone. The driver arms the interrupt before, as its device wants it. */
int wd_drv_wait(struct wd_chan *ch, int timeout_ms);

/* Wakes a device that sleeps, after a doorbell that it may have missed. A
 * system call: only when the device says that it sleeps. UACCE: nothing to
 * do. 0, -EINVAL, -ENODEV. */
int wd_drv_kick(struct wd_chan *ch);

/* 1 while the device is there, 0 when it is gone or the channel belongs to the
 * parent of this process. A software device that does not answer for some
 * seconds (stopped, hanging) is gone, here and in wd_drv_wait(). Cheap enough
 * for a poll that found nothing. */
int wd_drv_alive(struct wd_chan *ch);

/*
 * A device of a plug-in. Programs request channels of it as of others, by its
 * name, reserve memory on them and name both in jobs, which go to the driver with
 * the same api. Its scenario is Share Domain. Nothing can be mapped, started or
 * waited for on such a channel (-EOPNOTSUPP). All members may be called by any
 * thread.
 */
struct wd_drv_dev {
	uint32_t size;	  /* sizeof(struct wd_drv_dev) */
	const char *name; /* "cuda-0" */
	const char *api;  /* as wd_alg_comp.api of the driver */
	const char *algs; /* one a line */
	/* The NUMA node, -1 if it has none or that is not known. Called when
	 * devices are listed: it must cost little. May be NULL. */
	int (*node)(void);
	/* 0, or -errno if the device cannot be used, then or any more. */
	int (*open)(void);
	/* Memory that processor and device address, page aligned and zeroed, and
	 * where the device sees it, which is not 0. -errno. */
	int (*reserve)(size_t size, void **va, uint64_t *dma);
	/* The driver has no job with it. */
	void (*release)(void *va, size_t size);
};

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
