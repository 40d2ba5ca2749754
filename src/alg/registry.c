/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small table of slots, and behind it the drivers: complete copies of the
 * registered tables, whatever size the driver's own has. A driver that was
 * known once stays in memory, so that a thread that has seen it may read its
 * table. A reader counts itself into a slot, then checks again whether the
 * driver is still there. Unregistration replaces a count of 0 by LEAVING, which
 * rejects readers, and only then removes the driver: a thread with a reference
 * always finds it.
 */
#include "alg/registry.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alg/drivers.h"
#include "alg/plugin.h"
#include "alg/queue.h"
#include "base/cpu.h"
#include "base/log.h"
#include "chan/plugged.h"
#include "weft/wd.h"

#define SLOTS WF_ALG_SLOTS
#define LEAVING (1u << 31)
#define FIRST (1 << 20) /* more priority than any driver has by itself */

/* The size of tables without WD_COMP_SIZED. */
#define OLD_SIZE offsetof(struct wd_alg_comp, version)

/* All but ->bad, ->cost and ->stats is constant. */
struct entry {
	struct wd_alg_comp table;
	const struct wd_alg_comp *source; /* whose copy that is */
	const char *from;
	_Atomic(const char *) bad;
	struct wf_alg_cost cost;
	struct wf_alg_stats stats;
	struct entry *next;
};

/* Each in a line of its own: a thread that asks for one driver does not wait for
 * those that count themselves into another. */
struct wf_alg_slot {
	_Alignas(64) _Atomic(struct entry *) entry;
	atomic_uint refs; /* LEAVING: no more of them */
};

static const struct wd_alg_comp *const builtin[] = {
#if WF_HAVE_ISAL
	&wf_drv_isal,
#endif
#if WF_HAVE_LIBDEFLATE
	&wf_drv_libdeflate,
#endif
#if WF_HAVE_ZLIB
	&wf_drv_zlib,
#endif
	&wf_drv_comp_device, NULL,
};

static struct wf_alg_slot slots[SLOTS];
static atomic_int n_used;      /* slots that ever had a driver are before it */
static struct entry *entries;  /* under the lock, or while loading */
static const char *preferred;  /* WD_COMP_DRIVER */
static const char *considered; /* WD_COMP_CONSIDER */
static atomic_bool preferred_sought;
static bool reproducible;   /* WD_COMP_REPRODUCIBLE */
static atomic_uint changes; /* of what a search would find */
static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The result of a search is kept: programs ask for the same again and again. */
struct found {
	unsigned int changes; /* before the search */
	bool named;
	struct wf_alg_want want;  /* ->name is not kept */
	struct wf_alg_slot *slot; /* NULL: nothing */
	struct entry *entry;
};

#define FOUNDS 8u

static __thread struct {
	/* This thread loads or registers a driver: calls of the driver
	 * meanwhile must wait neither for the end of loading nor for the
	 * lock. */
	bool registering;
	struct found founds[FOUNDS];
} mine;

static bool is_complete(const struct wd_alg_comp *d)
{
	unsigned int streams =
		WD_COMP_CAN_DEFLATE_STREAM | WD_COMP_CAN_INFLATE_STREAM;

	return d->name && *d->name &&
	       (!d->submit || (d->poll && d->open_chan && d->close_chan)) &&
	       (!(d->can & WD_COMP_CAN_DEFLATE) || d->deflate || d->submit) &&
	       (!(d->can & WD_COMP_CAN_INFLATE) || d->inflate || d->submit) &&
	       (!(d->can & streams) || (d->open && d->step && d->close));
}

