/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of atomic operations that meet: threads on one object of every
 * datatype, aligned and not, the application's own atomics among them, objects
 * that overlap, and forks while a lock is held.
 */
#include "op/amo.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_domain.h>

#include <cmocka.h>

#define THREADS 4
/* Below 65536: test_overlaps() counts in 16 bits. TSan sees a race in the first
 * rounds, and makes each of them ten times as long. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ROUNDS 4000
#endif
#endif
#if !defined(ROUNDS)
#define ROUNDS 20000
#endif

/* A line with neighbours on both sides. */
static struct {
	uint8_t bytes[192];
} field __attribute__((aligned(64)));

struct job {
	pthread_t thread;
	void (*work)(struct job *job);
	unsigned int number;
	unsigned int datatype;
	uint8_t *at;
	uint64_t *seen; /* one word per fetched value */
};

static atomic_uint gate;

static void *start(void *arg)
{
	struct job *job = arg;

	/* All at once: on few processors the first would be done otherwise. */
	atomic_fetch_add(&gate, 1);
	while (atomic_load(&gate) < THREADS)
		sched_yield();
	job->work(job);
	return NULL;
}

static void run_jobs(struct job *jobs)
{
	atomic_store(&gate, 0);
	for (unsigned int i = 0; i < THREADS; i++) {
		jobs[i].number = i;
		assert_int_equal(
			pthread_create(&jobs[i].thread, NULL, start, &jobs[i]),
			0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(jobs[i].thread, NULL);
}

/* The number @n in any datatype; a type that has no room for it wraps. */
static void put_number(unsigned int datatype, unsigned int n, void *to)
{
	long double wide[2] = { n, 0 };
	double two[2] = { n, 0 };
	float pair[2] = { (float)n, 0 };
	__int128 integer = n;

	switch (datatype) {
	case FI_FLOAT:
	case FI_FLOAT_COMPLEX:
		memcpy(to, pair, wf_op_amo_size(datatype));
		break;
	case FI_DOUBLE:
	case FI_DOUBLE_COMPLEX:
		memcpy(to, two, wf_op_amo_size(datatype));
		break;
	case FI_LONG_DOUBLE:
	case FI_LONG_DOUBLE_COMPLEX:
		memcpy(to, wide, wf_op_amo_size(datatype));
		break;
	default:
		memcpy(to, &integer, wf_op_amo_size(datatype));
	}
}

static long double get_real(unsigned int datatype, const void *from)
{
	long double wide;
	double d;
	float f;

	switch (datatype) {
	case FI_FLOAT:
	case FI_FLOAT_COMPLEX:
		memcpy(&f, from, sizeof(f));
		return f;
	case FI_DOUBLE:
	case FI_DOUBLE_COMPLEX:
		memcpy(&d, from, sizeof(d));
		return d;
	}
	memcpy(&wide, from, sizeof(wide));
	return wide;
}

static bool is_integer(unsigned int datatype)
{
	return datatype <= FI_UINT64 || datatype == FI_INT128 ||
	       datatype == FI_UINT128;
}

static void assert_number(unsigned int datatype, unsigned int n, const void *is)
{
	uint8_t expected[WF_OP_AMO_SIZE_MAX];

	put_number(datatype, n, expected);
	if (is_integer(datatype))
		assert_memory_equal(is, expected, wf_op_amo_size(datatype));
	else /* not what lies beside a long double */
		assert_true(get_real(datatype, is) == n);
}

/* Up, by the operation; half of them fetch. */
static void add_ones(struct job *job)
{
	enum wf_op_amo_kind kind =
		job->number % 2 ? WF_OP_AMO_WRITE : WF_OP_AMO_FETCH;
	uint8_t one[WF_OP_AMO_SIZE_MAX], result[WF_OP_AMO_SIZE_MAX];

	put_number(job->datatype, 1, one);
	for (unsigned int i = 0; i < ROUNDS; i++)
		wf_op_amo_run(kind, FI_SUM, job->datatype, job->at, one, NULL,
			      result, 1);
}

/* Up, by reading and CSWAP. */
static void swap_ones(struct job *job)
{
	uint8_t seen[WF_OP_AMO_SIZE_MAX], next[WF_OP_AMO_SIZE_MAX];
	uint8_t was[WF_OP_AMO_SIZE_MAX], one[WF_OP_AMO_SIZE_MAX];
	size_t size = wf_op_amo_size(job->datatype);

	put_number(job->datatype, 1, one);
	for (unsigned int i = 0; i < ROUNDS;) {
		wf_op_amo_run(WF_OP_AMO_FETCH, FI_ATOMIC_READ, job->datatype,
			      job->at, NULL, NULL, seen, 1);
		memcpy(next, seen, size);
		wf_op_amo_run(WF_OP_AMO_WRITE, FI_SUM, job->datatype, next, one,
			      NULL, NULL, 1);
		wf_op_amo_run(WF_OP_AMO_COMPARE, FI_CSWAP, job->datatype,
			      job->at, next, seen, was, 1);
		i += !memcmp(was, seen, size);
	}
}

static void test_sums(void **state)
{
	/* Aligned to all; to 8; odd; across a line. */
	static const size_t places[] = { 64, 72, 65, 61 };
	struct job jobs[THREADS] = { 0 };

	(void)state;
	for (unsigned int t = 0; t <= FI_UINT128; t++) {
		for (size_t p = 0; p < sizeof(places) / sizeof(places[0]);
		     p++) {
			for (unsigned int i = 0; i < THREADS; i++) {
				jobs[i].work = i == 3 ? swap_ones : add_ones;
				jobs[i].datatype = t;
				jobs[i].at = field.bytes + places[p];
			}
			memset(&field, 0, sizeof(field));
			run_jobs(jobs);
			assert_number(t, THREADS * ROUNDS,
				      field.bytes + places[p]);
		}
	}
}

/* The application's own atomics on what we change. */
static void add_own(struct job *job)
{
	uint8_t one[WF_OP_AMO_SIZE_MAX], result[WF_OP_AMO_SIZE_MAX];

	put_number(job->datatype, 1, one);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		if (job->number % 2)
			wf_op_amo_run(WF_OP_AMO_FETCH, FI_SUM, job->datatype,
				      job->at, one, NULL, result, 1);
		else if (job->datatype == FI_INT8)
			atomic_fetch_add((_Atomic int8_t *)job->at, 1);
		else if (job->datatype == FI_UINT16)
			atomic_fetch_add((_Atomic uint16_t *)job->at, 1);
		else if (job->datatype == FI_INT32)
			atomic_fetch_add((_Atomic int32_t *)job->at, 1);
		else
			atomic_fetch_add((_Atomic uint64_t *)job->at, 1);
	}
}

static void test_application(void **state)
{
	static const unsigned int types[] = { FI_INT8, FI_UINT16, FI_INT32,
					      FI_UINT64 };
	struct job jobs[THREADS] = { 0 };

	(void)state;
	for (size_t t = 0; t < 4; t++) {
		for (unsigned int i = 0; i < THREADS; i++)
			jobs[i] = (struct job){ .work = add_own,
						.datatype = types[t],
						.at = field.bytes + 64 };
		memset(&field, 0, sizeof(field));
		run_jobs(jobs);
		assert_number(types[t], THREADS * ROUNDS, field.bytes + 64);
	}
}

/* Every value is fetched by one thread only. */
static void fetch_all(struct job *job)
{
	uint8_t one[WF_OP_AMO_SIZE_MAX];

	put_number(job->datatype, 1, one);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		uint8_t result[WF_OP_AMO_SIZE_MAX] = { 0 };
		uint64_t got;

		wf_op_amo_run(WF_OP_AMO_FETCH, FI_SUM, job->datatype, job->at,
			      one, NULL, result, 1);
		memcpy(&got, result, sizeof(got));
		if (!is_integer(job->datatype))
			got = (uint64_t)get_real(job->datatype, result);
		if (got < THREADS * ROUNDS)
			__atomic_fetch_add(&job->seen[got], 1,
					   __ATOMIC_RELAXED);
	}
}

