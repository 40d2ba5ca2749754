/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint for tests with everything it needs, and helpers that drive it.
 */
#include "common/fabric.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <time.h>

#include "base/rest.h"
#include "common/net.h"
#include "common/space.h"

#define API FI_VERSION(1, 17)

/* Endpoints that this thread drives while it waits. */
static _Thread_local struct weft_test *open_list;

static void too_long(int sig)
{
	static const char text[] = "the test takes too long: it hangs\n";

	(void)sig;
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(1);
}

static const char *provider(void)
{
	const char *name = getenv("WEFT_TEST_PROVIDER");

	return name ? name : "weft";
}

bool weft_test_by_packets(void)
{
	const char *shm = getenv("FI_WEFT_SHM");

	return net_is_on() || (shm && !strcmp(shm, "0"));
}

/* A test that takes 2 s alone took a minute together with a hundred others on
 * two cores, and longer beside processes of real-time priority. Shorter than
 * meson's limit, because meson prints no reason. */
#define ALARM_LEAST 250

void weft_test_begin(unsigned int seconds)
{
	struct sigaction action = { .sa_handler = too_long };

	if (!getenv("FI_PROVIDER_PATH")) {
		printf("FI_PROVIDER_PATH is not set\n");
		exit(77);
	}
	setenv("FI_PROVIDER", provider(), 1);
	CHECK_SYS(sigaction(SIGALRM, &action, NULL));
	alarm(seconds > ALARM_LEAST ? seconds : ALARM_LEAST);
	if (getenv("WEFT_TEST_NET"))
		net_begin((unsigned int)atoi(getenv("WEFT_TEST_NET")));
	if (getenv("WEFT_TEST_SPACES"))
		space_begin();
}

/* -- opening --------------------------------------------------------------- */

/* Our own address unless the test names one. */
static const char *node_of(const struct weft_test_opts *o)
{
	if (o->node)
		return o->node;
	return net_is_on() ? net_addr(net_here()) : "127.0.0.1";
}

/* An EFA device gives addresses, and has none that could be asked for. */
static bool is_on_efa(void)
{
	const char *nic = getenv("FI_WEFT_NIC");

	return nic && !strcmp(nic, "efa");
}

static struct fi_info *make_hints(const struct weft_test_opts *o)
{
	struct fi_info *hints = fi_allocinfo();

	CHECK(hints);
	hints->caps = o->caps ? o->caps : FI_MSG | FI_TAGGED;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	if (is_on_efa())
		hints->addr_format = FI_ADDR_EFA;
	else if (strcmp(provider(), "shm"))
		hints->addr_format = strchr(node_of(o), ':') ? FI_SOCKADDR_IN6 :
							       FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup(provider());
	hints->domain_attr->mr_mode = o->mr_mode;
	hints->domain_attr->threading =
		o->threading ? o->threading : FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = o->data_progress;
	if (getenv("WEFT_TEST_AUTO"))
		hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	hints->domain_attr->av_type = o->av_type ? o->av_type : FI_AV_TABLE;
	hints->tx_attr->op_flags = o->tx_flags;
	hints->rx_attr->op_flags = o->rx_flags;
	hints->tx_attr->size = o->tx_size;
	hints->rx_attr->size = o->rx_size;
	hints->tx_attr->msg_order = o->msg_order;
	hints->rx_attr->msg_order = o->msg_order;
	if (o->shared_rx)
		hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	return hints;
}

static int open_cqs(struct weft_test *t, const struct weft_test_opts *o)
{
	struct fi_cq_attr attr = {
		.format = o->cq_format ? o->cq_format : FI_CQ_FORMAT_TAGGED,
		.size = o->cq_size,
		.wait_obj = o->wait_obj ? o->wait_obj : FI_WAIT_NONE,
	};
	int err = 0;

	if (o->same_cqs) {
		t->txcq = o->sibling->txcq;
		t->rxcq = o->sibling->rxcq;
		t->cqs_are_shared = true;
		return 0;
	}
	if (!o->no_txcq)
		err = fi_cq_open(t->domain, &attr, &t->txcq, NULL);
	if (err || o->no_rxcq)
		return err;
	if (o->one_cq)
		t->rxcq = t->txcq;
	else
		err = fi_cq_open(t->domain, &attr, &t->rxcq, NULL);
	return err;
}

