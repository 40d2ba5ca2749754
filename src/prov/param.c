/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the FI_WEFT_* environment through libfabric, so that `fi_info -e`
 * lists it. Owns the values; decides nothing from them.
 */
#include "prov/param.h"

#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "nic/udp/udp.h"
#include "prov/provider.h"
#include "shm/mover.h"

/* Beyond this, chunks of one unmatched message would fill a ring. */
#define MAX_EAGER ((size_t)256 << 10)
#define HOUR_MS 3600000u

struct wf_prov_param wf_prov_param = {
	.connect_timeout_ms = 5000,
	.inject_size = WF_PROV_MAX_INJECT,
	.tx_size = 1024,
	.rx_size = 1024,
	.eager_max = 16384,
	.cma_min = 8193,
	.coop_min = 65536,
	.cma = true,
	.shm = true,
	.medium_max = 16384,
	.read_min = 16385,
	.runt_size = 0,
	.dead_timeout_s = 900,
};

/* Both sides copying costs a second system call: worth it for less where the
 * call itself takes long. Halves of 16 KiB gain on a machine with calls of
 * 1.3 us, and lose on one with calls of 0.5 us, where 64 KiB gain
 * (docs/performance.md). */
#define SLOW_CALL_NS 1000
#define COOP_MIN_SLOW_CALLS 16384

struct size_param {
	const char *name;
	size_t *value;
	size_t min;
	size_t max;
	bool power_of_two;
	const char *help;
};

static const struct size_param sizes[] = {
	{ "connect_timeout", &wf_prov_param.connect_timeout_ms, 1, HOUR_MS,
	  false,
	  "Milliseconds to keep trying an address where nobody listens before "
	  "the operation fails" },
	{ "inject_size", &wf_prov_param.inject_size, 64, WF_PROV_MAX_INJECT,
	  false,
	  "Largest message of fi_inject and FI_INJECT in bytes, 64 to 4096" },
	{ "tx_size", &wf_prov_param.tx_size, WF_PROV_MIN_QUEUE,
	  WF_PROV_MAX_QUEUE, true,
	  "Transmit operations in flight per endpoint unless the application "
	  "asks for a number, a power of two from 16 to 65536" },
	{ "rx_size", &wf_prov_param.rx_size, WF_PROV_MIN_QUEUE,
	  WF_PROV_MAX_QUEUE, true,
	  "Receive depth per endpoint unless the application asks for a "
	  "number, a power of two from 16 to 65536" },
	{ "eager_max", &wf_prov_param.eager_max, 0, MAX_EAGER, false,
	  "Without CMA, messages up to this many bytes are sent before a "
	  "receive is known; larger ones stay with the sender until matched, "
	  "0 to 262144" },
	{ "cma_min", &wf_prov_param.cma_min, 4097, SIZE_MAX, false,
	  "From this many bytes on, but not below 4097, messages stay with the "
	  "sender until matched where CMA is allowed" },
	{ "medium_max", &wf_prov_param.medium_max, 0, (size_t)16 << 20, false,
	  "Messages to other nodes up to this many bytes are sent before a "
	  "receive is known, 0 to 16777216" },
	{ "read_min", &wf_prov_param.read_min, 4096, SIZE_MAX, false,
	  "From this many bytes on, but not below 4096 and not below "
	  "medium_max, the receiver reads a message from another node" },
	{ "runt_size", &wf_prov_param.runt_size, 0, (size_t)16 << 20, false,
	  "Bytes of a message that are sent while the receiver reads the rest, "
	  "0 to 16777216" },
	{ "mtu", &wf_prov_param.mtu, 0, 65536, false,
	  "Bytes of the largest packet of the link to other nodes; 0: ask the "
	  "interface" },
	{ "dead_timeout", &wf_prov_param.dead_timeout_s, 1, 86400, false,
	  "Seconds of silence after which a process on another node is taken "
	  "for dead while something waits for it" },
	{ "coop_min", &wf_prov_param.coop_min, 0, SIZE_MAX, false,
	  "From this many bytes on, sender and receiver copy a message "
	  "together" },
};

static size_t round_up(size_t value)
{
	size_t power = 1;

	while (power < value)
		power *= 2;
	return power;
}

