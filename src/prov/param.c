/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fetches the FI_WEFT_* settings through libfabric, so that `fi_info -e` lists
 * them and libfabric's own files count, and has base/setting check them. Owns
 * the values in use; decides nothing from them.
 */
#include "prov/param.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cma.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/setting.h"
#include "nic/open.h"
#include "os/inline.h"
#include "os/thread.h"
#include "prov/provider.h"

WF_PER_PROCESS struct wf_prov_param wf_prov_param;

/* Where the value of a setting goes: one of the three. */
static const struct {
	const char *name;
	size_t *number;
	bool *yes;
	char **text;
} fields[] = {
	{ .name = "iface", .text = &wf_prov_param.ifaces },
	{ .name = "connect_timeout",
	  .number = &wf_prov_param.connect_timeout_ms },
	{ .name = "inject_size", .number = &wf_prov_param.inject_size },
	{ .name = "tx_size", .number = &wf_prov_param.tx_size },
	{ .name = "rx_size", .number = &wf_prov_param.rx_size },
	{ .name = "eager_max", .number = &wf_prov_param.eager_max },
	{ .name = "cma_min", .number = &wf_prov_param.cma_min },
	{ .name = "medium_max", .number = &wf_prov_param.medium_max },
	{ .name = "read_min", .number = &wf_prov_param.read_min },
	{ .name = "runt_size", .number = &wf_prov_param.runt_size },
	{ .name = "mtu", .number = &wf_prov_param.mtu },
	{ .name = "dead_timeout", .number = &wf_prov_param.dead_timeout_s },
	{ .name = "coop_min", .number = &wf_prov_param.coop_min },
	{ .name = "cma", .yes = &wf_prov_param.cma },
	{ .name = "shm", .yes = &wf_prov_param.shm },
	{ .name = "nic", .text = &wf_prov_param.nic },
	{ .name = "efa_rings", .yes = &wf_prov_param.efa_rings },
	{ .name = "key_file", .text = &wf_prov_param.key_file },
	{ .name = "ktls", .yes = &wf_prov_param.ktls },
	{ .name = "net_thread", .yes = &wf_prov_param.net_thread },
	{ .name = "fault", .text = &wf_prov_param.fault },
	{ .name = "dir", .text = &wf_prov_param.dir },
	{ .name = "ptracer", .yes = &wf_prov_param.ptracer },
	{ .name = "allow_uid", .text = &wf_prov_param.allow_uid },
};

#define N_FIELDS (sizeof(fields) / sizeof(fields[0]))

static uint64_t get_value(size_t i)
{
	return fields[i].number ? *fields[i].number :
	       fields[i].yes	? *fields[i].yes :
				  0;
}

static void set_value(size_t i, uint64_t value)
{
	if (fields[i].number)
		*fields[i].number = value > SIZE_MAX ? SIZE_MAX : value;
	else if (fields[i].yes)
		*fields[i].yes = value;
}

/* FI_WEFT_CMA_MIN for "cma_min". */
static const char *variable(const char *name, char buf[64])
{
	size_t at = (size_t)snprintf(buf, 64, WF_SETTING_PREFIX);

	while (*name && at < 63)
		buf[at++] = (char)toupper((unsigned char)*name++);
	buf[at] = '\0';
	return buf;
}

static void define(struct fi_provider *provider, const struct wf_setting *s,
		   uint64_t fallback)
{
	char range[WF_SETTING_TEXT_LEN], text[WF_SETTING_TEXT_LEN];

	wf_base_setting_range(s, range);
	/* A text for libfabric: its own parser stops at the K of 8K, and takes
	 * garbage for 0. */
	fi_param_define(
		provider, s->name, FI_PARAM_STRING, "%s%s%s (default: %s)",
		s->help, *range ? "; " : "", range,
		s->words ? s->words : wf_base_setting_text(s, fallback, text));
}

