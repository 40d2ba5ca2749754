/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rights of threads that use CMA. System calls as they are: libc's would
 * change all threads of the process.
 */
#include "devd/reach.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

static _Thread_local uid_t goes_as = (uid_t)-1;

void wf_devd_reach_humbly(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	goes_as = getuid();
	if (syscall(SYS_capget, &header, data))
		return; /* no capabilities in this kernel: none to give up */
	data[0].effective &= ~(1u << CAP_SYS_PTRACE);
	if (syscall(SYS_capset, &header, data))
		wf_warn("a right that is not needed cannot be given up: %s",
			strerror(errno));
}

void wf_devd_reach_as(uid_t uid, gid_t gid)
{
	if (uid == goes_as)
		return;
	/* Real ids are what ptrace(2), "access mode checking", compares. */
	if (!syscall(SYS_setresgid, gid, -1, -1) &&
	    !syscall(SYS_setresuid, uid, -1, -1))
		goes_as = uid;
}