static void read_size(struct fi_provider *provider, const struct size_param *p)
{
	size_t asked, value;

	fi_param_define(provider, p->name, FI_PARAM_SIZE_T, "%s (default: %zu)",
			p->help, *p->value);
	if (fi_param_get_size_t(provider, p->name, &asked))
		return;
	value = asked < p->min ? p->min : asked > p->max ? p->max : asked;
	if (p->power_of_two)
		value = round_up(value);
	if (value != asked)
		FI_WARN(provider, FI_LOG_CORE,
			"variable %s: %zu is not possible, %zu is used\n",
			p->name, asked, value);
	*p->value = value;
}

static void read_string(struct fi_provider *provider, const char *name,
			char **value, const char *help)
{
	char *env = NULL;

	fi_param_define(provider, name, FI_PARAM_STRING, "%s", help);
	if (fi_param_get_str(provider, name, &env) || !env || !*env)
		return;
	/* The environment may change under us. */
	*value = strdup(env);
	if (!*value)
		FI_WARN(provider, FI_LOG_CORE,
			"variable %s: no memory, ignored\n", name);
}

/* Left as it was when unset or not a boolean. */
static void read_bool(struct fi_provider *provider, const char *name,
		      bool *value, const char *help)
{
	int asked = *value;

	fi_param_define(provider, name, FI_PARAM_BOOL, "%s (default: %s)", help,
			*value ? "true" : "false");
	fi_param_get_bool(provider, name, &asked);
	*value = asked;
}

/* What would otherwise show as "no provider" or "refused" far from here. */
static void check_strings(struct fi_provider *provider)
{
	const char *iface = wf_prov_param.iface;
	const char *users = wf_prov_param.allow_uid;

	if (iface && !if_nametoindex(iface))
		FI_WARN(provider, FI_LOG_CORE,
			"variable iface: there is no interface %s\n", iface);
	if (users && strcmp(users, "any") &&
	    users[strspn(users, "0123456789,")])
		FI_WARN(provider, FI_LOG_CORE,
			"variable allow_uid: %s is neither \"any\" nor user "
			"numbers separated by commas\n",
			users);
}

void wf_prov_param_init(struct fi_provider *provider)
{
	size_t asked;

	read_string(provider, "iface", &wf_prov_param.iface,
		    "Network interface whose address endpoints take "
		    "(default: the first that is up and not loopback)");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		read_size(provider, &sizes[i]);
	wf_prov_param.coop_min_is_set =
		!fi_param_get_size_t(provider, "coop_min", &asked);
	read_bool(provider, "cma", &wf_prov_param.cma,
		  "Whether process_vm_readv may copy between processes; "
		  "without it data goes through shared memory");
	read_bool(provider, "shm", &wf_prov_param.shm,
		  "Whether processes on this node are reached through shared "
		  "memory; else by packets. The same for all of them");
	read_bool(
		provider, "net_thread", &wf_prov_param.net_thread,
		"Whether a thread of the endpoint's moves packets to and from "
		"other nodes, so that they move while the application does "
		"not call");
	read_string(
		provider, "fault", &wf_prov_param.fault,
		"What happens to packets on their way out, to test "
		"applications: loss=1%,reorder=25%,dup=0.5%,delay=1ms,seed=7 "
		"(default: nothing)");
	read_string(provider, "allow_uid", &wf_prov_param.allow_uid,
		    "Users whose processes may connect on this node: \"any\", "
		    "or user numbers separated by commas (default: the own "
		    "user only)");
	check_strings(provider);
}

static void measure_calls(void)
{
	if (wf_shm_mover_call_ns() > SLOW_CALL_NS)
		wf_prov_param.coop_min = COOP_MIN_SLOW_CALLS;
}

size_t wf_prov_param_coop_min(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (wf_prov_param.cma && !wf_prov_param.coop_min_is_set)
		pthread_once(&once, measure_calls);
	return wf_prov_param.coop_min;
}

void wf_prov_param_fini(void)
{
	free(wf_prov_param.iface);
	free(wf_prov_param.allow_uid);
	free(wf_prov_param.fault);
	wf_prov_param.fault = NULL;
	wf_prov_param.iface = NULL;
	wf_prov_param.allow_uid = NULL;
}

const struct wf_nic_udp_fault *wf_prov_param_fault(void)
{
	static struct wf_nic_udp_fault fault;

	if (!wf_prov_param.fault ||
	    wf_nic_udp_fault_parse(wf_prov_param.fault, &fault))
		return NULL;
	return &fault;
}
