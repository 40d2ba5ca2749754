/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file finds out how peers elsewhere are reached: the interface that is
 * taken, and the offloads that the kernel has for packets. It sends none.
 */
#include "tools/info/facts.h"

#include <net/if.h>
#include <netinet/in.h>
#include <linux/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nic/open.h"

/* The provider asks for so much if it sends datagrams. */
#define BUFFER ((uint64_t)4 << 20)

/* Without a capability the buffer is cut at this. */
static uint64_t buffer_limit(void)
{
	FILE *in = fopen("/proc/sys/net/core/rmem_max", "re");
	unsigned long long value = 0;

	if (!in)
		return 0;
	if (fscanf(in, "%llu", &value) != 1)
		value = 0;
	fclose(in);
	return value;
}

static void probe(struct wf_tools_net *net, int fd)
{
	struct ifreq req = { .ifr_mtu = 0 };
	socklen_t len = sizeof(int);
	int value = 1;

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%.15s", net->iface);
	if (!ioctl(fd, SIOCGIFMTU, &req) && req.ifr_mtu > 0)
		net->mtu = (unsigned)req.ifr_mtu;
	net->gro = !setsockopt(fd, IPPROTO_UDP, UDP_GRO, &value, sizeof(value));
	net->gso = !getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &value, &len);
	value = (int)BUFFER;
	net->forced = !setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &value,
				  sizeof(value));
}

/* The file with the job's secret, or NULL. */
static const char *find_key(const struct wf_tools_facts *facts)
{
	const struct wf_tools_param *key =
		wf_tools_param_find(facts, "KEY_FILE");
	const char *path = getenv("FI_WEFT_KEY_FILE");

	/* An empty one is refused as well. */
	if (path)
		return path;
	return key && *key->given ? key->given : NULL;
}

void wf_tools_net_check_key(struct wf_tools_facts *facts)
{
	const struct wf_tools_param *nic = wf_tools_param_find(facts, "NIC");
	const struct wf_tools_param *ktls = wf_tools_param_find(facts, "KTLS");
	const char *path = find_key(facts), *device;
	struct wf_tools_net *net = &facts->net;

	if (!path) {
		snprintf(net->tls, sizeof(net->tls),
			 "off: FI_WEFT_KEY_FILE is not set, nothing is "
			 "encrypted");
		return;
	}
	device = nic && *nic->given && !nic->note[0] ?
			 nic->value :
			 wf_nic_device_encrypting();
	net->encrypts = !wf_nic_device_secure(device, path, net->tls);
	if (net->encrypts && ktls && !strcmp(ktls->value, "false"))
		snprintf(net->tls + strlen(net->tls),
			 sizeof(net->tls) - strlen(net->tls),
			 "; FI_WEFT_KTLS=false: not by the kernel");
	net->key_fails = !net->encrypts;
	if (net->key_fails)
		wf_tools_facts_problem(facts,
				       "FI_WEFT_KEY_FILE=%s: %s; programs "
				       "do not find weft until it is corrected",
				       path, net->tls);
}

static void choose_device(struct wf_tools_net *net,
			  const struct wf_tools_facts *facts)
{
	const struct wf_tools_param *nic = wf_tools_param_find(facts, "NIC");
	const char *given = nic && !nic->note[0] ? nic->value : NULL;
	bool chosen =
		nic && strcmp(nic->source, "default") != 0 && !nic->note[0];

	if (!chosen && find_key(facts)) {
		net->device = wf_nic_device_encrypting();
		net->device_about = wf_nic_device_about(net->device);
		net->device_from = "FI_WEFT_KEY_FILE is set";
		net->socket = wf_nic_device_socket(net->device);
		return;
	}
	/* Its address is listed first. */
	if (facts->ifaces[0].is_efa) {
		net->is_efa = true;
		net->device = "efa";
		net->device_about = wf_nic_device_about(net->device);
		net->device_from = chosen ? "FI_WEFT_NIC says so" :
					    "there is such a device";
		return;
	}
	/* A provider of another version may have devices that we do not know. */
	net->device = given && wf_nic_device_about(given) ?
			      given :
			      wf_nic_device_name(0);
	net->device_about = wf_nic_device_about(net->device);
	net->device_from = chosen ? "FI_WEFT_NIC says so" :
				    "the default, see FI_WEFT_NIC below";
	net->socket = wf_nic_device_socket(net->device);
}

static void read_control(struct wf_tools_net *net)
{
	FILE *in = fopen("/proc/sys/net/ipv4/tcp_congestion_control", "re");

	if (!in)
		return;
	if (fscanf(in, "%31s", net->control) != 1)
		net->control[0] = '\0';
	fclose(in);
}

/* The device is opened for that, in this process. */
static void read_way(struct wf_tools_net *net,
		     const struct wf_tools_facts *facts)
{
	const struct wf_tools_param *rings =
		wf_tools_param_find(facts, "EFA_RINGS");

	if (wf_nic_device_way(net->device,
			      !rings || strcmp(rings->value, "false") != 0,
			      net->way))
		snprintf(net->way, sizeof(net->way), "unknown");
}

void wf_tools_net_read(struct wf_tools_facts *facts)
{
	const struct wf_tools_param *mtu = wf_tools_param_find(facts, "MTU");
	struct wf_tools_net *net = &facts->net;
	int fd;

	if (!facts->n_ifaces)
		return;
	choose_device(net, facts);
	read_control(net);
	snprintf(net->iface, sizeof(net->iface), "%s", facts->ifaces[0].domain);
	snprintf(net->address, sizeof(net->address), "%s",
		 facts->ifaces[0].address);
	net->found = net->is_efa;
	if (net->is_efa) {
		read_way(net, facts);
		return;
	}
	fd = socket(strchr(net->address, ':') ? AF_INET6 : AF_INET,
		    SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	probe(net, fd);
	close(fd);
	/* The link has the last word: a larger packet would not pass it. */
	if (mtu && atoi(mtu->value) > 0 &&
	    (!net->mtu || (unsigned)atoi(mtu->value) < net->mtu))
		net->mtu = (unsigned)atoi(mtu->value);
	net->buffer = net->forced ? BUFFER : buffer_limit();
	if (net->buffer > BUFFER)
		net->buffer = BUFFER;
	net->found = true;
}