/* The environment may change under us. */
static bool keep_text(size_t i, const char *given)
{
	char name[64];

	*fields[i].text = strdup(given);
	if (*fields[i].text)
		return true;
	wf_tell("%s=%s: no memory to keep it", variable(fields[i].name, name),
		given);
	wf_prov_param.is_short = true;
	return false;
}

/* False: the setting was not given, or not in a way that counts. */
static bool read_setting(struct fi_provider *provider, size_t i)
{
	const struct wf_setting *s = wf_base_setting_find(fields[i].name);
	char note[WF_SETTING_NOTE], name[64], text[WF_SETTING_TEXT_LEN];
	uint64_t value = get_value(i);
	char *given = NULL;
	bool counts;

	assert(s);
	define(provider, s, value);
	if (fi_param_get_str(provider, s->name, &given) || !given)
		return false;
	/* An empty FI_WEFT_KEY_FILE comes from a script that has lost the name,
	 * and its user wants encryption: keep it, so that wf_prov_param_key()
	 * refuses it. */
	if (!*given)
		return fields[i].text == &wf_prov_param.key_file &&
		       keep_text(i, given);
	counts = wf_base_setting_read(s, given, &value, note);
	set_value(i, value);
	variable(s->name, name);
	if (fields[i].text && counts && !keep_text(i, given))
		return false;
	if (!*note)
		return counts;
	if (s->kind == WF_SETTING_IFACE)
		wf_tell("%s=%s: %s", name, given, note);
	else
		wf_tell("%s=%s: %s; using %s", name, given, note,
			s->words && !counts ?
				s->words :
				wf_base_setting_text(s, value, text));
	return counts;
}

static void tell_unknown(const char *name, const struct wf_setting *meant,
			 void *arg)
{
	char buf[64];

	(void)arg;
	if (meant && !strcmp(meant->name, "key_file"))
		wf_prov_param.key_is_misspelt = true;
	if (meant)
		wf_tell(WF_SETTING_PREFIX "%s: there is no such setting; is %s "
					  "meant?",
			name, variable(meant->name, buf));
	else
		wf_tell(WF_SETTING_PREFIX "%s: there is no such setting; "
					  "`fi_info -e` lists them",
			name);
}

/* The parser has said in the log what is wrong. */
static void check_fault(void)
{
	if (!wf_prov_param.fault || wf_prov_param_fault())
		return;
	wf_tell("FI_WEFT_FAULT=%s is invalid and has no effect",
		wf_prov_param.fault);
	free(wf_prov_param.fault);
	wf_prov_param.fault = NULL;
}

/* A key wants a device that encrypts, if the user has not named another. */
static void choose_device(void)
{
	if (!wf_prov_param.key_file || wf_prov_param.nic)
		return;
	wf_prov_param.nic = strdup(wf_nic_device_encrypting());
	if (!wf_prov_param.nic)
		wf_prov_param.is_short = true;
}

int wf_prov_param_key(void)
{
	WF_PER_PROCESS static atomic_bool is_good, told;
	char why[WF_NIC_WHY];
	int ret;

	if (!wf_prov_param.key_file && wf_prov_param.key_is_misspelt) {
		if (!atomic_exchange(&told, true))
			wf_tell("FI_WEFT_KEY_FILE is not set, but probably "
				"meant: nothing is sent in the clear");
		return -EINVAL;
	}
	if (!wf_prov_param.key_file || atomic_load(&is_good))
		return 0;
	ret = wf_nic_device_secure(wf_prov_param.nic, wf_prov_param.key_file,
				   why);
	if (!ret)
		atomic_store(&is_good, true);
	else if (!atomic_exchange(&told, true))
		wf_tell("FI_WEFT_KEY_FILE=%s: %s", wf_prov_param.key_file, why);
	return ret;
}

/* Endpoints take the address of the first, large transfers use the others as
 * well. */
