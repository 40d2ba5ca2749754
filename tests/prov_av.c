/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address vectors as applications see them: both types, both families, names
 * and ranges, duplicates, and errors in every way that they can be reported.
 */
#include "prov_check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;

static struct fid_av *open_av(enum fi_av_type type, uint64_t flags)
{
	struct fi_av_attr attr = { .type = type, .flags = flags };
	struct fid_av *av;

	MUST(fi_av_open(domain, &attr, &av, NULL));
	CHECK_INT(attr.type, type == FI_AV_UNSPEC ? FI_AV_TABLE : type);
	return av;
}

static struct fid_eq *open_eq(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_eq *eq;

	MUST(fi_eq_open(fabric, &attr, &eq, NULL));
	return eq;
}

static struct sockaddr_in ipv4(const char *ip, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(port) };

	inet_pton(AF_INET, ip, &in.sin_addr);
	return in;
}

static struct sockaddr_in6 ipv6(const char *ip, uint16_t port)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(port) };

	inet_pton(AF_INET6, ip, &in6.sin6_addr);
	return in6;
}

/* Returns the address that the AV holds at @addr as a string; "-" if none. */
static const char *at(struct fid_av *av, fi_addr_t addr)
{
	static char text[128];
	struct sockaddr_storage sa;
	size_t len = sizeof(sa), text_len = sizeof(text);

	if (fi_av_lookup(av, addr, &sa, &len))
		return "-";
	return fi_av_straddr(av, &sa, text, &text_len);
}

#define CHECK_AT(av, addr, want)                                               \
	CHECK(!strcmp(at(av, addr), want), "%s, want %s", at(av, addr), want)

static void test_insert_remove(enum fi_av_type type)
{
	struct sockaddr_in in[3] = { ipv4("10.0.0.1", 1), ipv4("10.0.0.2", 2),
				     ipv4("10.0.0.3", 3) };
	struct fid_av *av = open_av(type, 0);
	fi_addr_t addr[3], other;

	CHECK_INT(fi_av_insert(av, in, 3, addr, 0, NULL), 3);
	CHECK_INT(addr[0], 0);
	CHECK_INT(addr[2], 2);
	CHECK_AT(av, 1, "fi_sockaddr_in://10.0.0.2:2");
	CHECK_INT(fi_av_insert(av, in, 0, NULL, 0, NULL), 0);
	/* A duplicate gets the same fi_addr_t, and must be removed twice. */
	CHECK_INT(fi_av_insert(av, &in[1], 1, &other, 0, NULL), 1);
	CHECK_INT(other, addr[1]);
	CHECK_INT(fi_av_remove(av, &addr[1], 1, 0), 0);
	CHECK_AT(av, 1, "fi_sockaddr_in://10.0.0.2:2");
	CHECK_INT(fi_av_remove(av, &addr[1], 1, 0), 0);
	CHECK_AT(av, 1, "-");
	CHECK_INT(fi_av_remove(av, &addr[1], 1, 0), -FI_EINVAL);
	/* The next insertion uses the lowest free index. */
	CHECK_INT(fi_av_insert(av, &in[1], 1, NULL, 0, NULL), 1);
	CHECK_AT(av, 1, "fi_sockaddr_in://10.0.0.2:2");
	CHECK_INT(fi_av_remove(av, addr, 1, 1), -FI_EINVAL);
	CHECK_INT(fi_av_remove(av, addr, 3, 0), 0);
	other = FI_ADDR_UNSPEC;
	CHECK_INT(fi_av_remove(av, &other, 1, 0), -FI_EINVAL);
	CHECK_INT(fi_close(&av->fid), 0);
}

