/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drivers that are built in: their tables, by name. Only the registry uses
 * the names; drivers include this to check their table's type.
 */
#ifndef WF_ALG_DRIVERS_H
#define WF_ALG_DRIVERS_H

#include <weft/wd_comp_drv.h>

#pragma GCC visibility push(hidden)

extern const struct wd_alg_comp wf_drv_isal;
extern const struct wd_alg_comp wf_drv_libdeflate;
extern const struct wd_alg_comp wf_drv_zlib;
extern const struct wd_alg_comp wf_drv_comp_device;

#pragma GCC visibility pop

#endif
