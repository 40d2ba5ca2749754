/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header finds out whether the program itself can reach the memory of a
 * job. A driver that says -EFAULT may only mean that its device cannot: the
 * kernel lends some memory to nobody else (memfd_secret(2), mapped registers).
 */
#ifndef WF_ALG_TOUCH_H
#define WF_ALG_TOUCH_H

#include <stdbool.h>

#include <weft/wd_comp_drv.h>

/* Asks the kernel about each page, so that no signal is met; the contents of
 * memory stay. False: it is not mapped, not for this access, or nobody
 * knows. */
bool wf_alg_touch_job(const struct wd_comp_job *job);

#endif
