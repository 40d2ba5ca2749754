/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loses packets by an XDP program of six instructions. Before such a program
 * sees them, the kernel divides what a sender left to segmentation offload, so
 * each loss is one packet, as on a real link.
 */
#include "loss.h"

#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *attr)
{
	long ret = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return ret < 0 ? -errno : (int)ret;
}

static int load(uint32_t ppm)
{
	/* Less than half of all, because the number is compared as a signed
	 * 32-bit value. */
	uint64_t below = ((uint64_t)ppm << 32) / 1000000;
	const struct bpf_insn code[] = {
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_prandom_u32 },
		{ .code = BPF_JMP32 | BPF_JLT | BPF_K,
		  .dst_reg = BPF_REG_0,
		  .off = 2,
		  .imm = (int32_t)below },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K,
		  .dst_reg = BPF_REG_0,
		  .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K,
		  .dst_reg = BPF_REG_0,
		  .imm = XDP_DROP },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;

	if (ppm >= 500000)
		return -EINVAL;
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.expected_attach_type = BPF_XDP;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = sizeof(code) / sizeof(code[0]);
	attr.license = (uintptr_t) "BSD";
	return bpf(BPF_PROG_LOAD, &attr);
}

int loss_attach(const char *interface, uint32_t ppm)
{
	int program = load(ppm), link;
	union bpf_attr attr;

	if (program < 0)
		return program;
	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)program;
	attr.link_create.target_ifindex = if_nametoindex(interface);
	attr.link_create.attach_type = BPF_XDP;
	link = bpf(BPF_LINK_CREATE, &attr);
	close(program);
	return link;
}
