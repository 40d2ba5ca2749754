/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens and closes the objects that an application uses.
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

/* Clients that restart have another address each time. */
static uint16_t port_of(const struct sim_proc *proc)
{
	unsigned int life =
		sim.s.work == SIM_WORK_CHURN && proc->number ? proc->life : 0;

	return (uint16_t)(APP_PORT + proc->number + life * APP_STRIDE);
}

unsigned int app_of_port(uint16_t port)
{
	return (unsigned int)(ntohs(port) - APP_PORT) % APP_STRIDE;
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
	if (sim.s.progress)
		hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	if (sim.s.srx)
		hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	return hints;
}

static int get_info(struct sim_app *app, unsigned int more,
		    struct fi_info **info)
{
	struct fi_info *hints = make_hints();
	char node[32] = "0.0.0.0", port[16];
	int err;

	if (!hints)
		return -FI_ENOMEM;
	if (!sim.s.any)
		snprintf(node, sizeof(node), "10.0.0.%u",
			 app->proc->node->number + 1);
	snprintf(port, sizeof(port), "%u", port_of(app->proc) + more);
	err = app->provider->getinfo(FI_VERSION(1, 17), node, port, FI_SOURCE,
				     hints, info);
	__wrap_fi_freeinfo(hints);
	return err;
}

/* An endpoint that is bound to all addresses is known by any of them. */
static struct in_addr addr_of(const struct sim_app *app,
			      const struct sim_proc *peer)
{
	unsigned int which = (app->proc->number + peer->number) % 3;

	if (sim.s.any && which == 1)
		return sim_net_second(peer->node);
	if (sim.s.any && which == 2 && peer->node == app->proc->node)
		return (struct in_addr){ htonl(INADDR_LOOPBACK) };
	return sim_net_addr(peer->node);
}

static int insert(struct sim_app *app, const struct sim_proc *peer,
		  unsigned int more, fi_addr_t *addr)
{
	const struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(port_of(peer) + more)),
		.sin_addr = addr_of(app, peer),
	};

	return fi_av_insert(app->av, &sin, 1, addr, 0, NULL) == 1 ? 0 :
								    -FI_ENOMEM;
}

static int insert_peers(struct sim_app *app)
{
	int err = 0;

	for (unsigned int i = 0; i < sim.s.procs && !err; i++) {
		app->addr_life[i] = sim.proc[i].life;
		err = insert(app, &sim.proc[i], 0, &app->addr[i]);
		if (!err && sim.s.srx)
			err = insert(app, &sim.proc[i], APP_SECOND,
				     &app->second_addr[i]);
	}
	return err;
}

int app_renew_peer(struct sim_app *app, unsigned int peer)
{
	int err;

	if (sim.s.work != SIM_WORK_CHURN || !peer ||
	    app->addr_life[peer] == sim.proc[peer].life)
		return 0;
	err = fi_av_remove(app->av, &app->addr[peer], 1, 0);
	if (!err)
		err = insert(app, &sim.proc[peer], 0, &app->addr[peer]);
	if (err)
		return err;
	app->addr_life[peer] = sim.proc[peer].life;
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

/* A multi-receive with less room than this is finished, so that no message is
 * truncated. */
static int set_least(struct fid_ep *ep)
{
	size_t least = sim.s.largest;

	return fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			 &least, sizeof(least));
}

static int open_queue(struct sim_app *app, struct fid_cq **cq)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_TAGGED,
		.size = sim.s.cq_size,
		.wait_obj = sim.s.sleeps ? FI_WAIT_FD : FI_WAIT_NONE,
	};

	return fi_cq_open(app->domain, &attr, cq, NULL);
}

static int open_endpoint(struct sim_app *app, struct fi_info *info,
			 struct fid_cq *cq, struct fid_ep **ep)
{
	int err = fi_endpoint(app->domain, info, ep, NULL);

	if (!err)
		err = fi_ep_bind(*ep, &app->av->fid, 0);
	if (!err)
		err = fi_ep_bind(*ep, &cq->fid, FI_TRANSMIT | FI_RECV);
	if (!err && app->srx)
		err = fi_ep_bind(*ep, &app->srx->fid, 0);
	if (!err && !app->srx)
		err = set_least(*ep);
	if (!err)
		err = fi_enable(*ep);
	return err;
}

static int open_shared(struct sim_app *app)
{
	int err = fi_srx_context(app->domain, app->info->rx_attr, &app->srx,
				 NULL);

	if (!err)
		err = set_least(app->srx);
	if (!err)
		err = get_info(app, APP_SECOND, &app->second_info);
	if (!err)
		err = open_queue(app, &app->second_cq);
	if (!err)
		err = open_endpoint(app, app->second_info, app->second_cq,
				    &app->second);
	return err;
}

int app_open(struct sim_app *app)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	int err;

	app->provider = fi_prov_ini();
	err = get_info(app, 0, &app->info);
	if (!err)
		err = app->provider->fabric(app->info->fabric_attr,
					    &app->fabric, NULL);
	if (!err)
		err = fi_domain(app->fabric, app->info, &app->domain, NULL);
	if (!err)
		err = fi_av_open(app->domain, &av_attr, &app->av, NULL);
	if (!err)
		err = open_queue(app, &app->cq);
	if (!err)
		err = open_window(app);
	if (!err && sim.s.srx)
		err = open_shared(app);
	if (!err)
		err = open_endpoint(app, app->info, app->cq, &app->ep);
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

void app_close_second(struct sim_app *app)
{
	close_one(&app->second);
	close_one(&app->second_cq);
	__wrap_fi_freeinfo(app->second_info);
	app->second_info = NULL;
}

void app_close(struct sim_app *app)
{
	app_close_second(app);
	close_one(&app->ep);
	close_one(&app->srx);
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
