/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application that a simulated process runs: it opens an endpoint, sends
 * its messages, receives what arrives, and closes everything when the director
 * says that all processes have what they wait for. It uses libfabric's
 * interface only.
 */
#include "app.h"

#include <string.h>

#include "kernel.h"
#include "real.h"
#include "wrap.h"

#define OPEN_TRIES 3
#define READ_MOST 8
/* Longer than any timer of the provider that makes up for a lost wake-up. */
#define SLEEP_MS 5000
#define SLEPT_THROUGH (2 * SIM_S)
#define PATIENCE (3 * SIM_S)
#define CANCEL_READS 1000
#define PROMPT_LEN 1000 /* can be sent at once, by every protocol */
/* Sends up to this length may complete before the peer has them, by TCP. */
#define KEPT_LEN 16384
#define PROMPT_LARGEST 3000
#define PROMPT_MESSAGES 20
#define PROMPT_NS (25 * SIM_MS)
/* So many for one process, of 3 packets each, fit into the fewest receive
 * buffers of a device (256 of Ethernet's size, or 128 that take a whole one),
 * beside 42 other packets: two handshakes of each peer, two answers to each of
 * its own operations. */
#define PROMPT_WAITING 48

bool app_all_done;

/* Messages and operations that are meant for a process and have not ended, and
 * when there were last more than its receive buffers must hold. Not right where
 * processes die: messages for them stay counted. */
static int waiting[SIM_PROCS];
static uint64_t flooded_at[SIM_PROCS];

static uint32_t below(struct sim_app *app, uint32_t n)
{
	return (uint32_t)sim_rng_below(&app->rng, n);
}

static uint32_t draw(struct sim_app *app, uint32_t n)
{
	return (uint32_t)sim_rng_below(&app->draws, n);
}

/* -- receives --------------------------------------------------------------- */

static struct fid_ep *receiver(const struct sim_app *app)
{
	return app->srx ? app->srx : app->ep;
}

static bool post_receive(struct sim_app *app, struct app_recv *r)
{
	ssize_t err;

	memset(r->buf.addr, 0xee, r->buf.len < 256 ? r->buf.len : 256);
	r->post = app->posts + 1;
	r->buf.posted = true;
	err = fi_trecv(receiver(app), r->buf.addr, r->buf.len, NULL,
		       FI_ADDR_UNSPEC, 0, ~0ull, r);
	r->buf.posted = !err;
	app->posts += !err;
	return !err;
}

static bool post_multi(struct sim_app *app, struct app_recv *r)
{
	struct iovec iov = { r->buf.addr, r->buf.len };
	const struct fi_msg msg = { .msg_iov = &iov,
				    .iov_count = 1,
				    .addr = FI_ADDR_UNSPEC,
				    .context = r };
	ssize_t err;

	r->post = app->posts + 1;
	r->buf.posted = true;
	if (sim.s.multi_recv)
		err = fi_recvmsg(receiver(app), &msg,
				 FI_MULTI_RECV | FI_COMPLETION);
	else
		err = fi_recv(receiver(app), r->buf.addr, r->buf.len, NULL,
			      FI_ADDR_UNSPEC, r);
	r->buf.posted = !err;
	app->posts += !err;
	return !err;
}

/* In order: the first refused post ends the loop. */
static void post_receives(struct sim_app *app)
{
	for (int i = 0; i < APP_RECEIVES; i++) {
		if (!app->receives[i].buf.posted &&
		    !post_receive(app, &app->receives[i]))
			return;
	}
	for (int i = 0; i < APP_MULTIS; i++) {
		if (!app->multis[i].buf.posted &&
		    !post_multi(app, &app->multis[i]))
			return;
	}
}

/* -- sending ---------------------------------------------------------------- */

static struct app_op *free_op(struct sim_app *app)
{
	for (int i = 0; i < APP_OPS; i++) {
		if (!app->ops[i].buf.posted)
			return &app->ops[i];
	}
	return NULL;
}