static void test_families(void)
{
	struct sockaddr_in6 in6[2] = { ipv6("fd00::1", 1),
				       ipv6("::ffff:10.0.0.1", 1) };
	struct sockaddr_in in = ipv4("10.0.0.1", 1);
	struct fid_av *av = open_av(FI_AV_UNSPEC, 0);
	fi_addr_t addr[2], same;

	CHECK_INT(fi_av_insert(av, in6, 2, addr, 0, NULL), 2);
	CHECK_AT(av, addr[0], "fi_sockaddr_in6://[fd00::1]:1");
	/* A mapped IPv4 address is equal to that IPv4 address. */
	CHECK_INT(fi_av_insert(av, &in, 1, &same, 0, NULL), 1);
	CHECK_INT(same, addr[1]);
	CHECK_INT(fi_close(&av->fid), 0);
}

static void test_bad_addresses(void)
{
	struct sockaddr_in in[5] = { ipv4("10.0.0.1", 1),
				     { 0 },
				     ipv4("0.0.0.0", 5),
				     ipv4("10.0.0.2", 0),
				     ipv4("10.0.0.3", 3) };
	int want[5] = { 0, FI_EINVAL, FI_EINVAL, FI_EINVAL, 0 };
	int err[5] = { -1, -1, -1, -1, -1 };
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	fi_addr_t addr[5] = { 7, 7, 7, 7, 7 };

	CHECK_INT(fi_av_insert(av, in, 5, addr, FI_SYNC_ERR, err), 2);
	for (int i = 0; i < 5; i++) {
		CHECK_INT(err[i], want[i]);
		CHECK((addr[i] == FI_ADDR_NOTAVAIL) == !!want[i], "%d", i);
	}
	/* The domain decides the family, not the first address. */
	CHECK_INT(fi_av_insert(av, &in[1], 4, addr, 0, NULL), 1);
	CHECK_INT(fi_av_insert(av, in, 1, addr, FI_SYNC_ERR, NULL), -FI_EINVAL);
	CHECK_INT(fi_av_insert(av, in, 1, addr, FI_PEEK, NULL), -FI_EBADFLAGS);
	CHECK_INT(fi_av_insert(av, NULL, 1, addr, 0, NULL), -FI_EINVAL);
	CHECK_INT(fi_close(&av->fid), 0);
}

static void test_names(void)
{
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	fi_addr_t addr[16];
	int err[4];

	CHECK_INT(fi_av_insertsvc(av, "localhost", "7471", addr, 0, NULL), 1);
	CHECK_AT(av, addr[0], "fi_sockaddr_in://127.0.0.1:7471");
	/* The example of fi_av(3). */
	CHECK_INT(fi_av_insertsym(av, "10.1.1.1", 2, "5000", 2, addr, 0, NULL),
		  4);
	CHECK_AT(av, addr[0], "fi_sockaddr_in://10.1.1.1:5000");
	CHECK_AT(av, addr[1], "fi_sockaddr_in://10.1.1.1:5001");
	CHECK_AT(av, addr[2], "fi_sockaddr_in://10.1.1.2:5000");
	CHECK_AT(av, addr[3], "fi_sockaddr_in://10.1.1.2:5001");
	CHECK_INT(fi_av_insertsym(av, "10.1.0.255", 2, "1", 1, addr, 0, NULL),
		  2);
	CHECK_AT(av, addr[1], "fi_sockaddr_in://10.1.1.0:1");
	CHECK_INT(fi_av_insertsym(av, "fd00::ffff", 2, "1", 1, addr, 0, NULL),
		  2);
	CHECK_AT(av, addr[1], "fi_sockaddr_in6://[fd00::1:0]:1");
	/* Ports end at 65535. */
	CHECK_INT(fi_av_insertsym(av, "10.9.9.9", 1, "65534", 4, addr,
				  FI_SYNC_ERR, err),
		  2);
	CHECK_INT(err[1], 0);
	CHECK_INT(err[2], FI_EINVAL);
	CHECK_INT(addr[3], FI_ADDR_NOTAVAIL);
	CHECK_INT(fi_av_insertsym(av, "255.255.255.255", 2, "1", 1, addr,
				  FI_SYNC_ERR, err),
		  1);
	CHECK_INT(err[1], FI_EINVAL);
	CHECK_INT(fi_av_insertsvc(av, "10.0.0.1", NULL, addr, 0, NULL),
		  -FI_EINVAL);
	CHECK_INT(fi_av_insertsym(av, "host", 2, "1", 1, addr, 0, NULL),
		  -FI_EINVAL);
	CHECK_INT(fi_close(&av->fid), 0);
}

