/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header states the capabilities of weft, in libfabric's bits and numbers.
 * The one place to extend when an operation is added: fi_getinfo() matches
 * hints against these and fills its answers from them.
 */
#ifndef WF_PROV_CAPS_H
#define WF_PROV_CAPS_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include "prov/provider.h"

/* Capabilities by the side they belong to. */
#define WF_PROV_TX_CAPS                                                        \
	(FI_MSG | FI_TAGGED | FI_SEND | FI_RMA | FI_ATOMIC | FI_READ |         \
	 FI_WRITE | FI_FENCE)
#define WF_PROV_RX_CAPS                                                        \
	(FI_MSG | FI_TAGGED | FI_RECV | FI_DIRECTED_RECV | FI_MULTI_RECV |     \
	 FI_SOURCE | FI_RMA | FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE |   \
	 FI_RMA_EVENT)
#define WF_PROV_COMM_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define WF_PROV_DOMAIN_CAPS (WF_PROV_COMM_CAPS | FI_SHARED_AV)
#define WF_PROV_CAPS (WF_PROV_TX_CAPS | WF_PROV_RX_CAPS | WF_PROV_DOMAIN_CAPS)

/* Also given to applications that did not ask, because they cost nothing. All
 * others are given only when requested, or when nothing was requested. */
#define WF_PROV_FREE_CAPS (FI_MULTI_RECV | WF_PROV_COMM_CAPS)

/* Which operations need a direction, and the directions they can have. */
#define WF_PROV_MSG_OPS (FI_MSG | FI_TAGGED)
#define WF_PROV_MSG_DIRECTIONS (FI_SEND | FI_RECV)
#define WF_PROV_RMA_OPS (FI_RMA | FI_ATOMIC)
#define WF_PROV_RMA_DIRECTIONS                                                 \
	(FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* Bits that libfabric 2.x took into use in places where 1.x had others; they
 * count only for an application that speaks 2.x. A directed receive is the
 * same to us for tagged messages, and for an application that promises never
 * to pass FI_ADDR_UNSPEC. */
#define WF_PROV_TAGGED_DIRECTED_RECV (1ULL << 45)
#define WF_PROV_EXACT_DIRECTED_RECV (1ULL << 48)
#define WF_PROV_RX_CAPS_2X                                                     \
	(WF_PROV_TAGGED_DIRECTED_RECV | WF_PROV_EXACT_DIRECTED_RECV)

#define WF_PROV_TX_OP_FLAGS                                                    \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |                      \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_FENCE | FI_MORE)
#define WF_PROV_RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV)

/* Operations of one kind are in order; a message also after what was written or
 * read before it. Not the other way: a write by CMA overtakes what still lies in
 * the ring, atomics among it. */
#define WF_PROV_MSG_ORDER                                                      \
	(FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_SAR | FI_ORDER_RMA_RAR |       \
	 FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW |              \
	 FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |     \
	 FI_ORDER_ATOMIC_WAW)
/* Also given to applications that did not ask. The others cost packets a round
 * trip for each operation, and must be requested. */
#define WF_PROV_FREE_ORDER                                                     \
	(FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |            \
	 FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
/* A large message may complete after a small one that was sent later. */
#define WF_PROV_COMP_ORDER FI_ORDER_NONE

/* The top bit marks a value as private to a provider; the rest is "weft". */
#define WF_PROV_PROTOCOL 0xf7656674u
#define WF_PROV_PROTOCOL_VERSION 1
/* libfabric calls this a generic tag: 64 fields of one bit. */
#define WF_PROV_TAG_FORMAT 0xaaaaaaaaaaaaaaaaull

#define WF_PROV_MR_KEY_SIZE 8
#define WF_PROV_CQ_DATA_SIZE 8
#define WF_PROV_MR_IOV_LIMIT 4
#define WF_PROV_CNTR_CNT ((size_t)1 << 16)
#define WF_PROV_MR_CNT ((size_t)1 << 16)
/* Modes of registration that an application may choose; none is needed. */
#define WF_PROV_MR_MODES (FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED)
#define WF_PROV_CQ_CNT ((size_t)1 << 16)
#define WF_PROV_EP_CNT ((size_t)1 << 15) /* a UDP port each */

/* FI_SOCKADDR_IP of libfabric 2.x: IPv4 or IPv6. No format in 1.17. */
#define WF_PROV_FORMAT_IP 17

/* FI_PROGRESS_CONTROL_UNIFIED of libfabric 2.x: manual, and the application
 * serializes control and data calls. */
#define WF_PROV_PROGRESS_UNIFIED 3

#endif