/* Small sizes more often. */
static uint32_t draw_len(struct sim_app *app)
{
	uint32_t bits = 1;
	uint32_t len;

	while (1u << bits < sim.s.largest)
		bits++;
	len = draw(app, 1u << draw(app, bits + 1));
	return len > sim.s.largest ? sim.s.largest : len;
}

/* Bit 0 of @lane: from which endpoint, bit 1: to which. */
static ssize_t submit(struct sim_app *app, struct app_op *op, uint64_t id,
		      unsigned int peer, unsigned int lane, size_t len,
		      enum oracle_kind kind)
{
	fi_addr_t to = lane & 2 ? app->second_addr[peer] : app->addr[peer];
	struct fid_ep *ep = lane & 1 ? app->second : app->ep;
	void *buf = op->buf.addr;
	uint64_t flags = FI_COMPLETION;
	struct iovec iov = { buf, len };
	const struct fi_msg_tagged tagged = { .msg_iov = &iov,
					      .iov_count = 1,
					      .addr = to,
					      .tag = id,
					      .context = op };
	const struct fi_msg msg = { .msg_iov = &iov,
				    .iov_count = 1,
				    .addr = to,
				    .data = id,
				    .context = op };

	op->fate = sim.s.tcp && len <= KEPT_LEN ? ORACLE_KEPT : ORACLE_SENT;
	switch (sim.s.injects && draw(app, 8) ? 0 : draw(app, 5)) {
	case 0:
		if (len > sim.s.inject_size)
			break;
		op->fate = ORACLE_UNSENT; /* it has no completion */
		return kind == ORACLE_TAGGED ?
			       fi_tinject(ep, buf, len, to, id) :
			       fi_injectdata(ep, buf, len, id, to);
	case 1:
		flags |= FI_DELIVERY_COMPLETE;
		op->fate = ORACLE_DELIVERED;
		break;
	case 2:
		if (len <= sim.s.inject_size)
			flags |= FI_INJECT;
		break;
	case 3:
		flags |= FI_TRANSMIT_COMPLETE;
		op->fate = ORACLE_SENT;
		break;
	default:
		return kind == ORACLE_TAGGED ?
			       fi_tsend(ep, buf, len, NULL, to, id, op) :
			       fi_senddata(ep, buf, len, NULL, id, to, op);
	}
	if (kind == ORACLE_TAGGED)
		return fi_tsendmsg(ep, &tagged, flags);
	return fi_sendmsg(ep, &msg, flags | FI_REMOTE_CQ_DATA);
}

static void note_begun(unsigned int peer)
{
	if (++waiting[peer] > PROMPT_WAITING)
		flooded_at[peer] = sim.now;
}

/* Whether a device never has to release a peer: one that was released is a
 * stranger, and strangers are refused until the application makes room by a
 * call (rdm/crowd.h). With few places half of them are for peers. A process that
 * is bound to any address may be known by one address and send from another. */
static bool has_places(void)
{
	unsigned int addrs = sim.s.procs * (sim.s.any ? 2 : 1);

	return addrs < sim.s.knobs.max_peers / 2;
}

/* The only fault is that processes compute, and the two are connected: threads
 * must answer in time, whatever the peer does. Not with thread priorities,
 * where a thread may have to wait for others. */
static bool is_calm(const struct sim_app *app, unsigned int peer)
{
	return !(sim.s.faults & ~(1u << SIM_FAULT_COMPUTE)) && !sim.s.pct &&
	       !sim.s.narrow && !sim.s.blocked && !sim.s.churns && !sim.s.srx &&
	       !sim.s.fds_max && has_places() && app->met[peer] &&
	       sim.s.largest <= PROMPT_LARGEST &&
	       sim.s.messages <= PROMPT_MESSAGES && peer != app->proc->number;
}

/* By packets, threads acknowledge small messages. */
static bool is_prompt(const struct sim_app *app, const struct app_op *op,
		      unsigned int peer, uint32_t len)
{
	return is_calm(app, peer) && !sim.s.shm && len <= PROMPT_LEN &&
	       (op->fate == ORACLE_SENT || op->fate == ORACLE_KEPT);
}