static void cut_ifaces(void)
{
	const char *all = wf_prov_param.ifaces;
	unsigned int most = wf_nic_device_addrs(wf_prov_param.nic), count = 1;

	if (!all)
		return;
	for (const char *at = all; (at = strchr(at, ',')); at++)
		count++;
	wf_prov_param.iface = strdup(all);
	if (wf_prov_param.iface) {
		wf_prov_param.iface[strcspn(all, ",")] = '\0';
	} else {
		wf_tell("FI_WEFT_IFACE=%s: no memory to keep it", all);
		wf_prov_param.is_short = true;
	}
	if (count > most && most == 1)
		wf_tell("FI_WEFT_IFACE=%s: this device (FI_WEFT_NIC) uses only "
			"the first of these interfaces",
			all);
	else if (count > most)
		wf_tell("FI_WEFT_IFACE=%s: this device (FI_WEFT_NIC) uses only "
			"the first %u of these interfaces",
			all, most);
}

/* A folder that was named has been checked; it is no error if the default one is
 * not there. */
static void choose_folder(void)
{
	char why[WF_SETTING_NOTE];

	wf_prov_param.folder = wf_prov_param.dir;
	if (wf_prov_param.dir && !strcmp(wf_prov_param.dir, "none"))
		wf_prov_param.folder = NULL;
	else if (!wf_prov_param.dir &&
		 wf_base_folder_check(WF_BASE_FOLDER_DEFAULT, why, sizeof(why)))
		wf_prov_param.folder = WF_BASE_FOLDER_DEFAULT;
}

void wf_prov_param_init(struct fi_provider *provider)
{
	assert(N_FIELDS == wf_base_setting_count);
	for (size_t i = 0; i < N_FIELDS; i++)
		set_value(i, wf_base_setting_find(fields[i].name)->fallback);
	for (size_t i = 0; i < N_FIELDS; i++) {
		bool given = read_setting(provider, i);

		if (fields[i].number == &wf_prov_param.coop_min)
			wf_prov_param.coop_min_is_set = given;
		if (fields[i].number == &wf_prov_param.cma_min)
			wf_prov_param.cma_min_is_set = given;
		if (fields[i].number == &wf_prov_param.medium_max)
			wf_prov_param.medium_max_is_set = given;
		if (fields[i].number == &wf_prov_param.read_min)
			wf_prov_param.read_min_is_set = given;
	}
	choose_device();
	cut_ifaces();
	check_fault();
	choose_folder();
	wf_base_setting_unknown(tell_unknown, NULL);
}

WF_PER_PROCESS static uint64_t call_ns;

static void measure_calls(void)
{
	call_ns = wf_base_cma_call_ns();
}

static uint64_t measured_call(void)
{
	WF_PER_PROCESS static struct wf_os_once once = WF_OS_ONCE_INIT;

	if (wf_prov_param.cma)
		wf_os_once(&once, measure_calls);
	return call_ns;
}

size_t wf_prov_param_coop_min(void)
{
	if (!wf_prov_param.cma || wf_prov_param.coop_min_is_set)
		return wf_prov_param.coop_min;
	return wf_base_setting_coop_min(measured_call());
}

void wf_prov_param_fini(void)
{
	free(wf_prov_param.iface);
	free(wf_prov_param.ifaces);
	free(wf_prov_param.allow_uid);
	free(wf_prov_param.fault);
	free(wf_prov_param.nic);
	free(wf_prov_param.key_file);
	free(wf_prov_param.dir);
	wf_prov_param.dir = NULL;
	wf_prov_param.folder = NULL;
	wf_prov_param.is_short = false;
	wf_prov_param.fault = NULL;
	wf_prov_param.nic = NULL;
	wf_prov_param.key_file = NULL;
	wf_prov_param.key_is_misspelt = false;
	wf_prov_param.iface = NULL;
	wf_prov_param.ifaces = NULL;
	wf_prov_param.allow_uid = NULL;
}

const struct wf_nic_fault *wf_prov_param_fault(void)
{
	WF_PER_PROCESS static struct wf_nic_fault fault;

	if (!wf_prov_param.fault ||
	    wf_nic_fault_parse(wf_prov_param.fault, &fault))
		return NULL;
	return &fault;
}
