/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host whose firewall drops UDP, or a process that is not a weft process: a
 * socket that accepts every packet and never answers. After 2 s one warning
 * names the peer and says what to check, `weft stat` shows it, and at the
 * connect time-out each operation fails. (Bug: 150 s without an error or a line
 * in the log.)
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

#include "common/net.h"
#include "msg_util.h"

#define TIMEOUT_MS 4000 /* FI_WEFT_CONNECT_TIMEOUT */
#define LATE_MS 60000	/* the machine may be busy */

/* On the other host, for as long as this process lives. */
static uint16_t swallow(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);
	int fd;

	net_enter(1);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK_SYS(fd);
	inet_pton(AF_INET, net_addr(1), &sin.sin_addr);
	CHECK_SYS(bind(fd, (struct sockaddr *)&sin, sizeof(sin)));
	CHECK_SYS(getsockname(fd, (struct sockaddr *)&sin, &len));
	net_enter(0);
	return ntohs(sin.sin_port);
}

static int count_in(const char *text, const char *what)
{
	int count = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		count++;
	}
	return count;
}

static void read_all(FILE *from, char *text, size_t room)
{
	size_t len;

	CHECK(from);
	len = fread(text, 1, room - 1, from);
	text[len] = 0;
}

static void read_log(const char *log, char *text, size_t room)
{
	FILE *from = fopen(log, "r");

	read_all(from, text, room);
	fclose(from);
}

/* Reads what `weft stat` prints for this process. */
static void read_stat(char *text, size_t room)
{
	char command[512];
	FILE *from;

	snprintf(command, sizeof(command), "%s/tools/weft stat --json -p %d",
		 getenv("WEFT_BUILD"), (int)getpid());
	from = popen(command, "r");
	read_all(from, text, room);
	pclose(from);
}

int main(void)
{
	const struct weft_test_opts opts = { 0 };
	struct sockaddr_in sin = { .sin_family = AF_INET };
	char log[] = "/tmp/net_silent.XXXXXX", text[65536];
	uint8_t name[WEFT_TEST_NAME_MAX] = { 0 }, *large = msg_alloc(100000);
	struct fi_context small_tx, large_tx;
	uint64_t began, word = 1;
	struct weft_test t;
	int saved, fd;
	fi_addr_t to;

	setenv("FI_WEFT_CONNECT_TIMEOUT", "4000", 1);
	weft_test_begin(100);
	net_begin(1500);
	sin.sin_port = htons(swallow());
	inet_pton(AF_INET, net_addr(1), &sin.sin_addr);
	memcpy(name, &sin, sizeof(sin));
	fd = mkstemp(log);
	CHECK_SYS(fd);
	saved = dup(STDERR_FILENO);
	CHECK_SYS(dup2(fd, STDERR_FILENO));
	weft_test_open(&t, &opts);
	to = weft_test_insert(&t, name);
	began = weft_test_ms();
	CHECK_OK(weft_test_send(&t, &word, sizeof(word), to, &small_tx));
	CHECK_OK(weft_test_send(&t, large, 100000, to, &large_tx));
	CHECK_OK(weft_test_inject(&t, &word, sizeof(word), to));
	do {
		weft_test_progress_for(100);
		read_log(log, text, sizeof(text));
		CHECK(weft_test_ms() - began < TIMEOUT_MS + LATE_MS);
	} while (!count_in(text, "no answer from"));
	if (weft_test_ms() - began < TIMEOUT_MS - 500) {
		read_stat(text, sizeof(text));
		if (!strstr(text, "unanswered\": 1"))
			printf("weft stat: %s\n", text);
		CHECK(weft_test_ms() - began > TIMEOUT_MS - 500 ||
		      strstr(text, "unanswered\": 1"));
	}
	for (int i = 0; i < 3; i++) /* also for the injected one */
		weft_test_wait_err(t.txcq, NULL, FI_EHOSTUNREACH);
	CHECK(weft_test_ms() - began >= TIMEOUT_MS - 5);
	CHECK(weft_test_ms() - began < TIMEOUT_MS + LATE_MS);
	CHECK_SYS(dup2(saved, STDERR_FILENO));
	read_log(log, text, sizeof(text));
	unlink(log);
	printf("%s", text);
	CHECK_EQ(count_in(text, "no answer from"), 1);
	CHECK(strstr(text, net_addr(1)));
	CHECK(strstr(text, "by packets"));
	CHECK(strstr(text, "firewall"));
	CHECK(strstr(text, "FI_WEFT_IFACE"));
	weft_test_close(&t);
	free(large);
	return 0;
}