static void test_fetched_once(void **state)
{
	static const unsigned int types[] = {
		FI_UINT32, FI_UINT64,	      FI_INT128,
		FI_DOUBLE, FI_DOUBLE_COMPLEX, FI_LONG_DOUBLE
	};
	uint64_t *seen = calloc(THREADS * ROUNDS, sizeof(*seen));

	(void)state;
	assert_non_null(seen);
	for (size_t i = 0; i < 2 * sizeof(types) / sizeof(types[0]); i++) {
		struct job jobs[THREADS];

		for (unsigned int j = 0; j < THREADS; j++)
			jobs[j] = (struct job){ .work = fetch_all,
						.datatype = types[i / 2],
						.at = field.bytes + 64 + i % 2,
						.seen = seen };
		memset(&field, 0, sizeof(field));
		memset(seen, 0, THREADS * ROUNDS * sizeof(*seen));
		run_jobs(jobs);
		for (size_t n = 0; n < THREADS * ROUNDS; n++)
			assert_int_equal(seen[n], 1);
	}
	free(seen);
}

/* Four objects of one word, or across two lines: each thread counts in a byte
 * range that is its own, by an object that covers others too. */
static const struct overlap {
	unsigned int datatype[THREADS];
	size_t at[THREADS];
	unsigned int shift[THREADS];
} overlaps[] = {
	/* By the processor: sizes mixed. */
	{ { FI_UINT64, FI_UINT16, FI_UINT64, FI_UINT16 },
	  { 64, 66, 64, 70 },
	  { 0, 0, 32, 0 } },
	/* By locks: datatypes, places and lines mixed. */
	{ { FI_UINT64, FI_UINT16, FI_UINT128, FI_UINT32 },
	  { 57, 59, 61, 65 },
	  { 0, 0, 0, 0 } },
};

