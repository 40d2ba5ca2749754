/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link between two namespaces: creates the interfaces (with the command
 * ip), and carries frames (packet sockets, a heap of delayed frames).
 */
#include "common/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define MILLION 1000000u
#define FRAME 2048
#define LATE_MOST 20000
#define REORDER_NS (500 * WF_NS_PER_US)

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

enum { ALONE = 1, LINKED, FAILED };

struct late {
	uint64_t at;
	uint64_t number;
	int to;
	int len;
	uint8_t bytes[FRAME];
};

struct carrier {
	struct wire *wire;
	int fd[WIRE_HOSTS];
	uint64_t free_at[WIRE_HOSTS]; /* when the link is idle again */
	uint64_t number;
	uint64_t random;
	struct late **heap;
	int count;
};

/* -- frames ----------------------------------------------------------------- */

static uint32_t draw(struct carrier *c)
{
	c->random = c->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(c->random >> 33);
}

static bool happens(struct carrier *c, uint32_t rate)
{
	return rate && draw(c) % MILLION < rate;
}

static bool sooner(const struct late *a, const struct late *b)
{
	return a->at < b->at || (a->at == b->at && a->number < b->number);
}

static void push(struct carrier *c, struct late *late)
{
	int at = c->count++;

	for (; at && sooner(late, c->heap[(at - 1) / 2]); at = (at - 1) / 2)
		c->heap[at] = c->heap[(at - 1) / 2];
	c->heap[at] = late;
}

static struct late *pop(struct carrier *c)
{
	struct late *first = c->heap[0], *last = c->heap[--c->count];
	int at = 0, child;

	while ((child = 2 * at + 1) < c->count) {
		if (child + 1 < c->count &&
		    sooner(c->heap[child + 1], c->heap[child]))
			child++;
		if (!sooner(c->heap[child], last))
			break;
		c->heap[at] = c->heap[child];
		at = child;
	}
	c->heap[at] = last;
	return first;
}

static void drop(struct carrier *c)
{
	atomic_fetch_add(&c->wire->dropped, 1);
}

/* When a link of that rate has sent the last bit of a frame. 0: its queue is
 * full. */
static uint64_t leave_at(struct carrier *c, int to, int len, uint64_t now)
{
	uint64_t rate = c->wire->rules.rate, *free_at = &c->free_at[to];

	if (!rate)
		return now;
	if (*free_at < now)
		*free_at = now;
	if ((*free_at - now) * rate / WF_NS_PER_S > c->wire->rules.queue)
		return 0;
	*free_at += (uint64_t)len * WF_NS_PER_S / rate;
	return *free_at;
}

static void carry(struct carrier *c, int to, const uint8_t *bytes, int len)
{
	struct wire_rules *rules = &c->wire->rules;
	uint64_t now = wf_base_clock_ns(), at;
	int copies = 1;

	at = leave_at(c, to, len, now);
	if (!at || now < rules->down_until || happens(c, rules->loss)) {
		drop(c);
		return;
	}
	if (happens(c, rules->duplicate))
		copies = 2;
	while (copies--) {
		uint64_t when = at + rules->delay_us * WF_NS_PER_US;
		struct late *late;

		/* As netem does: these frames overtake the delayed ones; if no
		 * frame is delayed, these are. */
		if (happens(c, rules->reorder))
			when = rules->delay_us ? at : at + draw(c) % REORDER_NS;
		if (when <= now) {
			(void)!send(c->fd[to], bytes, (size_t)len, 0);
			atomic_fetch_add(&c->wire->carried, 1);
			continue;
		}
		late = c->count < LATE_MOST ? malloc(sizeof(*late)) : NULL;
		if (!late) {
			drop(c);
			continue;
		}
		late->at = when;
		late->number = c->number++;
		late->to = to;
		late->len = len;
		memcpy(late->bytes, bytes, (size_t)len);
		push(c, late);
	}
}

static void release(struct carrier *c)
{
	uint64_t now = wf_base_clock_ns();

	while (c->count && c->heap[0]->at <= now) {
		struct late *late = pop(c);

		(void)!send(c->fd[late->to], late->bytes, (size_t)late->len, 0);
		atomic_fetch_add(&c->wire->carried, 1);
		free(late);
	}
}

static void carry_on(struct carrier *c)
{
	static uint8_t bytes[FRAME];
	struct pollfd fds[WIRE_HOSTS] = {
		{ .fd = c->fd[0], .events = POLLIN },
		{ .fd = c->fd[1], .events = POLLIN },
	};

	while (!c->wire->stop) {
		struct timespec wait = { .tv_nsec = 20 * WF_NS_PER_MS };

		if (c->count) {
			uint64_t now = wf_base_clock_ns();
			uint64_t at = c->heap[0]->at;

			at = at > now ? at - now : 0;
			if (at < (uint64_t)wait.tv_nsec)
				wait.tv_nsec = (long)at;
		}
		ppoll(fds, WIRE_HOSTS, &wait, NULL);
		for (int i = 0; i < WIRE_HOSTS; i++) {
			for (int n = 0; n < 64; n++) {
				ssize_t len = recv(c->fd[i], bytes, FRAME,
						   MSG_DONTWAIT | MSG_TRUNC);

				if (len <= 0)
					break;
				if (len > FRAME)
					drop(c); /* never: no offloads */
				else
					carry(c, !i, bytes, (int)len);
			}
		}
		release(c);
	}
}