bool wf_alg_registry_is_considered(const char *name)
{
	size_t len = strlen(name);
	const char *at = considered;

	while (at && *at) {
		if (!strncmp(at, name, len) && (!at[len] || at[len] == ','))
			return len;
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	return false;
}

/* A driver of another version of the interface has a shorter or longer table. */
static int copy_table(struct wd_alg_comp *to, const struct wd_alg_comp *from)
{
	size_t size = OLD_SIZE;

	if (from && from->can & WD_COMP_SIZED) {
		if (from->version > WD_COMP_DRV_VERSION)
			return -EPROTO;
		size = from->size;
	}
	if (!from || size < OLD_SIZE || size % sizeof(void *))
		return -EINVAL;
	memset(to, 0, sizeof(*to));
	memcpy(to, from, size < sizeof(*to) ? size : sizeof(*to));
	if (to->can & WD_COMP_CAN_INFLATE_STREAM)
		to->can |= WD_COMP_CAN_INFLATE_PIECE;
	if (to->name && wf_alg_registry_is_considered(to->name) &&
	    to->priority < FIRST)
		to->priority += FIRST;
	return is_complete(to) ? 0 : -EINVAL;
}

static struct entry *entry_of(const struct wd_alg_comp *source,
			      const struct wd_alg_comp *table, const char *from)
{
	struct wd_alg_comp same = *table;
	struct entry *e;

	for (e = entries; e; e = e->next) {
		same.name = e->table.name;
		if (e->source == source && !strcmp(same.name, table->name) &&
		    !memcmp(&e->table, &same, sizeof(same)))
			return e;
	}
	/* The name is read without a reference: after the driver is
	 * unregistered its own may be unmapped. */
	e = calloc(1, sizeof(*e));
	same.name = strdup(table->name);
	if (!e || !same.name) {
		free((char *)same.name);
		free(e);
		return NULL;
	}
	e->table = same;
	e->source = source;
	e->from = from;
	e->cost.node = table->node;
	wf_alg_stats_init(&e->stats, e->table.name);
	e->next = entries;
	entries = e;
	return e;
}

/* @node: where the device is, if the driver does not say it. */
static int add_locked(const struct wd_alg_comp *driver, const char *from,
		      int node)
{
	struct wf_alg_slot *free_slot = NULL;
	struct wd_alg_comp table;
	struct entry *entry;
	int ret = copy_table(&table, driver);

	if (ret)
		return ret;
	if (table.node < 0)
		table.node = node;
	for (int i = SLOTS - 1; i >= 0; i--) {
		struct entry *e = atomic_load(&slots[i].entry);

		if (!e && !atomic_load(&slots[i].refs))
			free_slot = &slots[i];
		else if (e && !strcmp(e->table.name, table.name))
			return -EEXIST;
	}
	if (!free_slot)
		return -ENOSPC;
	entry = entry_of(driver, &table, from);
	if (!entry)
		return -ENOMEM;
	ret = table.init ? table.init() : 0;
	if (ret)
		return ret;
	atomic_store(&free_slot->entry, entry);
	if (free_slot - slots >= atomic_load(&n_used))
		atomic_store(&n_used, (int)(free_slot - slots) + 1);
	atomic_fetch_add(&changes, 1);
	return 0;
}

/* NULL if it is empty. secure_: the user of a set-user-ID program must not
 * choose which code it runs. */
static const char *setting(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}

static void add_builtin(void)
{
	const char *value = setting("WD_COMP_REPRODUCIBLE");

	preferred = setting("WD_COMP_DRIVER");
	considered = setting("WD_COMP_CONSIDER");
	reproducible = value && strcmp(value, "0") != 0;
	mine.registering = true;
	/* Without the lock: nobody takes it before this is over, and a child
	 * forked meanwhile runs this again (pthread_once() ensures that). */
	for (size_t i = 0; builtin[i]; i++)
		add_locked(builtin[i], "built in", -1);
	wf_alg_plugin_load();
	mine.registering = false;
}

/* A driver that calls us while it is loaded gets the drivers before it. */
static void need_drivers(void)
{
	if (wf_likely(!mine.registering))
		pthread_once(&once, add_builtin);
}

/* Listing devices is a first use, too. */
__attribute__((constructor)) static void hook(void)
{
	wf_chan_plugged_load = need_drivers;
}

int wf_alg_registry_plug(const struct wd_alg_comp *driver, const char *from,
			 int node)
{
	return add_locked(driver, from, node);
}

/* At the first use, when programs have registered drivers of their own. */
static void seek_preferred(void)
{
	char names[256] = "";

	if (atomic_exchange(&preferred_sought, true))
		return;
	for (int i = 0; i < SLOTS; i++) {
		const struct entry *e = atomic_load(&slots[i].entry);
		size_t len = strlen(names);

		if (!e)
			continue;
		if (!strcmp(e->table.name, preferred))
			return;
		snprintf(names + len, sizeof(names) - len, "%s%s",
			 len ? ", " : "", e->table.name);
	}
	wf_warn("WD_COMP_DRIVER=%s: there is no driver of that name and it is "
		"ignored; there are %s",
		preferred, names);
}

bool wf_alg_registry_reproducible(void)
{
	need_drivers();
	return reproducible;
}

static bool drives(const struct wd_alg_comp *d, const struct wd_chan *ch)
{
	return d->api && ch->dev_info && !strcmp(d->api, ch->dev_info->api);
}

bool wf_alg_registry_drives(const struct wd_chan *ch)
{
	for (int i = 0; i < SLOTS; i++) {
		const struct entry *e = atomic_load(&slots[i].entry);

		if (e && drives(&e->table, ch))
			return true;
	}
	return false;
}

static bool can_do(const struct wd_alg_comp *d, const struct wf_alg_want *want)
{
	int window = want->window ? want->window : 15;
	bool deflate =
		want->can & (WD_COMP_CAN_DEFLATE | WD_COMP_CAN_DEFLATE_STREAM);

	if ((d->can & want->can) != want->can ||
	    (want->local && d->can & WD_COMP_BY_DEVD))
		return false;
	if (want->name && strcmp(want->name, d->name) != 0)
		return false;
	if (want->ch && !drives(d, want->ch))
		return false;
	/* Only zlib streams, and its output does not depend on the calls. */
	if (deflate && reproducible && !want->name &&
	    !(d->can & WD_COMP_CAN_DEFLATE_STREAM))
		return false;
	return !deflate || ((want->level < 0 || d->levels >> want->level & 1) &&
			    window >= d->min_window);
}

/* Whether @a is to be asked before @b. */
static bool is_better(const struct wd_alg_comp *a, const struct wd_alg_comp *b,
		      const struct wf_alg_want *want)
{
	static const unsigned int streams = WD_COMP_CAN_DEFLATE_STREAM;

	if (!b)
		return true;
	if (preferred && !strcmp(a->name, preferred))
		return true;
	if (preferred && !strcmp(b->name, preferred))
		return false;
	if (want->small && (a->can ^ b->can) & streams)
		return a->can & streams;
	if (a->priority != b->priority)
		return a->priority > b->priority;
	return want->node && a->node == want->node - 1 &&
	       b->node != want->node - 1;
}

/* A reference, unless the slot is or was somebody else's by now. Pairs with
 * wd_alg_comp_unregister(). */
static bool take(struct wf_alg_slot *slot, const struct entry *entry)
{
	if (!(atomic_fetch_add(&slot->refs, 1) & LEAVING) &&
	    atomic_load(&slot->entry) == entry)
		return true;
	atomic_fetch_sub(&slot->refs, 1);
	return false;
}

static struct wf_alg_slot *search(const struct wf_alg_want *want,
				  struct entry **entry)
{
	uint32_t except = want->except;

	if (preferred && !mine.registering &&
	    !atomic_load_explicit(&preferred_sought, memory_order_relaxed))
		seek_preferred();
	for (;;) {
		struct entry *best = NULL;
		struct wf_alg_slot *slot = NULL;
		int n = atomic_load_explicit(&n_used, memory_order_relaxed);

		for (int i = 0; i < n; i++) {
			struct entry *e = atomic_load_explicit(
				&slots[i].entry, memory_order_acquire);

			if (!e || except >> i & 1 || !can_do(&e->table, want) ||
			    !is_better(&e->table, best ? &best->table : NULL,
				       want) ||
			    atomic_load_explicit(&e->bad, memory_order_relaxed))
				continue;
			best = e;
			slot = &slots[i];
		}
		*entry = best;
		if (!slot || take(slot, best))
			return slot;
		if (atomic_load(&slot->refs) & LEAVING)
			except |= wf_alg_registry_bit(slot);
	}
}

/* Where what was found for such a search is kept. */
static struct found *place_of(const struct wf_alg_want *want)
{
	/* Without the devices that a choice by cost has passed over, it is another
	 * search, and as frequent. */
	unsigned int at = want->can + (unsigned int)want->level;

	return &mine.founds[(at % (FOUNDS / 2)) +
			    (want->except ? FOUNDS / 2 : 0)];
}

static bool is_same(const struct found *f, const struct wf_alg_want *want)
{
	const struct wf_alg_want *w = &f->want;

	return w->can == want->can && w->level == want->level &&
	       w->except == want->except && w->window == want->window &&
	       w->node == want->node && w->small == want->small &&
	       w->local == want->local && f->named == !!want->name &&
	       (!f->named || !strcmp(f->entry->table.name, want->name));
}

static struct wf_alg_slot *find(const struct wf_alg_want *want, struct found *f,
				unsigned int now, struct entry **entry)
{
	struct wf_alg_slot *slot;

	need_drivers();
	slot = search(want, entry);
	if (slot && !want->ch && !mine.registering)
		*f = (struct found){ now, want->name, *want, slot, *entry };
	return slot;
}

/* Whether that is what a search would find now. */
static bool is_current(const struct found *f, const struct wf_alg_want *want,
		       unsigned int now)
{
	return !want->ch && f->slot && f->changes == now && is_same(f, want);
}

struct wf_alg_slot *wf_alg_registry_get(const struct wf_alg_want *want)
{
	struct found *f = place_of(want);
	/* Before the search: a driver that is registered meanwhile makes it
	 * old. */
	unsigned int now = atomic_load_explicit(&changes, memory_order_acquire);
	struct entry *entry;

	if (wf_likely(is_current(f, want, now) && take(f->slot, f->entry)))
		return f->slot;
	return find(want, f, now, &entry);
}

bool wf_alg_registry_look(const struct wf_alg_want *want,
			  struct wf_alg_seen *seen)
{
	struct found *f = place_of(want);
	unsigned int now = atomic_load_explicit(&changes, memory_order_acquire);
	struct wf_alg_slot *slot = f->slot;
	struct entry *e = f->entry;

	if (!is_current(f, want, now)) {
		slot = find(want, f, now, &e);
		wf_alg_registry_put(slot);
	}
	if (!slot)
		return false;
	*seen = (struct wf_alg_seen){
		.driver = &e->table,
		.cost = &e->cost,
		.stats = &e->stats,
		.bit = wf_alg_registry_bit(slot),
	};
	return true;
}

struct wf_alg_slot *wf_alg_registry_dup(struct wf_alg_slot *slot)
{
	if (slot)
		atomic_fetch_add(&slot->refs, 1);
	return slot;
}

void wf_alg_registry_put(struct wf_alg_slot *slot)
{
	if (slot)
		atomic_fetch_sub(&slot->refs, 1);
}

const struct wd_alg_comp *wf_alg_registry_driver(const struct wf_alg_slot *slot)
{
	return &atomic_load_explicit(&slot->entry, memory_order_relaxed)->table;
}

struct wf_alg_cost *wf_alg_registry_cost(const struct wf_alg_slot *slot)
{
	return &atomic_load_explicit(&slot->entry, memory_order_relaxed)->cost;
}

struct wf_alg_stats *wf_alg_registry_stats(const struct wf_alg_slot *slot)
{
	return &atomic_load_explicit(&slot->entry, memory_order_relaxed)->stats;
}

void wf_alg_registry_forked(void)
{
	for (int i = 0; i < SLOTS; i++) {
		struct entry *e = atomic_load(&slots[i].entry);

		if (e)
			atomic_store(&e->cost.backlog, 0);
	}
}

bool wf_alg_registry_is_preferred(const struct wd_alg_comp *driver)
{
	return preferred && !strcmp(driver->name, preferred);
}

void wf_alg_registry_distrust(struct wf_alg_slot *slot, const char *why)
{
	struct entry *e =
		atomic_load_explicit(&slot->entry, memory_order_relaxed);
	const char *none = NULL;

	if (atomic_compare_exchange_strong(&e->bad, &none, why))
		wf_warn("driver %s (%s) %s; it is not used any more",
			e->table.name, e->from, why);
	atomic_fetch_add(&changes, 1);
}

unsigned int wf_alg_registry_index(const struct wf_alg_slot *slot)
{
	return (unsigned int)(slot - slots);
}

uint32_t wf_alg_registry_bit(const struct wf_alg_slot *slot)
{
	return 1u << wf_alg_registry_index(slot);
}

static int refuse_call(const char *call)
{
	wf_warn("%s: a driver must not call it while it is loaded or "
		"registered; a plug-in names its drivers in wd_driver",
		call);
	return -EDEADLK;
}

int wd_alg_comp_register(const struct wd_alg_comp *driver)
{
	int ret;

	if (mine.registering)
		return refuse_call("wd_alg_comp_register()");
	need_drivers();
	pthread_mutex_lock(&change);
	mine.registering = true;
	ret = add_locked(driver, "program", -1);
	mine.registering = false;
	pthread_mutex_unlock(&change);
	if (ret && driver && driver->name)
		wf_info("driver %s was not registered: %s", driver->name,
			strerror(-ret));
	return ret;
}

int wd_alg_comp_unregister(const struct wd_alg_comp *driver)
{
	struct entry *e = NULL;
	int ret = -ENOENT;

	if (!driver)
		return -EINVAL;
	if (mine.registering)
		return refuse_call("wd_alg_comp_unregister()");
	need_drivers();
	pthread_mutex_lock(&change);
	for (int i = 0; i < SLOTS; i++) {
		unsigned int none = 0;

		e = atomic_load(&slots[i].entry);
		if (!e || (e->source != driver && &e->table != driver))
			continue;
		/* Idle channels of the driver do not keep it registered. */
		wf_alg_queue_close_idle(&slots[i]);
		/* Pairs with wf_alg_registry_get(). */
		ret = -EBUSY;
		if (atomic_compare_exchange_strong(&slots[i].refs, &none,
						   LEAVING)) {
			/* The name is the driver's memory. A thread that found
			 * the driver before sees that `changes` is another
			 * one, and does not read the name again. */
			atomic_fetch_add(&changes, 1);
			atomic_store(&slots[i].entry, NULL);
			atomic_fetch_sub(&slots[i].refs, LEAVING);
			ret = 0;
		}
		break;
	}
	pthread_mutex_unlock(&change);
	if (!ret && e->table.exit)
		e->table.exit();
	return ret;
}

bool wf_alg_registry_known(unsigned int n, struct wf_alg_known *known)
{
	need_drivers();
	for (int i = 0; i < SLOTS; i++) {
		const struct entry *e = atomic_load(&slots[i].entry);

		if (!e || n--)
			continue;
		*known = (struct wf_alg_known){
			.driver = &e->table,
			.from = e->from,
			.bad = atomic_load(&e->bad),
		};
		return true;
	}
	return false;
}

const char *wf_alg_registry_preferred(void)
{
	need_drivers();
	return preferred;
}

const struct wd_alg_comp *wd_alg_comp_list(unsigned int n)
{
	struct wf_alg_want want = { .level = -1 };

	/* The Nth best: each time without those before it. */
	for (;;) {
		struct wf_alg_slot *slot = wf_alg_registry_get(&want);
		const struct wd_alg_comp *driver;

		if (!slot)
			return NULL;
		driver = wf_alg_registry_driver(slot);
		want.except |= wf_alg_registry_bit(slot);
		wf_alg_registry_put(slot);
		if (!n--)
			return driver;
	}
}
