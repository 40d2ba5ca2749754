/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The FI_WEFT_* settings, read once when the provider is loaded. Their names,
 * ranges and defaults are in base/setting_table.c, their manual is fi_weft(7).
 */
#ifndef WF_PROV_PARAM_H
#define WF_PROV_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fi_provider;

struct wf_prov_param {
	char *ifaces;		   /* FI_WEFT_IFACE: names separated by commas;
				    * NULL = choose */
	char *iface;		   /* the first of them: interface to take the
				    * address from */
	size_t connect_timeout_ms; /* FI_WEFT_CONNECT_TIMEOUT: give up on an
				     * address where nobody listens */
	size_t inject_size;	   /* FI_WEFT_INJECT_SIZE */
	size_t tx_size;		   /* FI_WEFT_TX_SIZE: operations in flight */
	size_t rx_size;		   /* FI_WEFT_RX_SIZE: default receive depth */
	size_t eager_max;	   /* FI_WEFT_EAGER_MAX: above this, the data
				     * stays with the sender until matched */
	size_t cma_min;		   /* FI_WEFT_CMA_MIN: the same where CMA is
				    * allowed */
	size_t coop_min;	   /* FI_WEFT_COOP_MIN: from here both sides
				     * copy; see wf_prov_param_coop_min() */
	bool coop_min_is_set;	   /* by the user */
	bool cma_min_is_set;
	bool medium_max_is_set; /* the same */
	bool read_min_is_set;	/* the same */
	bool cma;		/* FI_WEFT_CMA: may CMA be used at all */
	bool shm;		/* FI_WEFT_SHM: may peers on this node be
				    * reached through memory */
	size_t medium_max;	/* FI_WEFT_MEDIUM_MAX: longer messages to
				    * other nodes do not go unasked */
	size_t read_min;	/* FI_WEFT_READ_MIN: those are read by the
				    * receiver */
	size_t runt_size;	/* FI_WEFT_RUNT_SIZE: bytes of them that go
				    * unasked */
	size_t mtu;		/* FI_WEFT_MTU: of the link; 0 = ask */
	size_t dead_timeout_s;	/* FI_WEFT_DEAD_TIMEOUT: silence after which
				    * a peer elsewhere is given up */
	bool net_thread;	/* FI_WEFT_NET_THREAD: packets move without
				    * progress of the application */
	char *nic;		/* FI_WEFT_NIC: device between nodes; NULL:
				      the default */
	bool efa_rings;		/* FI_WEFT_EFA_RINGS: those of an EFA device
				    * are written to without libibverbs */
	char *key_file;		/* FI_WEFT_KEY_FILE: the job's secret; NULL:
				    * nothing is encrypted; "": refused */
	bool ktls;		/* FI_WEFT_KTLS: TLS is done by the kernel where
				    * it can */
	bool key_is_misspelt;	/* a name like that is set */
	char *fault;		/* FI_WEFT_FAULT: what happens to packets,
				    * for tests */
	char *allow_uid;	/* FI_WEFT_ALLOW_UID: NULL = own user only,
				     * "any", or a comma separated list */
	char *dir;		/* FI_WEFT_DIR; NULL: not given */
	const char *folder;	/* where processes of other namespaces are
				    * met; NULL: nowhere */
	bool ptracer;		/* FI_WEFT_PTRACER: peers may copy where
				    * Yama would not let them */
	bool is_short;		/* There was no memory to keep a setting.
				    * Without it, the process might use another
				    * device than its peers. */
};

/* The device whose addresses are of the format FI_ADDR_EFA. */
#define WF_PROV_NIC_EFA "efa"

extern struct wf_prov_param wf_prov_param;

/* Defines every setting with libfabric and reads it. The user is told about
 * values that are not taken as they stand, and about unknown names. */
void wf_prov_param_init(struct fi_provider *provider);
void wf_prov_param_fini(void);

/* Whether FI_WEFT_KEY_FILE can be used as it is: 0, also where there is none, or
 * -errno, and the user is told once. Nothing may be opened then: it would not be
 * encrypted. */
int wf_prov_param_key(void);

/* FI_WEFT_COOP_MIN, or what follows from the cost of a copy between processes. The
 * first call measures it, unless that setting or FI_WEFT_CMA=0 is given. For
 * endpoints only: a sandbox may kill a process that tries. */
size_t wf_prov_param_coop_min(void);

struct wf_nic_fault;

/* FI_WEFT_FAULT as the device wants it; NULL: none. */
const struct wf_nic_fault *wf_prov_param_fault(void);

#endif