static void test_lookup_lengths(void)
{
	struct sockaddr_in in = ipv4("10.0.0.1", 1), out;
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	char text[64] = "untouched";
	size_t len = 4;

	CHECK_INT(fi_av_insert(av, &in, 1, NULL, 0, NULL), 1);
	memset(&out, 0xee, sizeof(out));
	CHECK_INT(fi_av_lookup(av, 0, &out, &len), 0);
	CHECK_INT(len, sizeof(in));
	CHECK(!memcmp(&out, &in, 4), "the part that fits");
	CHECK_INT(((unsigned char *)&out)[4], 0xee);
	CHECK_INT(fi_av_lookup(av, 1, &out, &len), -FI_EINVAL);
	CHECK_INT(fi_av_lookup(av, FI_ADDR_UNSPEC, &out, &len), -FI_EINVAL);
	len = 9;
	CHECK(fi_av_straddr(av, &in, text, &len) == text, "the user's buffer");
	CHECK(!strcmp(text, "fi_socka"), "%s", text);
	CHECK_INT(len, strlen("fi_sockaddr_in://10.0.0.1:1") + 1);
	CHECK_INT(fi_close(&av->fid), 0);
}

static void test_async(void)
{
	struct sockaddr_in in[2] = { ipv4("10.0.0.1", 1), { 0 } };
	struct fid_av *av = open_av(FI_AV_MAP, FI_EVENT);
	struct fid_av *sync = open_av(FI_AV_MAP, 0);
	struct fi_eq_err_entry err = { 0 };
	struct fid_eq *eq = open_eq();
	struct fi_eq_entry entry;
	fi_addr_t addr[2];
	uint32_t event;
	int context;

	CHECK_INT(fi_av_insert(av, in, 1, addr, 0, &context), -FI_ENOEQ);
	CHECK_INT(fi_av_bind(sync, &eq->fid, 0), -FI_EINVAL);
	CHECK_INT(fi_av_bind(av, &domain->fid, 0), -FI_EINVAL);
	CHECK_INT(fi_av_bind(av, &eq->fid, 1), -FI_EINVAL);
	CHECK_INT(fi_av_bind(av, &eq->fid, 0), 0);
	CHECK_INT(fi_close(&eq->fid), -FI_EBUSY);
	CHECK_INT(fi_av_insert(av, in, 2, addr, FI_SYNC_ERR, &context),
		  -FI_EBADFLAGS);
	CHECK_INT(fi_av_insert(av, in, 2, addr, 0, &context), 0);
	/* Errors are reported before the event that ends the insertion. */
	CHECK_INT(fi_eq_sread(eq, &event, &entry, sizeof(entry), 1000, 0),
		  -FI_EAVAIL);
	CHECK_INT(fi_eq_readerr(eq, &err, 0), sizeof(err));
	CHECK(err.fid == &av->fid && err.context == &context, "error entry");
	CHECK_INT(err.data, 1);
	CHECK_INT(err.err, FI_EINVAL);
	CHECK_INT(fi_eq_sread(eq, &event, &entry, sizeof(entry), 1000, 0),
		  sizeof(entry));
	CHECK_INT(event, FI_AV_COMPLETE);
	CHECK(entry.fid == &av->fid && entry.context == &context, "entry");
	CHECK_INT(entry.data, 1);
	CHECK_INT(addr[1], FI_ADDR_NOTAVAIL);
	CHECK_INT(fi_av_insert(av, in, 0, addr, 0, &context), 0);
	CHECK_INT(fi_eq_read(eq, &event, &entry, sizeof(entry), 0),
		  sizeof(entry));
	CHECK_INT(entry.data, 0);
	CHECK_INT(fi_close(&av->fid), 0);
	CHECK_INT(fi_close(&sync->fid), 0);
	CHECK_INT(fi_close(&eq->fid), 0);
}

