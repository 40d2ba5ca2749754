/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another configuration for a device that serves. Clients keep what they have:
 * limits hold for what is asked for from now on. The manager thread reads all of
 * this and the workers none of it, so that nobody has to be stopped.
 */
#include <string.h>

#include "base/log.h"
#include "devd/alg.h"
#include "devd/listen.h"
#include "devd/server.h"

static struct wf_devd_device *find(struct wf_devd *devd, const char *name)
{
	for (unsigned int i = 0; i < devd->config.n_devices; i++) {
		if (!strcmp(devd->devices[i].config.name, name))
			return &devd->devices[i];
	}
	return NULL;
}

static void add(struct wf_devd *devd,
		const struct wf_devd_device_config *config)
{
	struct wf_devd_device *device;

	if (devd->config.n_devices == WF_DEVD_DEVICES_MAX) {
		wf_warn("no room for device %s", config->name);
		return;
	}
	device = &devd->devices[devd->config.n_devices];
	*device = (struct wf_devd_device){ .config = *config };
	if (!device->config.algs)
		device->config.algs = wf_devd_alg_all();
	if (wf_devd_stats_open_device(devd, device)) {
		wf_warn("no memory for device %s", config->name);
		return;
	}
	devd->config.n_devices++;
}

static void change(struct wf_devd_device *device,
		   const struct wf_devd_device_config *config)
{
	if (device->config.iommu_type != config->iommu_type)
		wf_warn("device %s keeps its scenario until a restart",
			config->name);
	device->config.node_id = config->node_id;
	device->config.instances = config->instances;
	device->config.algs = config->algs ? config->algs : wf_devd_alg_all();
}

static bool has(const struct wf_devd_config *config, const char *name)
{
	for (unsigned int i = 0; i < config->n_devices; i++) {
		if (!strcmp(config->devices[i].name, name))
			return true;
	}
	return false;
}

static void change_devices(struct wf_devd *devd,
			   const struct wf_devd_config *config)
{
	for (unsigned int i = 0; i < devd->config.n_devices; i++) {
		struct wf_devd_device_config *old = &devd->devices[i].config;

		if (!has(config, old->name))
			old->instances = 0;
	}
	for (unsigned int i = 0; i < config->n_devices; i++) {
		const struct wf_devd_device_config *fresh = &config->devices[i];
		struct wf_devd_device *device = find(devd, fresh->name);

		if (device)
			change(device, fresh);
		else
			add(devd, fresh);
	}
}

static void say_what_stays(const struct wf_devd_config *old,
			   const struct wf_devd_config *fresh)
{
	if (old->workers != fresh->workers || old->spin_us != fresh->spin_us ||
	    old->first_cpu != fresh->first_cpu || old->depth != fresh->depth ||
	    old->arena != fresh->arena)
		wf_warn("workers, spin, cpu, depth and arena stay as they are "
			"until a restart");
}

void wf_devd_reload(struct wf_devd *devd, const struct wf_devd_config *config)
{
	struct wf_devd_config *now = &devd->config;

	say_what_stays(now, config);
	now->allow_uid = config->allow_uid;
	now->allow_sva = config->allow_sva;
	now->mode = config->mode;
	now->client_channels = config->client_channels;
	now->client_memory = config->client_memory;
	now->clients = config->clients;
	now->user_clients = config->user_clients;
	now->user_channels = config->user_channels;
	now->user_memory = config->user_memory;
	now->user_rates = config->user_rates;
	wf_devd_user_change(devd);
	change_devices(devd, config);
	wf_devd_listen_mode(devd);
}
