/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues as applications see them: reading, peeking, waiting with every
 * wait object, and the limits of fi_eq_write().
 */
#include "prov_check.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static struct fid_fabric *fabric;

static struct fid_eq *open_eq(size_t size, uint64_t flags,
			      enum fi_wait_obj wait_obj)
{
	struct fi_eq_attr attr = { .size = size,
				   .flags = flags,
				   .wait_obj = wait_obj };
	struct fid_eq *eq;

	MUST(fi_eq_open(fabric, &attr, &eq, NULL));
	return eq;
}

static ssize_t write_number(struct fid_eq *eq, uint64_t number)
{
	struct fi_eq_entry entry = { .fid = &eq->fid, .data = number };

	return fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0);
}

/* Returns the number in the event, or an error. */
static long long read_number(struct fid_eq *eq, uint64_t flags)
{
	struct fi_eq_entry entry;
	uint32_t event = 99;
	ssize_t ret = fi_eq_read(eq, &event, &entry, sizeof(entry), flags);

	if (ret < 0)
		return ret;
	CHECK_INT(ret, sizeof(entry));
	CHECK_INT(event, FI_NOTIFY);
	CHECK(entry.fid == &eq->fid, "fid");
	return (long long)entry.data;
}

static void test_order_and_peek(void)
{
	struct fid_eq *eq = open_eq(0, FI_WRITE, FI_WAIT_NONE);
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry;
	uint32_t event;

	CHECK_INT(read_number(eq, 0), -FI_EAGAIN);
	for (uint64_t i = 1; i <= 3; i++)
		CHECK_INT(write_number(eq, i), sizeof(entry));
	CHECK_INT(read_number(eq, FI_PEEK), 1);
	CHECK_INT(read_number(eq, FI_PEEK), 1);
	CHECK_INT(read_number(eq, 0), 1);
	CHECK_INT(fi_eq_readerr(eq, &err, 0), -FI_EAGAIN);
	/* A small buffer gets the bytes that fit. */
	CHECK_INT(fi_eq_read(eq, &event, &entry, 8, 0), 8);
	CHECK_INT(read_number(eq, 0), 3);
	CHECK_INT(read_number(eq, 0), -FI_EAGAIN);
	/* Without a wait object a thread cannot wait. */
	CHECK_INT(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0),
		  -FI_ENOSYS);
	CHECK_INT(write_number(eq, 4), sizeof(entry));
	CHECK_INT(fi_close(&eq->fid), 0); /* unread events are lost */
}

static void test_size(void)
{
	struct fid_eq *eq = open_eq(32, FI_WRITE, FI_WAIT_NONE);
	struct fid_eq *mute = open_eq(32, 0, FI_WAIT_NONE);

	for (uint64_t i = 0; i < 32; i++)
		CHECK_INT(write_number(eq, i), sizeof(struct fi_eq_entry));
	CHECK_INT(write_number(eq, 32), -FI_EAGAIN);
	CHECK_INT(read_number(eq, 0), 0);
	CHECK_INT(write_number(eq, 33), sizeof(struct fi_eq_entry));
	CHECK_INT(write_number(mute, 1), -FI_EINVAL);
	CHECK_INT(fi_close(&eq->fid), 0);
	CHECK_INT(fi_close(&mute->fid), 0);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void *write_later(void *arg)
{
	struct fid_eq *eq = arg;

	usleep(50000);
	write_number(eq, 5);
	return NULL;
}

static void test_sread(enum fi_wait_obj wait_obj)
{
	struct fid_eq *eq = open_eq(0, FI_WRITE, wait_obj);
	struct fi_eq_entry entry;
	pthread_t thread;
	uint32_t event;
	double start = now();

	CHECK_INT(fi_eq_sread(eq, &event, &entry, sizeof(entry), 100, 0),
		  -FI_EAGAIN);
	CHECK(now() - start >= 0.09, "waited %f s", now() - start);
	CHECK_INT(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0),
		  -FI_EAGAIN);
	/* An event of another thread wakes the waiting one, with and without a
	 * time-out. */
	for (int timeout = -1; timeout <= 100000; timeout += 100001) {
		MUST(pthread_create(&thread, NULL, write_later, eq));
		CHECK_INT(fi_eq_sread(eq, &event, &entry, sizeof(entry),
				      timeout, 0),
			  sizeof(entry));
		CHECK_INT(entry.data, 5);
		pthread_join(thread, NULL);
	}
	/* It was not the time-out that ended the second one. */
	CHECK(now() - start < 60, "took %f s", now() - start);
	CHECK_INT(fi_close(&eq->fid), 0);
}