static bool send_one(struct sim_app *app, struct app_op *op, unsigned int peer)
{
	uint32_t len = draw_len(app);
	enum oracle_kind kind = draw(app, 3) ? ORACLE_TAGGED : ORACLE_PLAIN;
	unsigned int lane = sim.s.srx ? draw(app, 4) : 0;
	uint64_t id;
	ssize_t err;

	if (app_renew_peer(app, peer))
		return false;
	if (kind == ORACLE_PLAIN && sim.s.multi_recv && len > sim.s.largest / 2)
		len = sim.s.largest / 2;
	id = oracle_sent(app->proc, &sim.proc[peer], kind, lane, len);
	oracle_fill(id, op->buf.addr, len);
	op->id = id;
	op->buf.what = APP_SEND;
	op->buf.posted = true;
	op->begun = sim.now;
	op->computed = app->computed;
	note_begun(peer);
	app->doing = "send";
	err = submit(app, op, id, peer, lane, len, kind);
	app->doing = NULL;
	if (err) {
		op->buf.posted = false;
		waiting[peer]--;
		oracle_unsent(id);
		if (err != -FI_EAGAIN && !oracle_may_fail(peer))
			sim_fail("a send is refused with %zd", err);
		return false;
	}
	sim_trace("message %s: %u bytes to p%u", oracle_name(id), len, peer);
	sim_busy();
	if (op->fate == ORACLE_UNSENT) {
		op->buf.posted = false;
		oracle_fate(id, ORACLE_INJECTED, 0);
	} else {
		op->prompt = is_prompt(app, op, peer, len);
		app->under_way++;
	}
	return true;
}

/* Process 0 answers, the others send requests. */
static bool asks(void)
{
	return sim.s.work == SIM_WORK_REQUEST || sim.s.work == SIM_WORK_CHURN;
}

/* The peer of the next message; the process itself means none. */
static unsigned int draw_peer(struct sim_app *app)
{
	unsigned int me = app->proc->number, procs = sim.s.procs;

	switch (sim.s.work) {
	case SIM_WORK_MANY_TO_ONE:
		return 0;
	case SIM_WORK_REQUEST:
	case SIM_WORK_CHURN:
		return me ? 0 : me;
	case SIM_WORK_CONNECT:
		return (me + app->left) % procs;
	default:
		return draw(app, procs);
	}
}

static bool answer_one(struct sim_app *app, struct app_op *op)
{
	unsigned int peer = draw(app, sim.s.procs);

	while (!app->owed[peer])
		peer = (peer + 1) % sim.s.procs;
	if (!send_one(app, op, peer))
		return false;
	app->owed[peer]--;
	app->credit--;
	return true;
}

static bool send_drawn(struct sim_app *app)
{
	struct app_op *op = free_op(app);
	unsigned int peer;

	if (!op)
		return false;
	if (app->credit)
		return answer_one(app, op);
	/* A request may be lost with the process that received it. */
	if (sim.now > app->asked_at + PATIENCE)
		app->awaiting = false;
	if (!app->left || app->awaiting)
		return false;
	peer = draw_peer(app);
	if (peer == app->proc->number && draw(app, 8) &&
	    (sim.s.work == SIM_WORK_MANY_TO_ONE || asks())) {
		app->left = 0;
		return false;
	}
	if (sim.s.work == SIM_WORK_REMOTE ||
	    (sim.s.work == SIM_WORK_MIX && draw(app, 3) == 0)) {
		if (!app_remote_start(app, op, peer))
			return false;
		/* A thread of the target serves it. */
		note_begun(peer);
		op->prompt = sim.s.progress && is_calm(app, peer);
		op->computed = app->computed;
		app->left--;
		return true;
	}
	if (!send_one(app, op, peer))
		return false;
	app->left--;
	app->awaiting = asks();
	app->asked_at = sim.now;
	return true;
}

/* Repeats the refused call, and starts no other one instead, so that a call
 * that is refused for ever is noticed. */
