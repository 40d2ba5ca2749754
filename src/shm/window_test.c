/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of memory that both sides map. Target and initiator are in this
 * process, but the initiator's mapping lies elsewhere. The tests count the
 * bytes that the kernel copies: if both sides map the memory, there are none.
 */
#include "shm/window.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <rdma/fi_atomic.h>

#include "op/amo.h"
#include "op/cntr.h"
#include "os/file.h"
#include "os/memory.h"
#include "shm/joined_test.h"

#define KEY 0x77
#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ROOM ((size_t)64 << 10)
#define SKIP 24 /* the registration begins here */

static int kernel_copies;

/* Instead of those of the C library. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *local,
			 unsigned long locals, const struct iovec *remote,
			 unsigned long remotes, unsigned long flags)
{
	kernel_copies++;
	return syscall(SYS_process_vm_readv, pid, local, locals, remote,
		       remotes, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local,
			  unsigned long locals, const struct iovec *remote,
			  unsigned long remotes, unsigned long flags)
{
	kernel_copies++;
	return syscall(SYS_process_vm_writev, pid, local, locals, remote,
		       remotes, flags);
}

struct target {
	struct joined *j;
	uint8_t *memory;
	int memfd;
};

static void open_target(struct target *t, unsigned int seals)
{
	void *base = NULL;

	t->j = joined_open(WF_SHM_WAY_CMA);
	t->memfd = wf_os_memfd_create("weft-window");
	assert_true(t->memfd >= 0);
	assert_int_equal(wf_os_ftruncate(t->memfd, ROOM), 0);
	if (seals)
		assert_int_equal(wf_os_seal(t->memfd, seals), 0);
	assert_int_equal(wf_os_mmap(&base, ROOM, PROT_READ | PROT_WRITE,
				    MAP_SHARED, t->memfd),
			 0);
	t->memory = base;
}

static void add_region(struct target *t, uint64_t key, uint64_t access,
		       uint32_t flags, size_t skip)
{
	const struct iovec iov = { t->memory + skip, ROOM - skip };
	struct wf_reg_file file = { .fd = (uint32_t)t->memfd, .offset = skip };
	struct wf_os_stat st;

	assert_int_equal(
		wf_op_regs_add(&t->j->regs, key, access, flags, &iov, 1), 0);
	assert_int_equal(wf_os_fstat(t->memfd, &st), 0);
	file.inode = st.inode;
	wf_op_regs_share(&t->j->regs, key, &file);
}

static void close_target(struct target *t)
{
	joined_close(t->j);
	wf_os_munmap(t->memory, ROOM);
	wf_os_close(t->memfd);
}

/* One operation on @len bytes; its status. */
static int operate(struct target *t, enum wf_tx_kind kind, void *buf,
		   size_t len, uint64_t at, uint64_t key)
{
	struct wf_remote remote = { .seg_count = 1,
				    .segs = { { at, len, key } } };
	struct wf_tx tx = {
		.kind = kind,
		.comp_flags = FI_RMA,
		.len = len,
		.wants_comp = true,
		.remote = &remote,
		.iov_count = 1,
		.iov = { { buf, len } },
	};
	struct wf_comp comp;

	assert_int_equal(wf_shm_out_send(t->j->out, &tx), 0);
	comp = joined_wait(t->j, &t->j->txq);
	return joined_err(&comp);
}

static struct wf_tx amo_of(struct wf_remote *remote, uint64_t *operand,
			   uint64_t *result, uint64_t at)
{
	*remote = (struct wf_remote){
		.seg_count = 1,
		.amo_kind = result ? WF_OP_AMO_FETCH : WF_OP_AMO_WRITE,
		.amo_op = FI_SUM,
		.amo_type = FI_UINT64,
		.result_count = result ? 1 : 0,
		.segs = { { at, 8, KEY } },
		.result = { { result, 8 } },
	};
	return (struct wf_tx){
		.kind = WF_TX_ATOMIC,
		.comp_flags = FI_ATOMIC,
		.len = 8,
		.wants_comp = true,
		.remote = remote,
		.iov_count = 1,
		.iov = { { operand, 8 } },
	};
}

/* Fetches and adds; the value before. Without a look at the target if @alone. */
static uint64_t fetch_add(struct target *t, uint64_t at, uint64_t add,
			  bool alone)
{
	uint64_t before = ~(uint64_t)0;
	struct wf_remote remote;
	struct wf_tx tx = amo_of(&remote, &add, &before, at);
	struct wf_comp comp;

	assert_int_equal(wf_shm_out_send(t->j->out, &tx), 0);
	if (alone)
		assert_true(joined_pop(&t->j->txq, &comp));
	else
		comp = joined_wait(t->j, &t->j->txq);
	assert_int_equal(joined_err(&comp), 0);
	return before;
}

/* Whether both map the region, after the first operations on it. */
static bool is_mapped(struct target *t, uint64_t at, uint64_t key)
{
	uint64_t word = 0;

	operate(t, WF_TX_READ, &word, sizeof(word), at, key);
	kernel_copies = 0;
	for (int i = 0; i < 3; i++)
		operate(t, WF_TX_READ, &word, sizeof(word), at, key);
	/* Through the memory file of a peer it is no call of these. */
	return !kernel_copies;
}