static void test_fd(void)
{
	struct fid_eq *eq = open_eq(0, FI_WRITE, FI_WAIT_FD);
	struct fid *fids[] = { &eq->fid };
	struct pollfd pfd = { .fd = -1, .events = POLLIN };
	enum fi_wait_obj obj;

	CHECK_INT(fi_control(&eq->fid, FI_GETWAIT, &pfd.fd), 0);
	CHECK_INT(fi_control(&eq->fid, FI_GETWAITOBJ, &obj), 0);
	CHECK_INT(obj, FI_WAIT_FD);
	CHECK_INT(fi_trywait(fabric, fids, 1), 0);
	CHECK_INT(poll(&pfd, 1, 0), 0);
	write_number(eq, 1);
	write_number(eq, 2);
	CHECK_INT(fi_trywait(fabric, fids, 1), -FI_EAGAIN);
	CHECK_INT(poll(&pfd, 1, 0), 1);
	CHECK_INT(read_number(eq, FI_PEEK), 1);
	CHECK_INT(read_number(eq, 0), 1);
	CHECK_INT(poll(&pfd, 1, 0), 1);
	CHECK_INT(read_number(eq, 0), 2);
	CHECK_INT(poll(&pfd, 1, 0), 0);
	CHECK_INT(fi_trywait(fabric, fids, 1), 0);
	CHECK_INT(fi_close(&eq->fid), 0);
	CHECK_INT(fcntl(pfd.fd, F_GETFD), -1);
}

static void test_mutex_cond(void)
{
	struct fid_eq *eq = open_eq(0, FI_WRITE, FI_WAIT_MUTEX_COND);
	struct fi_mutex_cond pair = { 0 };

	CHECK_INT(fi_control(&eq->fid, FI_GETWAIT, &pair), 0);
	CHECK(pair.mutex && pair.cond, "no pair");
	CHECK_INT(pthread_mutex_trylock(pair.mutex), 0);
	pthread_mutex_unlock(pair.mutex);
	CHECK_INT(fi_close(&eq->fid), 0);
}

static void test_open_refuses(void)
{
	struct fi_eq_attr set = { .wait_obj = FI_WAIT_SET };
	struct fi_eq_attr pollfd = { .wait_obj = FI_WAIT_POLLFD };
	struct fi_eq_attr flags = { .flags = FI_PEEK };
	struct fid_eq *eq;

	CHECK_INT(fi_eq_open(fabric, &set, &eq, NULL), -FI_ENOSYS);
	CHECK_INT(fi_eq_open(fabric, &pollfd, &eq, NULL), -FI_ENOSYS);
	CHECK_INT(fi_eq_open(fabric, &flags, &eq, NULL), -FI_EINVAL);
}

static void test_strerror(void)
{
	struct fid_eq *eq = open_eq(0, 0, FI_WAIT_UNSPEC);
	char buf[6];
	int fd;

	CHECK(!strcmp(fi_eq_strerror(eq, FI_EINVAL, NULL, NULL, 0),
		      fi_strerror(FI_EINVAL)),
	      "text");
	CHECK(fi_eq_strerror(eq, FI_EINVAL, NULL, buf, sizeof(buf)) == buf,
	      "buffer");
	CHECK(!strcmp(buf, "Inval"), "%s", buf);
	/* Objects that fi_control() cannot return are refused. */
	CHECK(fi_control(&eq->fid, FI_GETWAIT, &fd) < 0, "a wait object");
	CHECK_INT(fi_control(&eq->fid, FI_ENABLE, NULL), -FI_ENOSYS);
	CHECK_INT(fi_close(&fabric->fid), -FI_EBUSY);
	CHECK_INT(fi_close(&eq->fid), 0);
}

int main(void)
{
	struct fi_info *hints, *info;

	check_only_weft();
	hints = check_hints();
	MUST(fi_getinfo(API, NULL, NULL, 0, hints, &info));
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	test_order_and_peek();
	test_size();
	test_sread(FI_WAIT_UNSPEC);
	test_sread(FI_WAIT_MUTEX_COND);
	test_sread(FI_WAIT_FD);
	test_fd();
	test_mutex_cond();
	test_open_refuses();
	test_strerror();
	CHECK_INT(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return check_result();
}
