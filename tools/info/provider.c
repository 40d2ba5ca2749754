/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider as libfabric shows it to programs. When it does not, finds out
 * why: no folder, no file, a file that cannot be loaded, or nothing to offer.
 */
#include "tools/info/facts.h"

#include <dlfcn.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "tools/locate.h"

#define API FI_VERSION(1, 17)
#define LIBRARY "libweft-fi.so"

void wf_tools_facts_problem(struct wf_tools_facts *facts, const char *format,
			    ...)
{
	va_list args;

	if (facts->n_problems == WF_TOOLS_MAX_PROBLEMS)
		return;
	va_start(args, format);
	vsnprintf(facts->problems[facts->n_problems++], WF_TOOLS_PROBLEM_LEN,
		  format, args);
	va_end(args);
}

/* -- where ----------------------------------------------------------------- */

static void find_path(struct wf_tools_facts *facts)
{
	const char *given = getenv("FI_PROVIDER_PATH");

	if (given && *given) {
		snprintf(facts->path, sizeof(facts->path), "%s", given);
		facts->path_from = "FI_PROVIDER_PATH";
	} else if (!wf_tools_locate_provider(facts->path,
					     sizeof(facts->path))) {
		facts->path_from = "found beside this program; other programs "
				   "need FI_PROVIDER_PATH";
		setenv("FI_PROVIDER_PATH", facts->path, 1);
	} else {
		/* libfabric may still find one by itself. */
		facts->path_from = "nothing found";
	}
}

/* The folder where libfabric looks by default: the default of its own setting,
 * which is part of its help text. */
static bool find_own_folder(char *dir, size_t len)
{
	static const char mark[] = "(default: ";
	struct fi_param *params;
	bool found = false;
	int count;

	if (fi_getparams(&params, &count))
		return false;
	for (int i = 0; i < count && !found; i++) {
		const char *at = params[i].help_string;

		if (strcmp(params[i].name, "FI_PROVIDER_PATH") != 0 || !at ||
		    !(at = strstr(at, mark)))
			continue;
		at += sizeof(mark) - 1;
		found = (size_t)snprintf(dir, len, "%.*s",
					 (int)strcspn(at, ":)"), at) < len;
	}
	fi_freeparams(params);
	return found;
}

/* Finds what programs get that do not set FI_PROVIDER_PATH. */
static void check_own_folder(struct wf_tools_facts *facts)
{
	char own[PATH_MAX], file[PATH_MAX + 32], here[PATH_MAX],
		there[PATH_MAX];

	if (!find_own_folder(own, sizeof(own)))
		return;
	snprintf(file, sizeof(file), "%s/" LIBRARY, own);
	if (access(file, R_OK))
		return;
	if (!*facts->path) {
		snprintf(facts->path, sizeof(facts->path), "%s", own);
		facts->path_from = "libfabric looks there by itself";
	} else if (strcmp(facts->path_from, "FI_PROVIDER_PATH") != 0 &&
		   realpath(facts->path, here) && realpath(own, there)) {
		facts->path_from =
			!strcmp(here, there) ?
				"libfabric looks there by itself" :
				"found beside this program; other programs use "
				"another one, in libfabric's own folder, "
				"unless FI_PROVIDER_PATH is set to this";
	}
}

/* Whether it names weft, in libfabric's way: a list, or after '^' a list of
 * those to leave out. */
static bool filter_allows(const char *filter)
{
	bool inverted = *filter == '^';
	const char *at = strstr(filter, "weft");

	return inverted ? !at : at != NULL;
}

static void check_filter(struct wf_tools_facts *facts)
{
	const char *filter = getenv("FI_PROVIDER");

	if (filter && *filter && !filter_allows(filter))
		wf_tools_facts_problem(
			facts,
			"FI_PROVIDER=%s hides weft from other programs: unset "
			"it, or set it to weft",
			filter);
	/* Others would only be loaded to be ignored. */
	setenv("FI_PROVIDER", "weft", 1);
}

/* -- why not --------------------------------------------------------------- */

/* Loads the file as libfabric would, for the linker's own words. */
static bool explain_file(struct wf_tools_facts *facts, const char *dir,
			 size_t len)
{
	char file[PATH_MAX + 32];
	void *library;

	snprintf(file, sizeof(file), "%.*s/" LIBRARY, (int)len, dir);
	if (access(file, F_OK))
		return false;
	library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		wf_tools_facts_problem(facts,
				       "the provider cannot be loaded: "
				       "%s",
				       dlerror());
	else if (!dlsym(library, "fi_prov_ini"))
		wf_tools_facts_problem(
			facts, "%s is no libfabric provider: build it again",
			file);
	else if (!facts->net.key_fails) /* which has been reported */
		wf_tools_facts_problem(
			facts,
			"libfabric found the provider in %.*s but it offers "
			"nothing: is an interface up%s? FI_LOG_LEVEL=info "
			"FI_LOG_PROV=weft fi_info -p weft says more",
			(int)len, dir,
			getenv("FI_WEFT_IFACE") ?
				", and is FI_WEFT_IFACE one of them" :
				"");
	if (library)
		dlclose(library);
	return true;
}