/* MPICH tries a shared AV, which must fail without harm. */
static void test_open_refuses(void)
{
	struct fi_av_attr named = { .name = "shared", .flags = FI_READ };
	struct fi_av_attr readonly = { .flags = FI_READ };
	struct fi_av_attr type = { .type = (enum fi_av_type)9 };
	struct fi_av_attr flags = { .flags = FI_PEEK };
	struct fid_av *av;

	CHECK_INT(fi_av_open(domain, &named, &av, NULL), -FI_ENOENT);
	CHECK_INT(fi_av_open(domain, &readonly, &av, NULL), -FI_EINVAL);
	CHECK_INT(fi_av_open(domain, &type, &av, NULL), -FI_EINVAL);
	CHECK_INT(fi_av_open(domain, &flags, &av, NULL), -FI_EINVAL);
}

static void test_many(void)
{
	enum { COUNT = 20000 };
	struct sockaddr_in *in = calloc(COUNT, sizeof(*in));
	fi_addr_t *addr = calloc(COUNT, sizeof(*addr));
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	char text[64];

	for (int i = 0; i < COUNT; i++)
		in[i] = ipv4("10.0.0.1", (uint16_t)(1 + i));
	CHECK_INT(fi_av_insert(av, in, COUNT, addr, 0, NULL), COUNT);
	for (int i = 0; i < COUNT; i += 997) {
		snprintf(text, sizeof(text), "fi_sockaddr_in://10.0.0.1:%d",
			 1 + i);
		CHECK_AT(av, addr[i], text);
	}
	CHECK_INT(fi_av_remove(av, addr, COUNT, 0), 0);
	CHECK_INT(fi_close(&av->fid), 0);
	free(in);
	free(addr);
}

static void *churn(void *arg)
{
	struct fid_av *av = arg;
	struct sockaddr_in in = ipv4("10.0.0.1", 1);
	fi_addr_t addr;

	for (int i = 0; i < 2000; i++) {
		in.sin_port = htons((uint16_t)(1 + i % 50));
		if (fi_av_insert(av, &in, 1, &addr, 0, NULL) != 1 ||
		    fi_av_remove(av, &addr, 1, 0))
			return av;
	}
	return NULL;
}

static void test_threads(void)
{
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	pthread_t threads[4];
	void *failed;

	for (int i = 0; i < 4; i++)
		MUST(pthread_create(&threads[i], NULL, churn, av));
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &failed);
		CHECK(!failed, "thread %d", i);
	}
	CHECK_AT(av, 0, "-");
	CHECK_INT(fi_close(&av->fid), 0);
}

int main(void)
{
	struct fi_info *hints;
	struct fid_av *av;

	check_only_weft();
	hints = check_hints();
	hints->addr_format = FI_SOCKADDR_IN;
	MUST(fi_getinfo(API, NULL, NULL, 0, hints, &info));
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_domain(fabric, info, &domain, NULL));
	test_insert_remove(FI_AV_TABLE);
	test_insert_remove(FI_AV_MAP);
	test_families();
	test_bad_addresses();
	test_names();
	test_lookup_lengths();
	test_async();
	test_open_refuses();
	test_many();
	test_threads();
	av = open_av(FI_AV_UNSPEC, 0);
	CHECK_INT(fi_close(&domain->fid), -FI_EBUSY);
	CHECK_INT(fi_close(&av->fid), 0);
	CHECK_INT(fi_close(&domain->fid), 0);
	CHECK_INT(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return check_result();
}
