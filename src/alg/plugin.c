/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds and opens plug-ins. Nothing may be left half done: either a driver is
 * registered completely, or its file is reported.
 */
#include "alg/plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alg/registry.h"
#include "base/log.h"
#include "chan/plugged.h"

#define SYMBOL "wd_driver"
#define SUFFIX ".so"
#define FAILURES 16 /* more are only logged */

static struct {
	char path[256];
	char why[256];
	char absent[64];
} failures[FAILURES];
static unsigned int failed;

/* @absent: the driver whose device is not here, or NULL. */
static void keep_failure(const char *path, const char *why, const char *absent)
{
	if (failed == FAILURES)
		return;
	snprintf(failures[failed].path, sizeof(failures[failed].path), "%s",
		 path);
	snprintf(failures[failed].why, sizeof(failures[failed].why), "%s", why);
	snprintf(failures[failed].absent, sizeof(failures[failed].absent), "%s",
		 absent ? absent : "");
	failed++;
}

static void fail(const char *path, const char *why)
{
	wf_warn("driver plug-in %s is not used: %s", path, why);
	keep_failure(path, why, NULL);
}

static void fail_folder(const char *folder, const char *why)
{
	wf_warn("the driver folder %s is not used: %s", folder, why);
	keep_failure(folder, why, NULL);
}

static const char *reason_of(int err)
{
	switch (err) {
	case -EEXIST:
		return "there is another driver of that name";
	case -EINVAL:
		return "its table lacks a name, or a function that it says it "
		       "has";
	case -EPROTO:
		return "it was built for a later version of weft";
	case -ENOSPC:
		return "there are too many drivers";
	default:
		return strerror(-err);
	}
}

/* Members that an older struct does not have are absent. */
static const struct wd_drv_dev *dev_of(const struct wd_driver *plugin, size_t n)
{
	return plugin->size >= sizeof(*plugin) && plugin->devs ?
		       plugin->devs[n] :
		       NULL;
}

static bool is_driven(const struct wd_drv_dev *dev,
		      const struct wd_alg_comp *driver)
{
	return dev->size >= sizeof(*dev) && dev->node && dev->api &&
	       driver->can & WD_COMP_SIZED && driver->api &&
	       !strcmp(dev->api, driver->api);
}

/* The node of the device that it drives, if that is one of the plug-in's: of
 * several, the first. */
static int node_of(const struct wd_driver *plugin,
		   const struct wd_alg_comp *driver)
{
	const struct wd_drv_dev *dev;

	for (size_t i = 0; (dev = dev_of(plugin, i)); i++) {
		if (is_driven(dev, driver))
			return dev->node();
	}
	return -1;
}

/* @path is for good: it says where the drivers are from. True: there is one. */
static bool add_drivers(const struct wd_driver *plugin, const char *path)
{
	bool any = false;

	for (size_t i = 0; plugin->comp[i]; i++) {
		int err =
			wf_alg_registry_plug(plugin->comp[i], path,
					     node_of(plugin, plugin->comp[i]));

		if (err == -ENODEV)
			keep_failure(path, "there is no such device here",
				     plugin->comp[i]->name);
		else if (err)
			fail(path, reason_of(err));
		any = any || !err;
	}
	return any;
}

static void add_devs(const struct wd_driver *plugin, const char *path)
{
	const struct wd_drv_dev *dev;

	for (size_t i = 0; (dev = dev_of(plugin, i)); i++) {
		int err = wf_chan_plugged_add(dev);

		if (err)
			fail(path, err == -EEXIST ?
					   "there is another device of that "
					   "name" :
					   "one of its devices is not filled "
					   "in, or there are too many");
	}
}

static void load_file(const char *path)
{
	const struct wd_driver *plugin;
	const char *copy;
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		const char *why = dlerror();

		fail(path, why ? why : "it cannot be loaded");
		return;
	}
	plugin = dlsym(handle, SYMBOL);
	copy = strdup(path);
	if (!plugin)
		fail(path, "it has no symbol " SYMBOL);
	else if (plugin->version > WD_DRIVER_VERSION)
		fail(path, reason_of(-EPROTO));
	else if (!plugin->version ||
		 plugin->size < offsetof(struct wd_driver, devs) ||
		 !plugin->comp || !copy)
		fail(path, "its " SYMBOL " is not filled in");
	else {
		if (add_drivers(plugin, copy))
			add_devs(plugin, copy);
		/* It stays loaded: the registry has its tables. */
		return;
	}
	free((void *)(uintptr_t)copy);
	dlclose(handle);
}

static int is_plugin(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > strlen(SUFFIX) && entry->d_name[0] != '.' &&
	       !strcmp(entry->d_name + len - strlen(SUFFIX), SUFFIX);
}

/* A folder that is not there has no drivers, unless somebody asked for it. */
static void load_folder(const char *folder, bool asked)
{
	struct dirent **list;
	int count;

	if (*folder != '/') {
		fail_folder(folder, "it is not an absolute path");
		return;
	}
	count = scandir(folder, &list, is_plugin, alphasort);
	if (count < 0) {
		if (asked || errno != ENOENT)
			fail_folder(folder, strerror(errno));
		return;
	}
	for (int i = 0; i < count; i++) {
		char *path;

		if (asprintf(&path, "%s/%s", folder, list[i]->d_name) > 0) {
			load_file(path);
			free(path);
		}
		free(list[i]);
	}
	free(list);
}

void wf_alg_plugin_load(void)
{
	/* secure_: the user of a set-user-ID program must not choose which code
	 * it runs. */
	const char *value = secure_getenv("WD_DRIVER_PATH");
	char *folders = value ? strdup(value) : NULL, *rest = folders, *folder;

	while (rest && (folder = strsep(&rest, ":"))) {
		if (*folder)
			load_folder(folder, true);
	}
	free(folders);
	load_folder(WF_DRIVER_DIR, false);
}

bool wf_alg_plugin_failed(unsigned int n, struct wf_alg_plugin_failure *failure)
{
	if (n >= failed)
		return false;
	*failure = (struct wf_alg_plugin_failure){
		failures[n].path, failures[n].why,
		*failures[n].absent ? failures[n].absent : NULL
	};
	return true;
}

const char *wf_alg_plugin_folder(void)
{
	return WF_DRIVER_DIR;
}
