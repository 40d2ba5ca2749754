/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose rights reach into a client's memory (SVA, by CMA). A device process of
 * root could look into everything, and a client can become a program with more
 * rights than it had (a setuid one) while its queue lives on in other hands. So
 * threads that use CMA give up the right to look into any process, and go as
 * the client's user: then the kernel judges every call as it would judge the
 * user's own.
 */
#ifndef WF_DEVD_REACH_H
#define WF_DEVD_REACH_H

#include <sys/types.h>

/* The calling thread, once, before it uses CMA. */
void wf_devd_reach_humbly(void);

/* The calling thread goes as this user from now on (real ids only). A system
 * call or two if it went as another before. If it may not, it stays who it is,
 * and the kernel refuses what that user has no right to. */
void wf_devd_reach_as(uid_t uid, gid_t gid);

#endif