static bool send_next(struct sim_app *app)
{
	struct sim_rng before = app->draws;

	if (send_drawn(app))
		return true;
	app->draws = before;
	return false;
}

/* -- completions ------------------------------------------------------------ */

static void received(struct sim_app *app, struct app_recv *r,
		     const struct fi_cq_tagged_entry *entry, int err)
{
	bool tagged = r->buf.what == APP_RECV;
	uint64_t id = tagged ? entry->tag : entry->data;
	const void *at = err ? NULL : r->buf.addr;

	if (err == FI_ECANCELED) {
		r->buf.posted = false;
		return;
	}
	if (r->buf.what == APP_MULTI && sim.s.multi_recv) {
		if (entry->flags & FI_MULTI_RECV)
			r->buf.posted = false;
		if (!(entry->flags & FI_RECV))
			return;
		at = err ? NULL : entry->buf;
	} else {
		r->buf.posted = false;
	}
	oracle_received(app->proc, id, tagged ? ORACLE_TAGGED : ORACLE_PLAIN,
			at, entry->len, r->post);
	waiting[app->proc->number]--;
	app_check_guards(app);
	if (asks() && !err) {
		if (app->proc->number) {
			app->awaiting = false;
		} else if (oracle_sender(id)) {
			app->credit++;
			app->owed[oracle_sender(id)]++;
		}
	}
}

static void check_prompt(struct sim_app *app, const struct app_op *op)
{
	uint64_t took = sim.now - op->begun - (app->computed - op->computed);

	bool sent = op->buf.what == APP_SEND;
	unsigned int peer = sent ? oracle_receiver(op->id) : op->peer;

	app->met[peer] = true;
	if (op->prompt && took > PROMPT_NS && flooded_at[peer] < op->begun)
		sim_fail("%s to process %u completes after %llu us",
			 sent ? oracle_name(op->id) : "a remote operation",
			 peer, (unsigned long long)(took / SIM_US));
}

static void completed(struct sim_app *app,
		      const struct fi_cq_tagged_entry *entry, int err)
{
	struct app_buf *buf = entry->op_context;
	struct app_op *op;

	if (!buf)
		sim_fail("a completion without a context (error %d)", err);
	if (!buf->posted)
		sim_fail("a completion of what is not posted (error %d)", err);
	if (buf->what == APP_RECV || buf->what == APP_MULTI) {
		received(app, (struct app_recv *)buf, entry, err);
		return;
	}
	op = (struct app_op *)buf;
	buf->posted = false;
	check_prompt(app, op);
	app->under_way--;
	if (buf->what == APP_REMOTE) {
		waiting[op->peer]--;
		app_remote_ended(app, op, err);
	} else {
		oracle_fate(op->id, err ? ORACLE_FAILED : op->fate, err);
	}
	/* A request that was lost gets no answer. */
	if (err)
		app->awaiting = false;
}

static bool read_error(struct sim_app *app, struct fid_cq *cq)
{
	struct fi_cq_err_entry e = { 0 };
	struct fi_cq_tagged_entry entry;

	if (fi_cq_readerr(cq, &e, 0) != 1)
		return false;
	entry = (struct fi_cq_tagged_entry){
		.op_context = e.op_context,
		.flags = e.flags,
		.len = e.len,
		.buf = e.buf,
		.data = e.data,
		.tag = e.tag,
	};
	if (!e.op_context) {
		bool tagged = e.flags & FI_TAGGED;

		oracle_injected_failed(app->proc, tagged ? e.tag : e.data,
				       tagged ? ORACLE_TAGGED : ORACLE_PLAIN,
				       e.err);
		return true;
	}
	completed(app, &entry, e.err);
	return true;
}

