/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A seccomp filter.
 */
#include "common/forbid.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "common/check.h"

/* @action: what the kernel does on the call. Exits with 77 where no filter is
 * possible. */
static void filter_cma(uint32_t action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0,
			 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {
		.len = sizeof(code) / sizeof(code[0]),
		.filter = code,
	};

	CHECK_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)) {
		printf("seccomp: %s\n", strerror(errno));
		_exit(77);
	}
}

void weft_test_forbid_cma(void)
{
	filter_cma(SECCOMP_RET_ERRNO | EPERM);
	CHECK_EQ(process_vm_readv(getpid(), NULL, 0, NULL, 0, 0), -1);
	CHECK_EQ(errno, EPERM);
}

void weft_test_deadly_cma(void)
{
	filter_cma(SECCOMP_RET_KILL_PROCESS);
}