static void test_bytes(void **state)
{
	uint8_t buf[5000], back[5000];
	struct target t;

	(void)state;
	open_target(&t, WF_OS_SEAL_SHRINK);
	add_region(&t, KEY, RW, WF_REG_OFFSETS, SKIP);
	assert_true(is_mapped(&t, 0, KEY));
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)(i * 13 + 1);
	kernel_copies = 0;
	assert_int_equal(operate(&t, WF_TX_WRITE, buf, 5000, 4090, KEY), 0);
	assert_memory_equal(t.memory + SKIP + 4090, buf, 5000);
	assert_int_equal(t.memory[SKIP + 4089], 0);
	assert_int_equal(t.memory[SKIP + 9090], 0);
	assert_int_equal(operate(&t, WF_TX_READ, back, 5000, 4090, KEY), 0);
	assert_memory_equal(back, buf, 5000);
	assert_int_equal(kernel_copies, 0);
	close_target(&t);
}

/* By addresses of the target instead of offsets. */
static void test_virtual_addresses(void **state)
{
	uint64_t word = 0x1234, base;
	struct target t;

	(void)state;
	open_target(&t, WF_OS_SEAL_SHRINK);
	add_region(&t, KEY, RW, 0, 4096);
	base = (uint64_t)(uintptr_t)t.memory + 4096;
	assert_true(is_mapped(&t, base, KEY));
	assert_int_equal(operate(&t, WF_TX_WRITE, &word, 8, base + 80, KEY), 0);
	assert_memory_equal(t.memory + 4096 + 80, &word, 8);
	assert_int_equal(operate(&t, WF_TX_WRITE, &word, 8, base - 8, KEY),
			 FI_EKEYREJECTED);
	close_target(&t);
}

static void test_limits(void **state)
{
	uint64_t word = 7;
	struct target t;

	(void)state;
	open_target(&t, WF_OS_SEAL_SHRINK);
	add_region(&t, KEY, RW, WF_REG_OFFSETS, SKIP);
	add_region(&t, KEY + 1, FI_REMOTE_READ, WF_REG_OFFSETS, SKIP);
	assert_true(is_mapped(&t, 0, KEY));
	assert_true(is_mapped(&t, 0, KEY + 1));
	assert_int_equal(
		operate(&t, WF_TX_WRITE, &word, 8, ROOM - SKIP - 8, KEY), 0);
	assert_int_equal(
		operate(&t, WF_TX_WRITE, &word, 8, ROOM - SKIP - 7, KEY),
		FI_EKEYREJECTED);
	assert_int_equal(operate(&t, WF_TX_READ, &word, 8, UINT64_MAX - 3, KEY),
			 FI_EKEYREJECTED);
	assert_int_equal(operate(&t, WF_TX_WRITE, &word, 8, 0, KEY + 1),
			 FI_EKEYREJECTED);
	assert_int_equal(operate(&t, WF_TX_READ, &word, 8, 0, KEY + 65),
			 FI_EKEYREJECTED);
	close_target(&t);
}

/* A file that may shrink would be a signal; one that is another file, too. */
static void test_unsound(void **state)
{
	struct wf_reg_file file = { 0 };
	struct target t;

	(void)state;
	open_target(&t, 0);
	add_region(&t, KEY, RW, WF_REG_OFFSETS, SKIP);
	assert_false(is_mapped(&t, 0, KEY));
	close_target(&t);

	open_target(&t, WF_OS_SEAL_SHRINK);
	add_region(&t, KEY, RW, WF_REG_OFFSETS, SKIP);
	file.fd = (uint32_t)t.memfd;
	wf_op_regs_share(&t.j->regs, KEY, &file); /* no such inode */
	assert_false(is_mapped(&t, 0, KEY));
	close_target(&t);

	/* The registration claims more than the file holds. */
	open_target(&t, WF_OS_SEAL_SHRINK);
	add_region(&t, KEY, RW, WF_REG_OFFSETS, SKIP);
	{
		struct wf_os_stat st;

		assert_int_equal(wf_os_fstat(t.memfd, &st), 0);
		file.offset = SKIP + 4096;
		file.inode = st.inode;
	}
	wf_op_regs_share(&t.j->regs, KEY, &file);
	assert_false(is_mapped(&t, 0, KEY));
	close_target(&t);
}