static ssize_t read_some(struct sim_app *app, struct fid_cq *cq,
			 struct fi_cq_tagged_entry *entries, size_t most,
			 bool sleep)
{
	uint64_t begin = sim.now;
	ssize_t got;

	if (!sleep)
		return fi_cq_read(cq, entries, most);
	app->doing = "fi_cq_sread";
	got = fi_cq_sread(cq, entries, most, NULL, SLEEP_MS);
	app->doing = NULL;
	if (got == -FI_EAGAIN && sim.now - begin > SLEPT_THROUGH &&
	    sim.healed) {
		uint64_t id = oracle_waiting(app->proc, SLEPT_THROUGH);

		if (id && app->receives[0].buf.posted)
			sim_fail("fi_cq_sread() slept while message %s "
				 "waited",
				 oracle_name(id));
	}
	return got;
}

static bool take_completions(struct sim_app *app, bool sleep)
{
	struct fi_cq_tagged_entry entries[READ_MOST];
	size_t most = sim.s.tiny ? 1 : 1 + below(app, READ_MOST);
	struct fid_cq *cq = app->cq;
	ssize_t got;

	app->turn = !app->turn;
	if (app->second_cq && app->turn)
		cq = app->second_cq;
	got = read_some(app, cq, entries, most, sleep);
	if (got == -FI_EAVAIL)
		return read_error(app, cq);
	if (got == -FI_EAGAIN)
		return false;
	if (got <= 0)
		sim_fail("fi_cq_read() returns %zd", got);
	for (ssize_t i = 0; i < got; i++)
		completed(app, &entries[i], 0);
	return true;
}

/* -- life ------------------------------------------------------------------- */

static void compute(struct sim_app *app)
{
	static const uint64_t spans[] = { 5 * SIM_US, 100 * SIM_US, 2 * SIM_MS,
					  30 * SIM_MS, 300 * SIM_MS };
	uint64_t span, begin = sim.now;

	if (!sim_fault(SIM_FAULT_COMPUTE))
		return;
	span = spans[below(app, 5)];
	app->doing = "compute";
	sim_sleep_until(sim.now + below(app, (uint32_t)span), NULL);
	app->doing = NULL;
	app->computed += sim.now - begin;
}

static void step(struct sim_app *app)
{
	bool done = false, sleep;

	post_receives(app);
	for (int i = 0; i < 3 && send_next(app); i++)
		done = true;
	if (!app->left && !app->credit && !app->under_way &&
	    app->phase == APP_WORKS) {
		app->phase = APP_DONE;
		sim_trace("has sent everything");
	}
	/* Not while a refused call must be repeated. */
	sleep = sim.s.sleeps && !app->credit &&
		(!app->left || app->awaiting || !free_op(app)) &&
		below(app, 4) == 0;
	done |= take_completions(app, sleep);
	compute(app);
	if (!done && !sleep)
		sim_idle();
}

static void open_all(struct sim_app *app)
{
	for (int i = 1;; i++) {
		int err;

		app->proc->calm = i >= OPEN_TRIES;
		app->doing = "open";
		err = app_open(app);
		if (!err)
			break;
		sim_trace("opening fails: %d", err);
		if (i >= OPEN_TRIES)
			sim_fail("the endpoint cannot be opened: %d", err);
		app_close(app);
		sim_sleep_until(sim.now + SIM_MS, NULL);
	}
	app->doing = NULL;
	app->proc->calm = false;
	sim_busy();
}

/* A client ends, and will start again. */
static bool leaves(const struct sim_app *app)
{
	return sim.s.work == SIM_WORK_CHURN && app->proc->number &&
	       app->phase == APP_DONE && !app->awaiting &&
	       app->proc->life < sim.s.churns;
}

static struct app_recv *posted(struct sim_app *app)
{
	for (int i = 0; i < APP_RECEIVES; i++) {
		if (app->receives[i].buf.posted)
			return &app->receives[i];
	}
	for (int i = 0; i < APP_MULTIS; i++) {
		if (app->multis[i].buf.posted)
			return &app->multis[i];
	}
	return NULL;
}

/* Closes one of two endpoints, with its queue. Receives that both shared can
 * still be cancelled, and the queue of the other endpoint reports it. */
