/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening a NIC: which devices exist, what each needs, and the attributes that
 * all of them understand. Only open.c knows the devices by name; a caller
 * passes on the name that the user chose. Everything else goes through nic.h.
 */
#ifndef WF_NIC_OPEN_H
#define WF_NIC_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "nic/counters.h"
#include "nic/nic.h"

/* Faults of packets on their way to the socket, for tests. In parts per
 * million; the same seed gives the same faults. */
struct wf_nic_fault {
	uint64_t seed;
	uint32_t loss;
	uint32_t duplicate;
	uint32_t reorder; /* held back for up to a millisecond */
	uint32_t corrupt; /* one bit; the NIC then checks payload too */
	uint32_t delay_us;
	uint32_t jitter_us; /* up to so much more */
	uint32_t mtu;	    /* larger packets vanish; 0: none do */
};

/* "loss=1%,reorder=25%,dup=0.5%,corrupt=10ppm,delay=50ms,jitter=1ms,seed=7",
 * "mtu=1280".
 * -EINVAL: says what is wrong in the log. */
int wf_nic_fault_parse(const char *text, struct wf_nic_fault *fault);

/* Addresses of one host, at most. */
#define WF_NIC_ADDRS_MOST 4

struct wf_nic_key;
struct wf_nic_port;

struct wf_nic_attr {
	/* For a device without sockets, from wf_nic_port_open(). The caller
	 * closes it. */
	struct wf_nic_port *port;
	/* A bound socket of the kind that the device wants
	 * (wf_nic_device_socket()), which stays the caller's and is the NIC's
	 * alone to use until it is closed; -1: bind one to addr. */
	int fd;
	/* Port 0: any. If the caller's socket is bound to any address: the
	 * address that peers are told, and that packets come from. */
	struct wf_addr addr;
	/* Further addresses of this host, in the same order as on other hosts,
	 * over which large transfers are distributed. A device ignores those
	 * beyond wf_nic_device_addrs(). */
	const struct wf_addr *more;
	unsigned int more_count;
	bool locked;	    /* calls come from several threads */
	bool thread;	    /* work in a thread of its own */
	bool attend;	    /* a thread steps in when nobody calls */
	bool places;	    /* the user answers WF_NIC_WC_ASKS */
	bool runs;	    /* and takes WF_NIC_WC_RUN apart */
	bool payload_crc;   /* udp: check payload beyond UDP's own sum */
	bool no_offload;    /* udp: neither GSO nor GRO */
	uint32_t mtu;	    /* udp: of the link; 0: ask the interface */
	bool whole;	    /* udp: max_msg is the same on every link; messages
			       larger than a packet of the path go in parts */
	uint32_t max_peers; /* with a handle, and as many without; 0: 4096 */
	/* A peer that computes does not answer, and is not dead. A peer that
	 * was connected is given up only after so long a silence; 0: 15
	 * minutes, as long as TCP tries. */
	uint64_t dead_ns;
	/* A connection that is not there after this time is given up, whatever
	 * the reason: nobody answers (UNRESP), or the network says that nobody
	 * is there (UNREACH); 0: 20 s. A silent process on this host has
	 * dead_ns instead, because the kernel tells when there is none. Of a
	 * peer that was connected, a closed port is its end at once, a host
	 * that cannot be reached after this time. */
	uint64_t connect_ns;
	/* Memory that peers access by keys of the user, without the user's
	 * help: returns where it is, WF_NIC_REM_ADDR if the key does not permit
	 * the access, or WF_NIC_UNSUPP_OP if only the user can do it. Any
	 * thread may call it, with the NIC's lock held; it takes no lock. NULL:
	 * there is no such memory. The device calls it before each access. */
	enum wf_nic_status (*find)(void *arg, const struct wf_nic_access *want,
				   void **at);
	void *find_arg;
	/* udp: writes the address of a sender without a handle into
	 * completions, for users that read these by themselves. NULL: no user
	 * does. */
	void (*source)(const struct wf_addr *addr, uint8_t source[16]);
	/* A file with a secret that all peers have: everything that is sent and
	 * accepted is encrypted with it. NULL: nothing is encrypted. */
	const char *key_file;
	bool no_ktls;			  /* the kernel shall not encrypt */
	const struct wf_nic_fault *fault; /* udp; NULL: none */
	struct wf_nic_counters *counters; /* NULL: the NIC's own */
};

/* -EADDRINUSE and other errors of bind(), -EINVAL, -ENOMEM; -ENODEV: there is
 * no such @device (NULL: the default); with a key also the errors of
 * wf_nic_device_secure(). */
int wf_nic_open(const char *device, const struct wf_nic_attr *attr,
		struct wf_nic **nic);

/* The devices, the default first; NULL behind the last. */
const char *wf_nic_device_name(unsigned int index);
/* Returns a description of @device in some words. NULL: there is none of that
 * name. */
const char *wf_nic_device_about(const char *device);
/* How many addresses of a host @device (NULL: the default) uses at once. */
unsigned int wf_nic_device_addrs(const char *device);

enum { WF_NIC_WHY = 256 };

/* Whether @device (NULL: the default) can be opened with @key_file. 0, and in
 * @why how it encrypts; or -errno, and in @why what is wrong and what to do:
 * -ENOTSUP if it does not encrypt. */
int wf_nic_device_secure(const char *device, const char *key_file,
			 char why[WF_NIC_WHY]);
/* The device to use with a key if the user names none. */
const char *wf_nic_device_encrypting(void);

/* The type of socket that carries an address of @device (NULL: the default) and
 * becomes readable when a peer wants something: SOCK_STREAM, which listens, or
 * SOCK_DGRAM. 0: its addresses are no sockets', but those of ports. */
int wf_nic_device_socket(const char *device);

/* The hardware of a device without sockets: what it is called here, and its
 * address, which is that of no endpoint yet. -ENODEV: there is none. May load a
 * library. */
int wf_nic_device_find(const char *device, char *name, size_t room,
		       struct wf_addr *addr);

/* An address of such a device, for one NIC at a time; and the descriptor that
 * will be that of wf_nic_wait_fd(). The NIC is closed before it. Once a queue
 * pair was made with it, it is used up. With @rings the NIC writes to the rings
 * of the hardware itself, if it can. 0 or -errno. */
int wf_nic_port_open(const char *device, bool rings, struct wf_nic_port **port,
		     struct wf_addr *addr, int *fd);
/* How requests of such a port reach the hardware, and why so. */
int wf_nic_device_way(const char *device, bool rings, char text[WF_NIC_WHY]);
void wf_nic_port_close(struct wf_nic_port *port);
/* Memory that the hardware knows, for any NIC of this process on @device. Peers
 * reach it by RDMA, by the key of the hardware. @access: WF_NIC_*; of the remote
 * ones, the device may have one only. -EOPNOTSUPP: the device has no such keys, or
 * not this access. */
int wf_nic_key_open(const char *device, void *addr, size_t len, unsigned access,
		    struct wf_nic_key **key, uint32_t *rkey);
void wf_nic_key_close(struct wf_nic_key *key);
/* Returns the name of the key for wf_nic_mr_use(): a number and not a pointer,
 * so that one that was closed, or is of something else, does no harm. NULL:
 * nothing does. */
void *wf_nic_key_desc(const struct wf_nic_key *key);

/* In a forked child: closes the descriptors, so that the hardware is given back
 * when the parent ends. Async-signal-safe. */
void wf_nic_port_forked(struct wf_nic_port *port);

#endif
