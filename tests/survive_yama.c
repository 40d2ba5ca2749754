/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Yama (kernel.yama.ptrace_scope is 1): the kernel lets nobody copy from or to a
 * process that has not allowed it. With FI_WEFT_PTRACER=1 all processes allow
 * it, and large messages are copied once; without it they go through the ring,
 * and no process allows anything. Either way they arrive complete.
 *
 * Few machines have Yama, so this program has its rule in the place of the C
 * library's functions: the other process must have called prctl() first.
 */
#include "common/fabric.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define LEN ((size_t)1 << 20)
#define MESSAGES 4

/* Shared with the child. */
static struct {
	_Atomic int allowed; /* processes that have called prctl() */
	_Atomic int copies;  /* calls that the rule allowed */
	_Atomic int refused;
} * yama;

/* Called by libraries before main() as well. */
int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list args;

	va_start(args, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(args, unsigned long);
	va_end(args);
	if (option == PR_SET_PTRACER) {
		CHECK_EQ(arg[0], PR_SET_PTRACER_ANY);
		yama->allowed++;
		return 0;
	}
	return (int)syscall(SYS_prctl, option, arg[0], arg[1], arg[2], arg[3]);
}

static ssize_t copy(long call, pid_t pid, const struct iovec *local,
		    unsigned long liovcnt, const struct iovec *remote,
		    unsigned long riovcnt, unsigned long flags)
{
	if (pid != getpid() && yama->allowed < 2) {
		yama->refused++;
		errno = EPERM;
		return -1;
	}
	yama->copies += pid != getpid();
	return syscall(call, pid, local, liovcnt, remote, riovcnt, flags);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local,
			 unsigned long liovcnt, const struct iovec *remote,
			 unsigned long riovcnt, unsigned long flags)
{
	return copy(SYS_process_vm_readv, pid, local, liovcnt, remote, riovcnt,
		    flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local,
			  unsigned long liovcnt, const struct iovec *remote,
			  unsigned long riovcnt, unsigned long flags)
{
	return copy(SYS_process_vm_writev, pid, local, liovcnt, remote, riovcnt,
		    flags);
}

static void receive(struct weft_test *t, fi_addr_t peer,
		    struct weft_test_line *line, void *arg)
{
	uint8_t *buf = malloc(LEN);
	struct fi_context rx;

	(void)peer;
	(void)arg;
	CHECK(buf);
	for (uint64_t i = 0; i < MESSAGES; i++) {
		memset(buf, 0, LEN);
		CHECK_OK(weft_test_trecv(t, buf, LEN, i, 0, &rx));
		weft_test_wait_ok(t->rxcq, &rx);
		CHECK(weft_test_holds(buf, LEN, i));
	}
	weft_test_sync(line);
	free(buf);
}

static void send_all(struct weft_test *t, fi_addr_t peer,
		     struct weft_test_line *line, void *arg)
{
	uint8_t *buf = malloc(LEN);
	struct fi_context tx;

	(void)arg;
	CHECK(buf);
	for (uint64_t i = 0; i < MESSAGES; i++) {
		weft_test_fill(buf, LEN, i);
		CHECK_OK(weft_test_tsend(t, buf, LEN, peer, i, &tx));
		weft_test_wait_ok(t->txcq, &tx);
	}
	weft_test_sync(line);
	free(buf);
}

static void run(struct weft_test_line *line, void *setting)
{
	(void)line;
	if (setting)
		CHECK_SYS(setenv("FI_WEFT_PTRACER", setting, 1));
	weft_test_pair(NULL, receive, send_all, NULL);
}

/* Runs both sides with FI_WEFT_PTRACER=@setting. */
static void apart(const char *setting)
{
	struct weft_test_line line;

	yama->allowed = yama->copies = yama->refused = 0;
	weft_test_fork(&line, run, (void *)(uintptr_t)setting);
	weft_test_join(&line);
	printf("FI_WEFT_PTRACER=%s: allowed by %d, copied %d times, refused %d\n",
	       setting ? setting : "", yama->allowed, yama->copies,
	       yama->refused);
}

int main(void)
{
	yama = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(yama != MAP_FAILED);
	weft_test_begin(110);
	CHECK_SYS(unsetenv("FI_WEFT_PTRACER"));
	apart(NULL);
	CHECK_EQ(yama->allowed, 0);
	CHECK_EQ(yama->copies, 0);
	CHECK(yama->refused > 0); /* the rule was asked */
	apart("0");
	CHECK_EQ(yama->allowed, 0);
	apart("1");
	CHECK_EQ(yama->allowed, 2);
	CHECK(yama->copies >= MESSAGES);
	CHECK_EQ(yama->refused, 0);
	return 0;
}