static void cancel_receives(struct sim_app *app)
{
	struct app_recv *r;

	app_close_second(app);
	while ((r = posted(app))) {
		ssize_t err = fi_cancel(&app->srx->fid, r);

		/* A message to the closed endpoint had already taken it. */
		if (err == -FI_ENOENT)
			r->buf.posted = false;
		else if (err)
			sim_fail("fi_cancel() returns %zd", err);
		for (int i = 0; r->buf.posted && i < CANCEL_READS; i++) {
			if (!take_completions(app, false))
				sim_idle();
		}
		if (r->buf.posted)
			sim_fail("a cancelled receive does not end");
	}
}

static void check_left(const struct sim_proc *proc)
{
	for (int fd = 0; fd < SIM_FDS; fd++) {
		if (proc->fds[fd])
			sim_fail("descriptor %d is left, a %s", fd,
				 proc->fds[fd]->ops->name);
	}
	if (proc->tasks > 1)
		sim_fail("a thread of the provider is left");
	sim_memory_check_end(proc);
}

void *app_main(void *arg)
{
	struct sim_proc *proc = arg;
	struct sim_app *app = real_calloc(1, sizeof(*app));

	app->proc = proc;
	sim_rng_seed(&app->rng, sim.s.seed * 31 + proc->life * 1000003,
		     sim_work_names[proc->number % SIM_WORKS]);
	app->rng.state += proc->number * 0x51ed2701u;
	app->left =
		sim.s.work == SIM_WORK_CONNECT ? sim.s.procs : sim.s.messages;
	app_prepare(app);
	proc->app = app;
	open_all(app);
	while (!app_all_done && !leaves(app))
		step(app);
	app->phase = APP_CLOSES;
	app->doing = "close";
	proc->calm = true;
	if (app->srx)
		cancel_receives(app);
	app_close(app);
	app_check_guards(app);
	check_left(proc);
	app->phase = APP_GONE;
	sim_busy();
	sim_proc_exit(proc);
	return NULL;
}

/* -- for the oracle --------------------------------------------------------- */

static bool touches(const struct app_buf *buf, const char *addr, size_t len)
{
	const char *begin = (const char *)buf->addr - APP_GUARD;

	return addr < begin + buf->len + 2 * APP_GUARD && addr + len > begin;
}

static bool inside(const struct app_buf *buf, const char *addr, size_t len,
		   bool write)
{
	const char *begin = (const char *)buf->addr;

	return buf->posted && !(write && buf->send) && addr >= begin &&
	       addr + len <= begin + buf->len;
}

bool app_may_touch(const struct sim_app *app, const char *addr, size_t len,
		   bool write)
{
	for (int i = 0; i < APP_OPS; i++) {
		if (touches(&app->ops[i].buf, addr, len))
			return inside(&app->ops[i].buf, addr, len, write);
	}
	for (int i = 0; i < APP_RECEIVES; i++) {
		if (touches(&app->receives[i].buf, addr, len))
			return inside(&app->receives[i].buf, addr, len, write);
	}
	for (int i = 0; i < APP_MULTIS; i++) {
		if (touches(&app->multis[i].buf, addr, len))
			return inside(&app->multis[i].buf, addr, len, write);
	}
	if (addr + len > (const char *)app->window &&
	    addr < (const char *)app->window + app->window_bytes)
		return app->window_open;
	return true;
}

void app_print(const struct sim_app *app, FILE *to)
{
	static const char *const phases[] = { "works", "done", "closes",
					      "gone" };

	fprintf(to, ", %s, %u to send, %u under way", phases[app->phase],
		app->left, app->under_way);
	if (app->doing)
		fprintf(to, ", in %s", app->doing);
	for (int i = 0; i < APP_OPS; i++) {
		const struct app_op *op = &app->ops[i];

		if (op->buf.posted && op->buf.what == APP_SEND)
			fprintf(to, ", message %s (%u bytes)",
				oracle_name(op->id), oracle_len(op->id));
		else if (op->buf.posted)
			fprintf(to, ", remote op to p%u", op->peer);
	}
}
