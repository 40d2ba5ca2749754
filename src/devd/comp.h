/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's deflate and inflate, for the table of algorithms.
 */
#ifndef WF_DEVD_COMP_H
#define WF_DEVD_COMP_H

#include "devd/alg.h"

int wf_devd_comp_deflate(struct wf_devd_work *work);
int wf_devd_comp_inflate(struct wf_devd_work *work);

#endif
