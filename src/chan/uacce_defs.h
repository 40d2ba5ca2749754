/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's UACCE interface in its two dialects. Mainline (5.7 and later):
 * attributes in the device's folder, regions by type, flag bit 0 is SVA. The
 * older one (WF_UACCE_SEED_*): an attrs/ folder, offsets of regions in an
 * attribute, three flags and a region of static shared memory (SS).
 */
#ifndef WF_CHAN_UACCE_DEFS_H
#define WF_CHAN_UACCE_DEFS_H

#include <assert.h>
#include <sys/ioctl.h>

#define WF_UACCE_START_Q _IO('W', 0)
#define WF_UACCE_PUT_Q _IO('W', 1)
#define WF_UACCE_FLAG_SVA 0x1

#define WF_UACCE_SEED_SHARE_SVAS _IO('W', 0)
#define WF_UACCE_SEED_START _IO('W', 1)
#define WF_UACCE_SEED_GET_SS_DMA _IOR('W', 2, unsigned long)
#define WF_UACCE_SEED_PUT_Q _IO('W', 3)
#define WF_UACCE_SEED_FLAG_NOIOMMU 0x1
#define WF_UACCE_SEED_FLAG_SVA 0x6 /* PASID and faults from the device */

/* A region that the device does not have, in qfrs_offset. */
#define WF_UACCE_SEED_NO_REGION (~0ul)

static_assert(WF_UACCE_START_Q == 0x5700 && WF_UACCE_PUT_Q == 0x5701,
	      "as in the kernel's ABI");

#endif