static void explain_absence(struct wf_tools_facts *facts)
{
	const char *dir = facts->path;

	if (!*dir) {
		wf_tools_facts_problem(facts, LIBRARY
				       " is neither beside this program nor "
				       "installed: build it, or set "
				       "FI_PROVIDER_PATH to its folder");
		return;
	}
	while (*dir) {
		size_t len = strcspn(dir, ":");

		if (len && explain_file(facts, dir, len))
			return;
		dir += len + (dir[len] == ':');
	}
	wf_tools_facts_problem(facts,
			       "there is no " LIBRARY " in FI_PROVIDER_PATH=%s:"
			       " set it to the folder that holds it",
			       facts->path);
}

/* -- what it offers -------------------------------------------------------- */

static void add_iface(struct wf_tools_facts *facts, const struct fi_info *info)
{
	struct wf_tools_iface *iface = &facts->ifaces[facts->n_ifaces];

	if (facts->n_ifaces == WF_TOOLS_MAX_IFACES || !info->src_addr)
		return;
	iface->is_efa = info->addr_format == FI_ADDR_EFA;
	if (iface->is_efa)
		inet_ntop(AF_INET6, info->src_addr, iface->address,
			  sizeof(iface->address));
	else if (getnameinfo(info->src_addr, (socklen_t)info->src_addrlen,
			     iface->address, sizeof(iface->address), NULL, 0,
			     NI_NUMERICHOST))
		return;
	snprintf(iface->domain, sizeof(iface->domain), "%s",
		 info->domain_attr->name ? info->domain_attr->name : "");
	facts->n_ifaces++;
}

static void read_info(struct wf_tools_facts *facts, const struct fi_info *info)
{
	uint32_t version = info->fabric_attr->prov_version;

	snprintf(facts->provider_version, sizeof(facts->provider_version),
		 "%u.%u", FI_MAJOR(version), FI_MINOR(version));
	facts->inject_size = info->tx_attr->inject_size;
	facts->tx_size = info->tx_attr->size;
	facts->rx_size = info->rx_attr->size;
	for (; info; info = info->next)
		add_iface(facts, info);
}

static void tell_note(struct wf_tools_facts *facts,
		      const struct wf_tools_param *param)
{
	/* An interface that does not exist is not replaced by another. */
	bool replaced = strcmp(param->given, param->value) != 0;

	wf_tools_facts_problem(
		facts, "%s=%s: %s%s%s", param->name, param->given, param->note,
		replaced ? "; using " : "", replaced ? param->value : "");
}

static void read_params(struct wf_tools_facts *facts)
{
	struct fi_param *params;
	int count;

	if (fi_getparams(&params, &count))
		return;
	for (int i = 0; i < count; i++) {
		struct wf_tools_param *param = &facts->params[facts->n_params];

		if (strncmp(params[i].name, "FI_WEFT_", 8) ||
		    facts->n_params == WF_TOOLS_MAX_PARAMS)
			continue;
		snprintf(param->name, sizeof(param->name), "%s",
			 params[i].name);
		snprintf(param->given, sizeof(param->given), "%s",
			 params[i].value ? params[i].value : "");
		wf_tools_param_fill(param, params[i].help_string,
				    facts->cma.call_ns);
		if (*param->note)
			tell_note(facts, param);
		facts->n_params++;
	}
	fi_freeparams(params);
	wf_tools_param_unknown(facts);
}

void wf_tools_provider_read(struct wf_tools_facts *facts)
{
	struct fi_info *hints, *info = NULL;
	uint32_t version = fi_version();
	int ret;

	snprintf(facts->libfabric, sizeof(facts->libfabric), "%u.%u",
		 FI_MAJOR(version), FI_MINOR(version));
	find_path(facts);
	check_filter(facts);
	/* Problems of settings are reported below; the provider would report
	 * them as well (src/prov/init.c). */
	setenv("FI_LOG_PROV", "weft", 0);
	hints = fi_allocinfo();
	if (!hints) {
		wf_tools_facts_problem(facts, "no memory");
		return;
	}
	hints->fabric_attr->prov_name = strdup("weft");
	ret = fi_getinfo(API, NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	/* Variables are known once it was loaded, whatever it offers. */
	read_params(facts);
	wf_tools_net_check_key(facts);
	check_own_folder(facts);
	if (ret) {
		if (ret != -FI_ENODATA)
			wf_tools_facts_problem(facts, "fi_getinfo: %s",
					       fi_strerror(-ret));
		explain_absence(facts);
		return;
	}
	facts->found = true;
	read_info(facts, info);
	fi_freeinfo(info);
}
