/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of the system that pass through the provider: numbers of processes and
 * users, addresses, vectors of buffers. Functions that the headers below
 * declare are not for the provider.
 */
#ifndef WF_OS_TYPES_H
#define WF_OS_TYPES_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#endif
