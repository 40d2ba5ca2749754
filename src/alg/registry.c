/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small table of slots. A reader counts itself into a slot, then looks again
 * whether the driver is still there; unregistration takes the driver out, then
 * looks whether anybody counts. Both orders are sequentially consistent, so
 * that one of the two sees the other.
 */
#include "alg/registry.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alg/drivers.h"
#include "base/log.h"

#define SLOTS 32 /* bits of want.except */

struct wf_alg_slot {
	_Atomic(const struct wd_alg_comp *) driver;
	atomic_int refs;
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
static const char *preferred; /* WD_COMP_DRIVER */
static atomic_bool preferred_sought;
static bool reproducible; /* WD_COMP_REPRODUCIBLE */
static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool is_complete(const struct wd_alg_comp *d)
{
	unsigned int streams =
		WD_COMP_CAN_DEFLATE_STREAM | WD_COMP_CAN_INFLATE_STREAM;

	return d && d->name && *d->name &&
	       (!(d->can & WD_COMP_CAN_DEFLATE) || d->deflate) &&
	       (!(d->can & WD_COMP_CAN_INFLATE) || d->inflate) &&
	       (!(d->can & streams) || (d->open && d->step && d->close));
}

static int add_locked(const struct wd_alg_comp *driver)
{
	struct wf_alg_slot *free_slot = NULL;
	int ret;

	for (int i = SLOTS - 1; i >= 0; i--) {
		const struct wd_alg_comp *d = atomic_load(&slots[i].driver);

		if (!d && !atomic_load(&slots[i].refs))
			free_slot = &slots[i];
		else if (d && !strcmp(d->name, driver->name))
			return -EEXIST;
	}
	if (!free_slot)
		return -ENOSPC;
	ret = driver->init ? driver->init() : 0;
	if (!ret)
		atomic_store(&free_slot->driver, driver);
	return ret;
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
	reproducible = value && strcmp(value, "0") != 0;
	/* Without the lock: nobody takes it before this is over, and a child
	 * forked meanwhile does this again (pthread_once() sees to that). */
	for (size_t i = 0; builtin[i]; i++)
		add_locked(builtin[i]);
}

/* At the first use, when programs have registered drivers of their own. */
static void seek_preferred(void)
{
	char names[256] = "";

	if (atomic_exchange(&preferred_sought, true))
		return;
	for (int i = 0; i < SLOTS; i++) {
		const struct wd_alg_comp *d = atomic_load(&slots[i].driver);
		size_t len = strlen(names);

		if (!d)
			continue;
		if (!strcmp(d->name, preferred))
			return;
		snprintf(names + len, sizeof(names) - len, "%s%s",
			 len ? ", " : "", d->name);
	}
	wf_warn("WD_COMP_DRIVER=%s: there is no driver of that name and it is "
		"ignored; there are %s",
		preferred, names);
}

bool wf_alg_registry_reproducible(void)
{
	pthread_once(&once, add_builtin);
	return reproducible;
}

static bool can_do(const struct wd_alg_comp *d, const struct wf_alg_want *want)
{
	int window = want->window ? want->window : 15;
	bool deflate =
		want->can & (WD_COMP_CAN_DEFLATE | WD_COMP_CAN_DEFLATE_STREAM);

	if ((d->can & want->can) != want->can || (want->local && d->node >= 0))
		return false;
	if (want->name && strcmp(want->name, d->name) != 0)
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

struct wf_alg_slot *wf_alg_registry_get(const struct wf_alg_want *want)
{
	pthread_once(&once, add_builtin);
	if (preferred &&
	    !atomic_load_explicit(&preferred_sought, memory_order_relaxed))
		seek_preferred();
	for (;;) {
		const struct wd_alg_comp *best = NULL;
		struct wf_alg_slot *slot = NULL;

		for (int i = 0; i < SLOTS; i++) {
			const struct wd_alg_comp *d = atomic_load_explicit(
				&slots[i].driver, memory_order_acquire);

			if (!d || want->except >> i & 1 || !can_do(d, want) ||
			    !is_better(d, best, want))
				continue;
			best = d;
			slot = &slots[i];
		}
		if (!slot)
			return NULL;
		/* Pairs with wd_alg_comp_unregister(). */
		atomic_fetch_add(&slot->refs, 1);
		if (atomic_load(&slot->driver) == best)
			return slot;
		atomic_fetch_sub(&slot->refs, 1);
	}
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
	return atomic_load_explicit(&slot->driver, memory_order_relaxed);
}

uint32_t wf_alg_registry_bit(const struct wf_alg_slot *slot)
{
	return 1u << (slot - slots);
}

int wd_alg_comp_register(const struct wd_alg_comp *driver)
{
	int ret;

	if (!is_complete(driver))
		return -EINVAL;
	pthread_once(&once, add_builtin);
	pthread_mutex_lock(&change);
	ret = add_locked(driver);
	pthread_mutex_unlock(&change);
	if (ret)
		wf_info("driver %s was not registered: %s", driver->name,
			strerror(-ret));
	return ret;
}

int wd_alg_comp_unregister(const struct wd_alg_comp *driver)
{
	int ret = -ENOENT;

	if (!driver)
		return -EINVAL;
	pthread_once(&once, add_builtin);
	pthread_mutex_lock(&change);
	for (int i = 0; i < SLOTS; i++) {
		if (atomic_load(&slots[i].driver) != driver)
			continue;
		/* Pairs with wf_alg_registry_get(). */
		atomic_store(&slots[i].driver, NULL);
		ret = 0;
		if (atomic_load(&slots[i].refs)) {
			atomic_store(&slots[i].driver, driver);
			ret = -EBUSY;
		}
		break;
	}
	pthread_mutex_unlock(&change);
	if (!ret && driver->exit)
		driver->exit();
	return ret;
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