/* -- links ------------------------------------------------------------------ */

static int ip(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int ip(const char *format, ...)
{
	char command[256] = "ip ";
	va_list args;

	va_start(args, format);
	vsnprintf(command + 3, sizeof(command) - 16, format, args);
	va_end(args);
	strcat(command, " >/dev/null");
	return system(command) ? -EIO : 0;
}

/* Frames as on a cable: not coalesced, with their checksums. */
static void no_offloads(const char *name)
{
	static const uint32_t off[] = { ETHTOOL_STXCSUM, ETHTOOL_SGSO,
					ETHTOOL_STSO, ETHTOOL_SGRO };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	for (unsigned i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		struct ethtool_value value = { .cmd = off[i] };
		struct ifreq req = { .ifr_data = (char *)&value };

		strncpy(req.ifr_name, name, IFNAMSIZ - 1);
		(void)!ioctl(fd, SIOCETHTOOL, &req);
	}
	close(fd);
}

static int packet_socket(const char *name)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET,
				    .sll_protocol = htons(ETH_P_ALL),
				    .sll_ifindex = (int)if_nametoindex(name) };
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	int on = 1, size = 8 << 20;

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return -1;
	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	return fd;
}

static int carrier_main(struct wire *wire, unsigned mtu)
{
	struct carrier c = { .wire = wire, .random = 1 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	c.heap = malloc(LATE_MOST * sizeof(struct late *));
	if (!c.heap || unshare(CLONE_NEWNET)) {
		wire->state = FAILED;
		return 77;
	}
	while (wire->ready[0] < ALONE || wire->ready[1] < ALONE)
		usleep(1000);
	for (int i = 0; i < WIRE_HOSTS; i++) {
		char name[] = { 'w', (char)('0' + i), 0 };

		if (ip("link add %s mtu %u type veth peer name h%d mtu %u",
		       name, mtu, i, mtu) ||
		    ip("link set h%d netns %d", i, (int)wire->hosts[i]) ||
		    ip("link set %s up", name)) {
			wire->state = FAILED;
			return 77;
		}
		no_offloads(name);
		c.fd[i] = packet_socket(name);
	}
	if (c.fd[0] < 0 || c.fd[1] < 0) {
		wire->state = FAILED;
		return 77;
	}
	wire->state = LINKED;
	carry_on(&c);
	return 0;
}

static int host_main(struct wire *wire, int me,
		     int (*host)(struct wire *wire, int me))
{
	char name[] = { 'h', (char)('0' + me), 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET)) {
		fprintf(stderr, "no network namespaces here\n");
		wire->state = FAILED;
		return 77;
	}
	while (!wire->hosts[me])
		usleep(1000);
	wire->ready[me] = ALONE;
	while (!wire->state)
		usleep(1000);
	if (wire->state == FAILED)
		return 77;
	no_offloads(name);
	if (ip("link set lo up") || ip("link set %s up", name) ||
	    ip("addr add 10.99.0.%d/24 dev %s", me + 1, name)) {
		wire->state = FAILED;
		return 77;
	}
	wire->ready[me] = LINKED;
	while (wire->ready[!me] < LINKED) {
		if (wire->state == FAILED)
			return 77;
		usleep(1000);
	}
	return host(wire, me);
}

struct wire *wire_create(void)
{
	void *mem = mmap(NULL, sizeof(struct wire), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

/* The first process that fails ends the others. */
static int wait_for_all(struct wire *wire)
{
	int left = WIRE_HOSTS, result = 0;

	while (left) {
		int status;
		pid_t pid = wait(&status);

		if (pid < 0)
			return 1;
		if (pid != wire->carrier)
			left--;
		if (WIFEXITED(status) && !WEXITSTATUS(status))
			continue;
		if (!result)
			result =
				WIFEXITED(status) && WEXITSTATUS(status) == 77 ?
					77 :
					1;
		for (int i = 0; i < WIRE_HOSTS; i++) {
			if (wire->hosts[i] != pid)
				kill(wire->hosts[i], SIGKILL);
		}
		if (pid == wire->carrier)
			wire->carrier = 0;
	}
	wire->stop = 1;
	if (wire->carrier)
		waitpid(wire->carrier, NULL, 0);
	return result;
}

int wire_run(struct wire *wire, unsigned mtu,
	     int (*host)(struct wire *wire, int me))
{
	int result;

	if (geteuid()) {
		fprintf(stderr, "network namespaces need root\n");
		return 77;
	}
	fflush(NULL);
	wire->carrier = fork();
	if (!wire->carrier)
		_exit(carrier_main(wire, mtu));
	for (int i = 0; i < WIRE_HOSTS; i++) {
		pid_t pid = fork();

		if (!pid) {
			int ret = host_main(wire, i, host);

			fflush(NULL);
			_exit(ret);
		}
		wire->hosts[i] = pid;
	}
	result = wait_for_all(wire);
	if (result == 77)
		fprintf(stderr, "cannot make network namespaces with veth "
				"links here\n");
	return result;
}
