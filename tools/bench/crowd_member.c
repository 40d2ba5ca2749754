/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One of many processes: opens an endpoint, gets the addresses of all others,
 * sends each a message and receives one from each. There are more processes
 * than CPUs, so a process that finds nothing yields its CPU.
 */
#include "tools/bench/crowd_member.h"

#include "base/clock.h"
#include "tools/bench/crowd_defs.h"
#include "tools/bench/footprint.h"
#include "tools/bench/message.h"
#include "tools/bench/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct member {
	struct wf_tools_fabric *f;
	unsigned n;
	fi_addr_t *addrs;
	uint8_t own[WF_TOOLS_CROWD_NAME];
	double start; /* bytes used before libfabric was called */
};

/* To count memory takes time, which others need while they exchange messages:
 * only the last report has it. */
static int say_bytes(struct member *m, int status, const char *text,
		     double bytes)
{
	struct wf_tools_crowd_word word = {
		.status = status,
		.now = wf_base_clock_ns(),
		.bytes = bytes,
	};

	memcpy(word.name, m->own, sizeof(word.name));
	snprintf(word.text, sizeof(word.text), "%s", text);
	if (send(WF_TOOLS_CROWD_FD, &word, sizeof(word), MSG_NOSIGNAL) !=
	    (ssize_t)sizeof(word))
		return -EPIPE;
	return status;
}

static int say(struct member *m, int status, const char *text)
{
	return say_bytes(m, status, text, 0);
}

/* Sleeps until the parent sends something: no messages are exchanged yet. */
static ssize_t hear_first(void *message, size_t len)
{
	ssize_t got;

	do {
		got = recv(WF_TOOLS_CROWD_FD, message, len, 0);
	} while (got < 0 && errno == EINTR);
	return got;
}

/* Makes progress until the parent sends something: others may need us. */
static ssize_t hear(struct member *m, void *message, size_t len)
{
	ssize_t got;

	while ((got = recv(WF_TOOLS_CROWD_FD, message, len, MSG_DONTWAIT)) <
		       0 &&
	       (errno == EAGAIN || errno == EINTR)) {
		if (wf_tools_message_read(m->f))
			return -EIO;
	}
	return got;
}

static int learn(struct member *m)
{
	size_t len = m->n * sizeof(struct wf_tools_crowd_name);
	struct wf_tools_crowd_name *names = malloc(len);
	unsigned i;
	int ret = -ENOMEM;

	m->addrs = calloc(m->n, sizeof(*m->addrs));
	if (!names || !m->addrs)
		goto out;
	ret = -EPIPE;
	if (hear_first(names, len) != (ssize_t)len)
		goto out;
	ret = 0;
	for (i = 0; i < m->n && !ret; i++) {
		m->addrs[i] = FI_ADDR_UNSPEC;
		if (!memcmp(names[i].bytes, m->own, sizeof(m->own)))
			continue;
		ret = fi_av_insert(m->f->av, names[i].bytes, 1, &m->addrs[i], 0,
				   NULL);
		ret = ret == 1 ?
			      0 :
			      wf_tools_fabric_fail(m->f, "fi_av_insert",
						   ret < 0 ? ret : -FI_EINVAL);
	}
out:
	free(names);
	return ret;
}

static int talk(struct member *m)
{
	struct wf_tools_fabric *f = m->f;
	unsigned i;
	int ret = 0;

	wf_tools_fabric_carve(f, WF_TOOLS_MESSAGE_ACK);
	for (i = 0; i + 1 < m->n && !ret; i++)
		ret = wf_tools_message_post(f, &f->receives[i],
					    WF_TOOLS_MESSAGE_ACK, i);
	for (i = 0; i < m->n && !ret; i++) {
		if (m->addrs[i] == FI_ADDR_UNSPEC)
			continue;
		f->peer = m->addrs[i];
		ret = wf_tools_message_send(f, &f->sends[0],
					    WF_TOOLS_MESSAGE_ACK);
	}
	return ret ? ret : wf_tools_message_wait(f, m->n - 1);
}

static int take_part(struct member *m)
{
	size_t len = sizeof(m->own);
	uint8_t word;
	int ret;

	ret = fi_getname(&m->f->ep->fid, m->own, &len);
	if (ret)
		return wf_tools_fabric_fail(m->f, "fi_getname", ret);
	ret = say(m, 0, "");
	if (!ret)
		ret = learn(m);
	if (!ret)
		ret = say(m, 0, "");
	if (!ret && hear_first(&word, 1) == 1)
		ret = talk(m);
	if (!ret)
		ret = say(m, 0, "");
	if (!ret && hear(m, &word, 1) == 1)
		ret = say_bytes(m, 0, "", wf_tools_footprint() - m->start);
	/* The parent closes the socket when all members have reported. */
	if (!ret)
		hear(m, &word, 1);
	return ret;
}

int wf_tools_crowd_member_main(int argc, char **argv)
{
	struct member m = { 0 };
	struct wf_tools_engine_config config = {
		.tagged = true,
		.yield = true,
		.alone = true,
		.bytes = 4096,
	};
	char error[256] = "no memory";
	int ret;

	m.n = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
	if (m.n < 2 || m.n > WF_TOOLS_CROWD_MAX) {
		fputs("weft: bench-crowd is started by `weft bench`\n", stderr);
		return 2;
	}
	config.name = argv[1];
	config.window = m.n;
	wf_tools_process_follow();
	m.start = wf_tools_footprint();
	ret = wf_tools_fabric_open(&config, &m.f, error, sizeof(error));
	if (ret) {
		say(&m, ret, error);
		return 1;
	}
	ret = take_part(&m);
	if (ret)
		say(&m, ret, m.f->error);
	else
		wf_tools_fabric_close(m.f);
	free(m.addrs);
	return ret ? 1 : 0;
}