/* A registration is gone: the window is not used, and is unmapped. */
static void test_deregistered(void **state)
{
	uint64_t word = 1;
	struct wf_shm_window *w;
	struct target t;
	void *map;

	(void)state;
	open_target(&t, WF_OS_SEAL_SHRINK);
	add_region(&t, KEY, RW, WF_REG_OFFSETS, 0);
	assert_true(is_mapped(&t, 0, KEY));
	w = &t.j->out->windows->all[KEY % WF_SHM_WINDOWS];
	map = w->map;
	assert_non_null(map);
	wf_op_regs_del(&t.j->regs, KEY);
	assert_int_equal(operate(&t, WF_TX_WRITE, &word, 8, 0, KEY),
			 FI_EKEYREJECTED);
	assert_int_equal(t.memory[0], 0);
	for (int i = 0; i < WF_SHM_WINDOWS; i++)
		wf_shm_window_sweep(t.j->out);
	assert_false(w->is_used);
	assert_false(wf_os_is_mapped(map, ROOM));
	/* The same key again, for other memory. */
	add_region(&t, KEY, RW, WF_REG_OFFSETS, 4096);
	assert_true(is_mapped(&t, 0, KEY));
	assert_int_equal(operate(&t, WF_TX_WRITE, &word, 8, 0, KEY), 0);
	assert_int_equal(t.memory[0], 0);
	assert_int_equal(t.memory[4096], 1);
	close_target(&t);
}

/* Two keys want one place: the second goes without a window. */
static void test_keys_that_meet(void **state)
{
	uint64_t word = 5;
	struct target t;

	(void)state;
	open_target(&t, WF_OS_SEAL_SHRINK);
	add_region(&t, KEY, RW, WF_REG_OFFSETS, 0);
	add_region(&t, KEY + WF_SHM_WINDOWS, RW, WF_REG_OFFSETS, 4096);
	assert_true(is_mapped(&t, 0, KEY));
	assert_false(is_mapped(&t, 0, KEY + WF_SHM_WINDOWS));
	assert_int_equal(
		operate(&t, WF_TX_WRITE, &word, 8, 0, KEY + WF_SHM_WINDOWS), 0);
	assert_int_equal(t.memory[4096], 5);
	assert_true(is_mapped(&t, 0, KEY));
	close_target(&t);
}

/* The target makes no progress: it need not. */
static void test_atomics(void **state)
{
	struct target t;
	uint64_t sum = 0;

	(void)state;
	open_target(&t, WF_OS_SEAL_SHRINK);
	add_region(&t, KEY, RW, WF_REG_OFFSETS, SKIP);
	assert_true(is_mapped(&t, 0, KEY));
	for (uint64_t i = 1; i <= 100; i++) {
		assert_int_equal(fetch_add(&t, 64, i, true), sum);
		sum += i;
	}
	assert_memory_equal(t.memory + SKIP + 64, &sum, 8);
	/* Not aligned: the target takes a lock for it. */
	assert_int_equal(fetch_add(&t, 101, 3, false), 0);
	close_target(&t);
}

/* An atomic that still lies in the ring comes first. */
static void test_atomics_in_order(void **state)
{
	uint64_t one = 1, two = 2;
	struct wf_remote remote;
	struct target t;
	struct wf_tx tx;

	(void)state;
	open_target(&t, WF_OS_SEAL_SHRINK);
	add_region(&t, KEY, RW, WF_REG_OFFSETS, 0);
	assert_true(is_mapped(&t, 0, KEY));
	tx = amo_of(&remote, &one, NULL, 3); /* not aligned */
	assert_int_equal(wf_shm_out_send(t.j->out, &tx), 0);
	tx = amo_of(&remote, &two, NULL, 64);
	assert_int_equal(wf_shm_out_send(t.j->out, &tx), 0);
	assert_int_equal(t.memory[3], 0);
	assert_int_equal(t.memory[64], 0);
	for (int i = 0; i < 1000; i++)
		joined_drive(t.j);
	assert_int_equal(t.memory[3], 1);
	assert_int_equal(t.memory[64], 2);
	for (struct wf_comp comp; joined_pop(&t.j->txq, &comp);)
		assert_int_equal(joined_err(&comp), 0);
	/* The ring is empty again. */
	assert_int_equal(fetch_add(&t, 64, 1, true), 2);
	close_target(&t);
}

/* Whoever counts accesses hears of them as before. */
static void test_counters(void **state)
{
	struct wf_cntr writes = { .waker = WF_WAKER_NONE };
	struct wf_cntr reads = { .waker = WF_WAKER_NONE };
	const struct wf_reg_watch watch = { &reads, &writes };
	uint64_t word = 9;
	struct target t;

	(void)state;
	open_target(&t, WF_OS_SEAL_SHRINK);
	add_region(&t, KEY, RW, WF_REG_OFFSETS, SKIP);
	assert_int_equal(wf_op_regs_watch(&t.j->regs, KEY, &watch), 0);
	assert_int_equal(operate(&t, WF_TX_WRITE, &word, 8, 0, KEY), 0);
	kernel_copies = 0;
	assert_int_equal(operate(&t, WF_TX_WRITE, &word, 8, 8, KEY), 0);
	assert_int_equal(operate(&t, WF_TX_READ, &word, 8, 8, KEY), 0);
	assert_int_equal(kernel_copies, 0);
	fetch_add(&t, 64, 1, false);
	for (int i = 0; i < 10; i++)
		joined_drive(t.j);
	assert_int_equal(atomic_load(&writes.value), 3);
	assert_int_equal(atomic_load(&reads.value), 1);
	close_target(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_virtual_addresses),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_unsound),
		cmocka_unit_test(test_deregistered),
		cmocka_unit_test(test_keys_that_meet),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_atomics_in_order),
		cmocka_unit_test(test_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
