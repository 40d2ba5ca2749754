/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening and closing what an application uses.
 */
#include <string.h>

#include <rdma/providers/fi_prov.h>

#include "app.h"
#include "kernel.h"
#include "net.h"
#include "real.h"
#include "wrap.h"

#define GUARD_BYTE 0xc3

struct fi_provider *fi_prov_ini(void);

static uint8_t *carve(uint8_t **at, struct app_buf *buf, size_t len,
		      enum app_what what)
{
	memset(*at, GUARD_BYTE, APP_GUARD);
	buf->addr = *at + APP_GUARD;
	buf->len = len;
	buf->what = what;
	buf->send = what == APP_SEND;
	memset(buf->addr, 0xee, len);
	*at = buf->addr + (len + 7) / 8 * 8;
	memset(buf->addr + len, GUARD_BYTE, (size_t)(*at - buf->addr) - len);
	memset(*at, GUARD_BYTE, APP_GUARD);
	return buf->addr;
}

void app_prepare(struct sim_app *app)
{
	size_t each = sim.s.largest + 2 * APP_GUARD + 64;
	size_t multi = 3 * (size_t)sim.s.largest + 2 * APP_GUARD + 64;
	size_t window = sim.s.procs * (APP_SLOT + 8);
	uint8_t *at;

	at = sim_memory_app_alloc(app->proc, (APP_OPS + APP_RECEIVES) * each +
						     APP_MULTIS * multi +
						     window + 4 * APP_GUARD);
	for (int i = 0; i < APP_OPS; i++)
		carve(&at, &app->ops[i].buf, sim.s.largest, APP_SEND);
	for (int i = 0; i < APP_RECEIVES; i++)
		carve(&at, &app->receives[i].buf, sim.s.largest, APP_RECV);
	for (int i = 0; i < APP_MULTIS; i++)
		carve(&at, &app->multis[i].buf, 3 * (size_t)sim.s.largest,
		      APP_MULTI);
	app->window =
		(uint8_t *)(((uintptr_t)at + APP_GUARD + 63) & ~(uintptr_t)63);
	app->window_bytes = window;
	memset(app->window, 0, window);
}

static void check_guard(const struct app_buf *buf)
{
	for (int i = 1; i <= APP_GUARD; i++) {
		if (buf->addr[-i] != GUARD_BYTE ||
		    buf->addr[buf->len + (size_t)i - 1] != GUARD_BYTE)
			sim_fail("a byte beside a buffer of %zu bytes changed",
				 buf->len);
	}
}

void app_check_guards(const struct sim_app *app)
{
	for (int i = 0; i < APP_OPS; i++)
		check_guard(&app->ops[i].buf);
	for (int i = 0; i < APP_RECEIVES; i++)
		check_guard(&app->receives[i].buf);
	for (int i = 0; i < APP_MULTIS; i++)
		check_guard(&app->multis[i].buf);
}

static struct fi_info *make_hints(void)
{
	struct fi_info *hints = __wrap_fi_dupinfo(NULL);

	if (!hints)
		return NULL;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->threading =
		sim.s.threads ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	return hints;
}

static int get_info(struct sim_app *app)
{
	struct fi_provider *provider = fi_prov_ini();
	struct fi_info *hints = make_hints();
	char node[32], port[16];
	int err;

	app->provider = provider;
	if (!hints)
		return -FI_ENOMEM;
	snprintf(node, sizeof(node), "10.0.0.%u", app->proc->node->number + 1);
	snprintf(port, sizeof(port), "%u", APP_PORT + app->proc->number);
	err = provider->getinfo(FI_VERSION(1, 17), node, port, FI_SOURCE, hints,
				&app->info);
	__wrap_fi_freeinfo(hints);
	if (!err)
		err = provider->fabric(app->info->fabric_attr, &app->fabric,
				       NULL);
	return err;
}

static int insert_peers(struct sim_app *app)
{
	for (unsigned int i = 0; i < sim.s.procs; i++) {
		const struct sockaddr_in peer = {
			.sin_family = AF_INET,
			.sin_port = htons((uint16_t)(APP_PORT + i)),
			.sin_addr = sim_net_addr(sim.proc[i].node),
		};

		if (fi_av_insert(app->av, &peer, 1, &app->addr[i], 0, NULL) !=
		    1)
			return -FI_ENOMEM;
	}
	return 0;
}

static int open_window(struct sim_app *app)
{
	int err = fi_mr_reg(app->domain, app->window, app->window_bytes,
			    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, APP_KEY, 0,
			    &app->mr, NULL);

	app->window_open = !err;
	return err;
}

/* A multi-receive with less room than this is over: no message is cut. */
static int set_least(struct sim_app *app)
{
	size_t least = sim.s.largest;

	return fi_setopt(&app->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			 &least, sizeof(least));
}

int app_open(struct sim_app *app)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = {
		.format = FI_CQ_FORMAT_TAGGED,
		.size = sim.s.cq_size,
		.wait_obj = sim.s.sleeps ? FI_WAIT_FD : FI_WAIT_NONE,
	};
	int err;

	err = get_info(app);
	if (!err)
		err = fi_domain(app->fabric, app->info, &app->domain, NULL);
	if (!err)
		err = fi_av_open(app->domain, &av_attr, &app->av, NULL);
	if (!err)
		err = fi_cq_open(app->domain, &cq_attr, &app->cq, NULL);
	if (!err)
		err = open_window(app);
	if (!err)
		err = fi_endpoint(app->domain, app->info, &app->ep, NULL);
	if (!err)
		err = fi_ep_bind(app->ep, &app->av->fid, 0);
	if (!err)
		err = fi_ep_bind(app->ep, &app->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!err)
		err = set_least(app);
	if (!err)
		err = fi_enable(app->ep);
	if (!err)
		err = insert_peers(app);
	return err;
}

static void close_one(void *fid)
{
	struct fid *at;
	int err;

	memcpy(&at, fid, sizeof(at));
	if (!at)
		return;
	err = fi_close(at);
	if (err)
		sim_fail("fi_close() fails with %d", err);
	at = NULL;
	memcpy(fid, &at, sizeof(at));
}

void app_close(struct sim_app *app)
{
	close_one(&app->ep);
	close_one(&app->mr);
	app->window_open = false;
	close_one(&app->cq);
	close_one(&app->av);
	close_one(&app->domain);
	close_one(&app->fabric);
	__wrap_fi_freeinfo(app->info);
	app->info = NULL;
	app->provider->cleanup();
	for (int i = 0; i < APP_OPS; i++)
		app->ops[i].buf.posted = false;
	for (int i = 0; i < APP_RECEIVES; i++)
		app->receives[i].buf.posted = false;
	for (int i = 0; i < APP_MULTIS; i++)
		app->multis[i].buf.posted = false;
}