static int open_ep(struct weft_test *t, const struct weft_test_opts *o)
{
	int err;

	if (o->bare_caps)
		t->info->caps = o->caps;
	err = fi_endpoint(t->domain, t->info, &t->ep, NULL);
	if (err)
		return err;
	err = fi_ep_bind(t->ep, &t->av->fid, 0);
	if (!err && t->txcq)
		err = fi_ep_bind(t->ep, &t->txcq->fid,
				 FI_TRANSMIT | o->tx_bind);
	if (!err && t->rxcq)
		err = fi_ep_bind(t->ep, &t->rxcq->fid, FI_RECV | o->rx_bind);
	if (err)
		return err;
	if (o->prepare)
		o->prepare(t, o->prepare_arg);
	if (o->not_enabled)
		return 0;
	err = fi_enable(t->ep);
	if (!err)
		weft_test_name(t);
	return err;
}

static int open_domain(struct weft_test *t, const struct weft_test_opts *o)
{
	struct fi_av_attr av_attr = {
		.type = o->av_type ? o->av_type : FI_AV_TABLE,
		.name = o->av_name,
		.flags = o->av_flags,
	};
	int err;

	if (o->sibling) {
		t->fabric = o->sibling->fabric;
		t->domain = o->sibling->domain;
		t->av = o->sibling->av;
		t->domain_is_shared = true;
		return 0;
	}
	err = fi_fabric(t->info->fabric_attr, &t->fabric, NULL);
	if (!err)
		err = fi_domain(t->fabric, t->info, &t->domain, NULL);
	if (!err)
		err = fi_av_open(t->domain, &av_attr, &t->av, NULL);
	t->map = av_attr.map_addr;
	return err;
}

static int open_all(struct weft_test *t, const struct weft_test_opts *o)
{
	bool any = o->any_node || (is_on_efa() && !o->node && !o->service);
	struct fi_info *hints = make_hints(o);
	int err;

	err = fi_getinfo(API, any ? NULL : node_of(o), o->service,
			 any ? 0 : FI_SOURCE, hints, &t->info);
	fi_freeinfo(hints);
	if (!err)
		err = open_domain(t, o);
	if (!err)
		err = open_cqs(t, o);
	if (!err)
		err = open_ep(t, o);
	return err;
}

int weft_test_try_open(struct weft_test *t, const struct weft_test_opts *opts)
{
	static const struct weft_test_opts usual;
	int err;

	*t = (struct weft_test){ 0 };
	err = open_all(t, opts ? opts : &usual);
	t->next = open_list;
	open_list = t;
	if (err)
		weft_test_close(t);
	return err;
}

void weft_test_load(void)
{
	struct weft_test t;

	weft_test_open(&t, NULL);
	weft_test_close(&t);
}

void weft_test_open(struct weft_test *t, const struct weft_test_opts *opts)
{
	CHECK_OK(weft_test_try_open(t, opts));
}

static void close_cqs(struct weft_test *t)
{
	if (t->rxcq && t->rxcq != t->txcq)
		CHECK_OK(fi_close(&t->rxcq->fid));
	if (t->txcq)
		CHECK_OK(fi_close(&t->txcq->fid));
}

static void close_domain(struct weft_test *t)
{
	if (t->av)
		CHECK_OK(fi_close(&t->av->fid));
	if (t->domain)
		CHECK_OK(fi_close(&t->domain->fid));
	if (t->fabric)
		CHECK_OK(fi_close(&t->fabric->fid));
}

void weft_test_close(struct weft_test *t)
{
	struct weft_test **at = &open_list;

	while (*at && *at != t)
		at = &(*at)->next;
	if (*at)
		*at = t->next;
	if (t->ep)
		CHECK_OK(fi_close(&t->ep->fid));
	for (int i = 0; i < WEFT_TEST_CNTRS && t->cntrs[i]; i++)
		CHECK_OK(fi_close(&t->cntrs[i]->fid));
	if (!t->cqs_are_shared)
		close_cqs(t);
	if (!t->domain_is_shared)
		close_domain(t);
	if (t->info)
		fi_freeinfo(t->info);
	*t = (struct weft_test){ 0 };
}

struct fid_cntr *weft_test_cntr(struct weft_test *t, uint64_t flags,
				enum fi_wait_obj wait_obj)
{
	struct fi_cntr_attr attr = {
		.events = FI_CNTR_EVENTS_COMP,
		.wait_obj = wait_obj,
	};
	struct fid_cntr *cntr;
	int i = 0;

	while (t->cntrs[i])
		i++;
	CHECK(i < WEFT_TEST_CNTRS);
	CHECK_OK(fi_cntr_open(t->domain, &attr, &cntr, NULL));
	t->cntrs[i] = cntr;
	if (flags)
		CHECK_OK(fi_ep_bind(t->ep, &cntr->fid, flags));
	return cntr;
}