static const struct overlap *overlap;

static void count_own(struct job *job)
{
	unsigned __int128 one = 1;

	one <<= overlap->shift[job->number];
	for (unsigned int i = 0; i < ROUNDS; i++)
		wf_op_amo_run(WF_OP_AMO_WRITE, FI_SUM,
			      overlap->datatype[job->number],
			      field.bytes + overlap->at[job->number], &one,
			      NULL, NULL, 1);
}

static void test_overlaps(void **state)
{
	struct job jobs[THREADS] = { 0 };

	(void)state;
	for (size_t o = 0; o < sizeof(overlaps) / sizeof(overlaps[0]); o++) {
		overlap = &overlaps[o];
		for (unsigned int i = 0; i < THREADS; i++)
			jobs[i].work = count_own;
		memset(&field, 0, sizeof(field));
		run_jobs(jobs);
		for (unsigned int i = 0; i < THREADS; i++) {
			uint16_t is;

			memcpy(&is,
			       field.bytes + overlap->at[i] +
				       overlap->shift[i] / 8,
			       sizeof(is));
			assert_int_equal(is, ROUNDS);
		}
	}
}

/* A lock made of CSWAP orders what it guards; ThreadSanitizer would say. */
static unsigned int guarded;

static void guard(struct job *job)
{
	static const uint8_t zero[WF_OP_AMO_SIZE_MAX];
	uint8_t one[WF_OP_AMO_SIZE_MAX], was[WF_OP_AMO_SIZE_MAX];
	size_t size = wf_op_amo_size(job->datatype);

	put_number(job->datatype, 1, one);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		for (;;) {
			wf_op_amo_run(WF_OP_AMO_COMPARE, FI_CSWAP,
				      job->datatype, job->at, one, zero, was,
				      1);
			if (!memcmp(was, zero, size))
				break;
			sched_yield();
		}
		guarded++;
		wf_op_amo_run(WF_OP_AMO_WRITE, FI_ATOMIC_WRITE, job->datatype,
			      job->at, zero, NULL, NULL, 1);
	}
}

static void test_guard(void **state)
{
	static const unsigned int types[] = { FI_UINT32, FI_UINT64, FI_DOUBLE,
					      FI_UINT128, FI_DOUBLE_COMPLEX };

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(types) / sizeof(types[0]); i++) {
		struct job jobs[THREADS];

		for (unsigned int j = 0; j < THREADS; j++)
			jobs[j] =
				(struct job){ .work = guard,
					      .datatype = types[i / 2],
					      .at = field.bytes + 64 + i % 2 };
		memset(&field, 0, sizeof(field));
		guarded = 0;
		run_jobs(jobs);
		assert_int_equal(guarded, THREADS * ROUNDS);
	}
}

static atomic_bool stop;

static void *hold_locks(void *arg)
{
	uint8_t one[WF_OP_AMO_SIZE_MAX] = { 0 };

	(void)arg;
	while (!atomic_load(&stop))
		for (size_t at = 60; at < 70; at++)
			wf_op_amo_run(WF_OP_AMO_WRITE, FI_SUM,
				      FI_LONG_DOUBLE_COMPLEX, field.bytes + at,
				      one, NULL, NULL, 1);
	return NULL;
}

/* Takes every lock there is. An end by SIGALRM: one was held. */
static void use_locks(void)
{
	static uint8_t many[64 * 64 + 64];
	uint8_t one[WF_OP_AMO_SIZE_MAX] = { 1 };

	alarm(100);
	for (size_t at = 1; at < sizeof(many) - 8; at += 64)
		wf_op_amo_run(WF_OP_AMO_WRITE, FI_SUM, FI_UINT64, many + at,
			      one, NULL, NULL, 1);
	alarm(0);
}

static int wait_for(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ?
		       WEXITSTATUS(status) :
		       1;
}

/* Forks @times while another thread begins to use the locks, and uses them. */
static int fork_often(int times)
{
	pthread_t thread;
	int failed = 0;

	atomic_store(&stop, false);
	if (pthread_create(&thread, NULL, hold_locks, NULL))
		return 1;
	for (int i = 0; i < times && !failed; i++) {
		pid_t pid = fork();

		if (!pid) {
			use_locks();
			_exit(0);
		}
		failed = wait_for(pid);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	return failed;
}

static void test_fork(void **state)
{
	(void)state;
	assert_int_equal(fork_often(100), 0);
	/* And a child's children are no worse off, not even those whose parent
	 * had a thread in its first use of a lock. */
	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(fork_often(3));
		assert_int_equal(wait_for(pid), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_application),
		cmocka_unit_test(test_fetched_once),
		cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
