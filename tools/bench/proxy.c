/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Represents a responder on another host: asks the server there to start it,
 * and forwards what the parent and the initiator send to it and what it
 * answers. It sleeps while messages are measured, because these do not pass
 * through it.
 */
#include "tools/bench/proxy.h"

#include "tools/bench/control_defs.h"
#include "tools/bench/host.h"
#include "tools/bench/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int report(int status, const char *text)
{
	struct wf_tools_reply reply = { .status = status };

	snprintf(reply.text, sizeof(reply.text), "%.255s", text);
	send(WF_TOOLS_FD_CONTROL, &reply, sizeof(reply), MSG_NOSIGNAL);
	return 1;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

pid_t wf_tools_proxy_start(const struct wf_tools_host *host, int cpu,
			   char *const *words, unsigned n, int control,
			   int side)
{
	char port[16], session[24];
	char *argv[1 + WF_TOOLS_PROXY_WORDS + WF_TOOLS_PROXY_MOST_WORDS + 1] = {
		[0] = "weft",
		[1] = WF_TOOLS_PROXY_COMMAND,
		[1 + WF_TOOLS_PROXY_NAME] = (char *)host->name,
		[1 + WF_TOOLS_PROXY_ADDRESS] = (char *)host->address,
		[1 + WF_TOOLS_PROXY_PORT] = port,
		[1 + WF_TOOLS_PROXY_SESSION] = session,
	};
	struct wf_tools_process process = {
		.argv = argv,
		.cpu = cpu,
		.fds = { -1, -1, STDERR_FILENO, control, side, -1 },
	};

	assert(n <= WF_TOOLS_PROXY_MOST_WORDS);
	snprintf(port, sizeof(port), "%u", host->port);
	snprintf(session, sizeof(session), "%llx",
		 (unsigned long long)host->session);
	memcpy(argv + 1 + WF_TOOLS_PROXY_WORDS, words, n * sizeof(*words));
	return wf_tools_process_spawn(&process);
}

int wf_tools_proxy_main(int argc, char **argv)
{
	char text[WF_TOOLS_HOST_ERROR], said[WF_TOOLS_HOST_ERROR + 80];
	struct wf_tools_host host;
	int fd, ret;

	if (argc <= WF_TOOLS_PROXY_WORDS) {
		fputs("weft: " WF_TOOLS_PROXY_COMMAND
		      " is started by `weft bench`\n",
		      stderr);
		return 2;
	}
	host = (struct wf_tools_host){
		.name = argv[WF_TOOLS_PROXY_NAME],
		.port = (unsigned)atoi(argv[WF_TOOLS_PROXY_PORT]),
		.session = strtoull(argv[WF_TOOLS_PROXY_SESSION], NULL, 16),
	};
	snprintf(host.address, sizeof(host.address), "%s",
		 argv[WF_TOOLS_PROXY_ADDRESS]);
	wf_tools_process_catch();
	fd = wf_tools_host_connect(&host, text);
	if (fd < 0)
		return report(fd, text);
	ret = wf_tools_host_start(fd, argv + WF_TOOLS_PROXY_WORDS,
				  (unsigned)(argc - WF_TOOLS_PROXY_WORDS),
				  text);
	if (!ret && text[0]) /* of ucx: its port */
		report(0, text);
	if (!ret)
		ret = wf_tools_host_relay(
			fd, WF_TOOLS_FD_CONTROL,
			is_open(WF_TOOLS_FD_SIDE) ? WF_TOOLS_FD_SIDE : -1,
			text);
	else if (ret != -EREMOTEIO)
		ret = -ENODATA;
	switch (ret) {
	case 0:
	case -EINTR:
		return 0;
	case -ENODATA:
		snprintf(said, sizeof(said), "lost the connection to %s",
			 host.name);
		break;
	case -ECHILD:
		snprintf(said, sizeof(said), "the process on %s %s", host.name,
			 text);
		break;
	default:
		snprintf(said, sizeof(said), "%s says: %s", host.name, text);
	}
	return report(ret == -ECHILD ? -EREMOTEIO : ret, said);
}
