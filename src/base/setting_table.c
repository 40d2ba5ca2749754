/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every setting FI_WEFT_*. tests/tool_info checks that fi_weft(7) describes
 * each one; the provider has one field for each (src/prov/param.c).
 */
#include "base/setting.h"

#define HOUR_MS 3600000
#define DAY_S 86400
#define MIB ((uint64_t)1 << 20)

/* Both sides copying costs a second system call: worth it for less where the
 * call itself takes long. A Xeon with calls of just over 1 us loses by halves of
 * 12 and 16 KiB (1.25 instead of 1.07 of libfabric's shm) and is even at 32 KiB
 * (docs/performance.md). */
#define COOP_MIN 65536
#define COOP_MIN_SLOW_CALLS 32768
#define SLOW_CALL_NS 1000

uint64_t wf_base_setting_coop_min(uint64_t call_ns)
{
	return call_ns > SLOW_CALL_NS ? COOP_MIN_SLOW_CALLS : COOP_MIN;
}

const struct wf_setting wf_base_settings[] = {
	{
		.name = "iface",
		.kind = WF_SETTING_IFACE,
		.words = "the first that is up and not loopback",
		.help = "Network interface whose address endpoints use; you "
			"may name more, separated by commas, for large "
			"transfers to other nodes",
		.why = "peers on other nodes reach this node through it; "
		       "between processes of one node it makes no difference",
	},
	{
		.name = "connect_timeout",
		.kind = WF_SETTING_MS,
		.min = 1,
		.max = HOUR_MS,
		.fallback = 5000,
		.help = "Time to wait for a peer that has never answered before "
			"the operation fails",
		.why = "processes of a job start some seconds apart; an "
		       "address that does not answer for longer is dead",
	},
	{
		.name = "inject_size",
		.kind = WF_SETTING_BYTES,
		.min = 64,
		.max = 4096,
		.fallback = 4096,
		.help = "Largest message of fi_inject and FI_INJECT",
		.why = "one record of a ring holds as much, so that the call "
		       "can copy it at once",
	},
	{
		.name = "tx_size",
		.kind = WF_SETTING_COUNT,
		.power_of_two = true,
		.min = 16,
		.max = 65536,
		.fallback = 1024,
		.help = "Transmit operations in flight per endpoint unless "
			"the application asks for a number",
		.why = "more than a program usually has in flight; memory is "
		       "allocated only when it is used",
	},
	{
		.name = "rx_size",
		.kind = WF_SETTING_COUNT,
		.power_of_two = true,
		.min = 16,
		.max = 65536,
		.fallback = 1024,
		.help = "Receive depth per endpoint unless the application "
			"asks for a number",
		.why = "the same for receives; memory is allocated only when "
		       "it is used",
	},
	{
		.name = "eager_max",
		.kind = WF_SETTING_BYTES,
		/* Beyond this, one unmatched message would fill a ring. */
		.max = 256 << 10,
		.fallback = 16384,
		.help = "Without CMA, messages up to this size are sent before "
			"a receive is known; larger ones stay with the sender "
			"until matched",
		.why = "four records in flight; more would fill a ring before "
		       "the receiver needs the data",
	},
	{
		.name = "cma_min",
		.kind = WF_SETTING_BYTES,
		.min = 4097,
		.max = UINT64_MAX,
		.fallback = 8193,
		.help = "With CMA, messages from this size on stay with the "
			"sender until matched and are copied once",
		.why = "measured: up to 8 KiB two overlapping copies are "
		       "faster than one copy and a system call. Each pair of "
		       "processes begins with that, tries both ways from time "
		       "to time and keeps the faster one, unless this is set",
	},
	{
		.name = "medium_max",
		.kind = WF_SETTING_BYTES,
		.max = 16 * MIB,
		.fallback = 16384,
		.words = "16384 over udp, 524288 over tcp",
		.help = "Messages to other nodes up to this size are sent "
			"before a receive is known",
		.why = "measured: above this size it is faster if the "
		       "receiver reads the message",
	},
	{
		.name = "read_min",
		.kind = WF_SETTING_BYTES,
		.min = 4096,
		.max = UINT64_MAX,
		.fallback = 16385,
		.words = "16385 over udp, 524289 over tcp",
		.help = "From this size on, and above FI_WEFT_MEDIUM_MAX, the "
			"receiver reads a message from another node",
		.why = "measured: below, sending at once is faster",
	},
	{
		.name = "runt_size",
		.kind = WF_SETTING_BYTES,
		.max = 16 * MIB,
		.fallback = 0,
		.help = "Part of a message that is sent while the receiver "
			"reads the rest",
		.why = "measured: it gained nothing",
	},
	{
		.name = "mtu",
		.kind = WF_SETTING_BYTES,
		.or_zero = true,
		/* Every IPv4 link carries this much; a UDP datagram and its
		 * headers have no more than that. */
		.min = 576,
		.max = 65536,
		.fallback = 0,
		.help = "Largest packet to other nodes; 0 means the MTU of the "
			"interface; a smaller MTU of the route to a peer "
			"always applies",
		.why = "the interface knows it",
	},
	{
		.name = "dead_timeout",
		.kind = WF_SETTING_S,
		.min = 1,
		.max = DAY_S,
		.fallback = 900,
		.help = "Silence after which a process on another node, or one "
			"on this node that has never answered, counts as dead "
			"while an operation waits for it",
		.why = "a process that computes does not answer; TCP tries "
		       "for as long",
	},
	{
		.name = "coop_min",
		.kind = WF_SETTING_BYTES,
		.max = UINT64_MAX,
		.fallback = COOP_MIN,
		.words = "65536, or 32768 where a copy between processes takes "
			 "more than 1 us to begin",
		.help = "From this size on, sender and receiver copy a message "
			"together",
		.why = "measured: sharing the copy costs a second system "
		       "call, and is faster from this size on",
	},
	{
		.name = "cma",
		.kind = WF_SETTING_BOOL,
		.fallback = 1,
		.help = "Whether process_vm_readv may copy between processes; "
			"without it data goes through shared memory",
		.why = "one copy instead of two; if the kernel refuses, the "
		       "ring is used",
	},
	{
		.name = "shm",
		.kind = WF_SETTING_BOOL,
		.fallback = 1,
		.help = "Whether processes on this node are reached through "
			"shared memory; if not, by packets. It must be the "
			"same for all of them",
		.why = "shared memory is many times faster",
	},
	{
		.name = "nic",
		.kind = WF_SETTING_CHOICE,
		.choices = "tcp or udp or efa",
		.words = "efa where there is an EFA device, else tcp",
		.help = "Device by which other nodes are reached. It must be "
			"the same for all processes of a job",
		.why = "the kernel's TCP is faster from 16 KiB on, shares links "
		       "fairly, and RMA needs no progress of the target; udp "
		       "can simulate a bad network (FI_WEFT_FAULT)",
	},
	{
		.name = "efa_rings",
		.kind = WF_SETTING_BOOL,
		.fallback = 1,
		.help = "Whether requests are written to the rings of an EFA "
			"device directly; if not, or if the device or an old "
			"libefa does not tell where they are, libibverbs is "
			"called for each",
		.why = "it takes fewer instructions",
	},
	{
		.name = "key_file",
		.kind = WF_SETTING_TEXT,
		.words = "none",
		.help = "File with the secret of the job, mode 0600: traffic "
			"to other nodes is encrypted (TLS 1.3), and processes "
			"without the secret are refused. It must be the same "
			"for all processes of a job",
		.why = "encryption needs a secret that only the job knows",
	},
	{
		.name = "ktls",
		.kind = WF_SETTING_BOOL,
		.fallback = 1,
		.help = "Whether the kernel encrypts and decrypts (kTLS) where "
			"it can, instead of OpenSSL",
		.why = "the kernel copies the data anyway, and can encrypt it "
		       "meanwhile",
	},
	{
		.name = "net_thread",
		.kind = WF_SETTING_BOOL,
		.fallback = 0,
		.help = "Whether each endpoint has a thread that moves packets "
			"to and from other nodes while the application makes "
			"no calls",
		.why = "the thread costs a hand-over for every message",
	},
	{
		.name = "fault",
		.kind = WF_SETTING_TEXT,
		.words = "nothing",
		.help = "Faults of outgoing packets, to test applications: "
			"loss=1%,reorder=25%,dup=0.5%,delay=1ms,"
			"seed=7",
		.why = "it is for tests",
	},
	{
		.name = "dir",
		.kind = WF_SETTING_FOLDER,
		.words = "/run/weft if it is there and can be used",
		.help = "Folder in which processes of this host that are in "
			"different network namespaces (containers) find each "
			"other; \"none\" uses no folder",
		.why = "containers need a common folder to find each other; "
		       "without one they exchange packets",
	},
	{
		.name = "ptracer",
		.kind = WF_SETTING_BOOL,
		.fallback = 0,
		.help = "Whether any process of the same user may trace this "
			"one, so that CMA works where the kernel has "
			"kernel.yama.ptrace_scope = 1",
		.why = "it removes a protection that the administrator chose: "
		       "a compromised process of the user could read this "
		       "one's memory",
	},
	{
		.name = "allow_uid",
		.kind = WF_SETTING_USERS,
		.words = "the same user only",
		.help = "Users whose processes may connect on this node: "
			"\"any\", or user numbers separated by commas",
		.why = "a process that connects shares memory with this one, "
		       "so other users must be named",
	},
};

const size_t wf_base_setting_count =
	sizeof(wf_base_settings) / sizeof(wf_base_settings[0]);