void weft_test_forget_all(void)
{
	open_list = NULL;
}

/* -- addresses ------------------------------------------------------------- */

void weft_test_name(struct weft_test *t)
{
	t->name_len = sizeof(t->name);
	CHECK_OK(fi_getname(&t->ep->fid, t->name, &t->name_len));
}

fi_addr_t weft_test_insert(struct weft_test *t, const void *name)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	CHECK_EQ(fi_av_insert(t->av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

fi_addr_t weft_test_know(struct weft_test *t, const struct weft_test *other)
{
	return weft_test_insert(t, other->name);
}

void weft_test_name_of_port(uint8_t *name, uint16_t port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	memset(name, 0, WEFT_TEST_NAME_MAX);
	memcpy(name, &sin, sizeof(sin));
}

uint16_t weft_test_port(const struct weft_test *t)
{
	struct sockaddr_in sin;

	memcpy(&sin, t->name, sizeof(sin));
	return ntohs(sin.sin_port);
}

/* -- driving --------------------------------------------------------------- */

uint64_t weft_test_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Called when there was no completion: on a busy machine the peer may be
 * waiting for this processor. */
static void breathe(void)
{
	static _Thread_local struct wf_rest rest;
	static _Thread_local unsigned int idle;

	if (++idle % 64 == 0)
		wf_base_rest(&rest);
}

void weft_test_progress(void)
{
	const struct weft_test *before = NULL;

	breathe();
	for (struct weft_test *t = open_list; t; before = t, t = t->next) {
		/* Endpoints that share CQs are neighbours in the list. One read
		 * drives all of them, so the others need no read of their
		 * own. */
		bool driven = before && before->txcq == t->txcq &&
			      before->rxcq == t->rxcq;

		if (t->txcq && !driven)
			fi_cq_read(t->txcq, NULL, 0);
		if (t->rxcq && t->rxcq != t->txcq && !driven)
			fi_cq_read(t->rxcq, NULL, 0);
		for (int i = 0; i < WEFT_TEST_CNTRS && t->cntrs[i]; i++)
			fi_cntr_read(t->cntrs[i]);
	}
}

void weft_test_progress_for(unsigned int ms)
{
	uint64_t end = weft_test_ms() + ms;

	/* Another process may have the processor for all of that time. */
	for (int turns = 0; turns < 200 || weft_test_ms() < end; turns++)
		weft_test_progress();
}

bool weft_test_poll(struct fid_cq *cq, struct weft_test_comp *comp)
{
	ssize_t ret;

	*comp = (struct weft_test_comp){ .ret = 1 };
	ret = fi_cq_readfrom(cq, &comp->entry, 1, &comp->src);
	if (ret == 1)
		return true;
	if (ret == -FI_EAGAIN) {
		breathe();
		return false;
	}
	CHECK_EQ(ret, -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(cq, &comp->err, 0), 1);
	/* Bug: programs printed "Success" as the reason of a failure. */
	CHECK(!strcmp(fi_cq_strerror(cq, comp->err.prov_errno, NULL, NULL, 0),
		      fi_strerror(comp->err.err)));
	comp->ret = -comp->err.err;
	comp->entry.op_context = comp->err.op_context;
	comp->entry.flags = comp->err.flags;
	comp->entry.len = comp->err.len;
	comp->entry.buf = comp->err.buf;
	comp->entry.data = comp->err.data;
	comp->entry.tag = comp->err.tag;
	return true;
}

bool weft_test_wait_for(struct fid_cq *cq, struct weft_test_comp *comp,
			unsigned int ms)
{
	uint64_t end = weft_test_ms() + ms;

	while (!weft_test_poll(cq, comp)) {
		if (weft_test_ms() >= end)
			return false;
		weft_test_progress();
	}
	return true;
}

void weft_test_wait(struct fid_cq *cq, struct weft_test_comp *comp)
{
	if (!weft_test_wait_for(cq, comp, WEFT_TEST_PATIENCE_MS))
		FAIL("no completion within %d ms", WEFT_TEST_PATIENCE_MS);
}

void weft_test_wait_ok(struct fid_cq *cq, void *context)
{
	struct weft_test_comp comp;

	weft_test_wait(cq, &comp);
	if (comp.ret < 0)
		FAIL("completion with error %d (%s)", -comp.ret,
		     fi_strerror(-comp.ret));
	CHECK(!context || comp.entry.op_context == context);
}

void weft_test_wait_err(struct fid_cq *cq, void *context, int err)
{
	struct weft_test_comp comp;

	weft_test_wait(cq, &comp);
	CHECK_EQ(comp.ret, -err);
	CHECK(!context || comp.entry.op_context == context);
}

void weft_test_count(struct fid_cntr *cntr, uint64_t value)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;

	while (fi_cntr_read(cntr) < value) {
		if (weft_test_ms() >= end)
			FAIL("counter at %llu, not %llu, after %d ms",
			     (unsigned long long)fi_cntr_read(cntr),
			     (unsigned long long)value, WEFT_TEST_PATIENCE_MS);
		weft_test_progress();
	}
	CHECK_EQ(fi_cntr_read(cntr), value);
	CHECK_EQ(fi_cntr_readerr(cntr), 0);
}

/* Repeats @call while it returns -FI_EAGAIN. */
#define INSIST(call)                                                           \
	do {                                                                   \
		uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;         \
		ssize_t ret;                                                   \
                                                                               \
		while ((ret = (call)) == -FI_EAGAIN) {                         \
			weft_test_progress();                                  \
			if (weft_test_ms() >= end)                             \
				FAIL("%s: -FI_EAGAIN for %d ms", #call,        \
				     WEFT_TEST_PATIENCE_MS);                   \
		}                                                              \
		return ret;                                                    \
	} while (0)

ssize_t weft_test_send(struct weft_test *t, const void *buf, size_t len,
		       fi_addr_t to, void *context)
{
	INSIST(fi_send(t->ep, buf, len, NULL, to, context));
}

ssize_t weft_test_tsend(struct weft_test *t, const void *buf, size_t len,
			fi_addr_t to, uint64_t tag, void *context)
{
	INSIST(fi_tsend(t->ep, buf, len, NULL, to, tag, context));
}

ssize_t weft_test_tdeliver(struct weft_test *t, const void *buf, size_t len,
			   fi_addr_t to, uint64_t tag, void *context)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = to,
		.tag = tag,
		.context = context,
	};

	INSIST(fi_tsendmsg(t->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
}

ssize_t weft_test_inject(struct weft_test *t, const void *buf, size_t len,
			 fi_addr_t to)
{
	INSIST(fi_inject(t->ep, buf, len, to));
}

ssize_t weft_test_recv(struct weft_test *t, void *buf, size_t len,
		       void *context)
{
	INSIST(fi_recv(t->ep, buf, len, NULL, FI_ADDR_UNSPEC, context));
}

ssize_t weft_test_trecv(struct weft_test *t, void *buf, size_t len,
			uint64_t tag, uint64_t ignore, void *context)
{
	INSIST(fi_trecv(t->ep, buf, len, NULL, FI_ADDR_UNSPEC, tag, ignore,
			context));
}

void weft_test_exchange(struct weft_test *from, fi_addr_t addr,
			struct weft_test *to, size_t len, uint64_t seed)
{
	uint8_t *out = malloc(len + 1), *in = malloc(len + 1);
	struct fi_context tx, rx;

	CHECK(out && in);
	weft_test_fill(out, len, seed);
	CHECK_OK(weft_test_trecv(to, in, len, seed, 0, &rx));
	CHECK_OK(weft_test_tsend(from, out, len, addr, seed, &tx));
	weft_test_wait_ok(from->txcq, &tx);
	weft_test_wait_ok(to->rxcq, &rx);
	CHECK(weft_test_holds(in, len, seed));
	free(out);
	free(in);
}

/* -- data ------------------------------------------------------------------ */

uint32_t weft_test_random(uint64_t *state)
{
	/* splitmix64, its upper half */
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ z >> 31) >> 32);
}

/* One byte of the pattern: cheap, and different at different positions. */
static uint8_t byte_at(uint64_t seed, size_t at)
{
	return (uint8_t)((seed * 0x9e3779b1u + at) * 0x85ebca6bu >> 24);
}

void weft_test_fill(void *buf, size_t len, uint64_t seed)
{
	uint8_t *bytes = buf;

	for (size_t i = 0; i < len; i++)
		bytes[i] = byte_at(seed, i);
}

bool weft_test_holds(const void *buf, size_t len, uint64_t seed)
{
	const uint8_t *bytes = buf;

	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != byte_at(seed, i)) {
			fprintf(stderr, "byte %zu of %zu (seed %llu) differs\n",
				i, len, (unsigned long long)seed);
			return false;
		}
	}
	return true;
}
