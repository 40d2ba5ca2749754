/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creates network namespaces and links between them with the command ip. A
 * descriptor holds a namespace, so it needs no name and no process.
 */
#include "common/net.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/check.h"

static int hosts[NET_HOSTS] = { -1, -1 };
static _Thread_local int here;

static void skip(const char *why)
{
	printf("no network namespaces here: %s\n", why);
	fflush(NULL);
	_exit(77);
}

static int ip(const char *format, va_list args)
{
	char command[256] = "ip ";

	vsnprintf(command + 3, sizeof(command) - 3, format, args);
	return system(command);
}

static int ip_here(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static int ip_here(const char *format, ...)
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = ip(format, args);
	va_end(args);
	return ret;
}

static int open_own(void)
{
	return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

/* On the host we are on: removes the rate limit on ICMP messages about closed
 * ports. Otherwise tests that kill many processes wait a second for each. */
static void talk_freely(void)
{
	int fd =
		open("/proc/sys/net/ipv4/icmp_ratelimit", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return; /* without it the test only takes longer */
	(void)!write(fd, "0", 1);
	close(fd);
}

/* Returns NULL or what failed. */
static const char *make(unsigned int mtu)
{
	for (int i = 0; i < NET_HOSTS; i++) {
		if (unshare(CLONE_NEWNET))
			return strerror(errno);
		hosts[i] = open_own();
		if (hosts[i] < 0 || ip_here("link set lo up"))
			return "no loopback";
		talk_freely();
	}
	for (int link = 0; link < 2; link++) {
		if (setns(hosts[0], CLONE_NEWNET) ||
		    ip_here("link add link%d mtu %u type veth peer name peer%d "
			    "mtu %u 2>/dev/null",
			    link, mtu, link, mtu))
			return "no veth links";
		if (ip_here("link set peer%d netns /proc/%d/fd/%d", link,
			    (int)getpid(), hosts[1]))
			return "the link cannot be moved";
		if (setns(hosts[1], CLONE_NEWNET) ||
		    ip_here("link set peer%d name link%d", link, link))
			return "the link is not there";
	}
	for (int i = 0; i < NET_HOSTS; i++) {
		if (setns(hosts[i], CLONE_NEWNET))
			return strerror(errno);
		for (int link = 0; link < 2; link++)
			if (ip_here("addr add 10.99.%d.%d/24 dev link%d", link,
				    i + 1, link) ||
			    ip_here("addr add fd99:%d::%d/64 dev link%d nodad",
				    link, i + 1, link) ||
			    ip_here("link set link%d up", link))
				return "the link cannot be used";
	}
	return NULL;
}

void net_require(void)
{
	if (geteuid())
		skip("they need root");
	if (system("ip -Version >/dev/null 2>&1"))
		skip("the command ip is missing");
	if (system("unshare --net ip link add type veth >/dev/null 2>&1"))
		skip("unshare or veth links are refused");
}

void net_begin(unsigned int mtu)
{
	const char *failed;

	if (net_is_on())
		return;
	net_require();
	/* Both sides answer, however late a busy machine lets them. */
	setenv("FI_WEFT_CONNECT_TIMEOUT", "60000", 0);
	failed = make(mtu);
	if (failed)
		skip(failed);
	net_enter(0);
}

bool net_is_on(void)
{
	return hosts[0] >= 0;
}

void net_enter(int host)
{
	CHECK_SYS(setns(hosts[host], CLONE_NEWNET));
	here = host;
}

int net_here(void)
{
	return here;
}

const char *net_addr(int host)
{
	return host ? "10.99.0.2" : "10.99.0.1";
}

const char *net_addr6(int host)
{
	return host ? "fd99:0::2" : "fd99:0::1";
}

const char *net_other_addr(int host)
{
	return host ? "10.99.1.2" : "10.99.1.1";
}

void net_ip(int host, const char *format, ...)
{
	int was = here, ret;
	va_list args;

	net_enter(host);
	va_start(args, format);
	ret = ip(format, args);
	va_end(args);
	net_enter(was);
	if (ret)
		FAIL("ip %s: %d", format, ret);
}

/* The values of @name: a line with names, then a line with numbers. */
static unsigned long long column(char *names, char *numbers, const char *name)
{
	char *more_names, *more_numbers, *number;

	names = strtok_r(names, " \n", &more_names);
	number = strtok_r(numbers, " \n", &more_numbers);
	while (names && number && strcmp(names, name)) {
		names = strtok_r(NULL, " \n", &more_names);
		number = strtok_r(NULL, " \n", &more_numbers);
	}
	CHECK(names && number);
	return strtoull(number, NULL, 10);
}

unsigned long long net_fragments(void)
{
	unsigned long long total, value;
	char line[512], numbers[512];
	FILE *all;

	all = fopen("/proc/thread-self/net/snmp", "r");
	CHECK(all);
	CHECK(fgets(line, sizeof(line), all) &&
	      fgets(numbers, sizeof(numbers), all));
	fclose(all);
	total = column(line, numbers, "FragCreates");
	all = fopen("/proc/thread-self/net/snmp6", "r");
	CHECK(all);
	while (fgets(line, sizeof(line), all))
		if (sscanf(line, "Ip6FragCreates %llu", &value) == 1)
			total += value;
	fclose(all);
	return total;
}

unsigned long long net_tcp_count(const char *name)
{
	FILE *all = fopen("/proc/thread-self/net/netstat", "r");
	static char names[8192], numbers[8192];

	CHECK(all);
	CHECK(fgets(names, sizeof(names), all) &&
	      fgets(numbers, sizeof(numbers), all));
	fclose(all);
	return column(names, numbers, name);
}

unsigned long long net_sent(const char *link)
{
	FILE *all = fopen("/proc/thread-self/net/dev", "r");
	unsigned long long sent = 0;
	char line[256];

	CHECK(all);
	while (fgets(line, sizeof(line), all)) {
		char *colon = strchr(line, ':');
		char *name = line + strspn(line, " ");

		if (!colon)
			continue;
		*colon = 0;
		if (!strcmp(name, link))
			CHECK_EQ(sscanf(colon + 1,
					"%*u %*u %*u %*u %*u %*u %*u %*u %llu",
					&sent),
				 1);
	}
	fclose(all);
	return sent;
}
