/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads from /proc and /sys what a reader must know to judge the figures. It
 * must not change any setting of the machine.
 */
#include "tools/bench/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "tools/proc.h"

/* The value of "key : value", or NULL. Cuts off the end of the line. */
static char *value_of(char *line, const char *key)
{
	char *colon;

	if (strncmp(line, key, strlen(key)))
		return NULL;
	colon = strchr(line, ':');
	if (!colon)
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return colon[1] == ' ' ? colon + 2 : colon + 1;
}

static void read_cpu(struct wf_tools_machine *m, const char *arch)
{
	char *line = NULL, *value;
	bool named = false, hypervisor = false;
	size_t size = 0;
	FILE *in;

	snprintf(m->cpu, sizeof(m->cpu), "unknown (%s)", arch);
	in = fopen("/proc/cpuinfo", "re");
	if (!in)
		return;
	while (getline(&line, &size, in) > 0) {
		value = value_of(line, "model name");
		if (value && !named) {
			snprintf(m->cpu, sizeof(m->cpu), "%s", value);
			named = true;
		}
		value = value_of(line, "flags");
		if (value && strstr(value, " hypervisor"))
			hypervisor = true;
	}
	free(line);
	fclose(in);
	if (hypervisor &&
	    !wf_tools_proc_line("/sys/class/dmi/id/sys_vendor", m->virtual_on,
				sizeof(m->virtual_on)))
		snprintf(m->virtual_on, sizeof(m->virtual_on), "maker unknown");
}

/* Whether the number is in a list such as "0,4" or "0-1". */
static bool is_listed(const char *list, int number)
{
	char *end;
	long from, to;

	while (*list) {
		from = strtol(list, &end, 10);
		if (end == list)
			return false;
		to = from;
		if (*end == '-')
			to = strtol(end + 1, &end, 10);
		if (number >= from && number <= to)
			return true;
		list = *end == ',' ? end + 1 : end;
	}
	return false;
}

void wf_tools_machine_read(struct wf_tools_machine *m,
			   const struct wf_tools_plan *plan)
{
	const char *cpus = "/sys/devices/system/cpu";
	char path[160], line[256];
	struct utsname name;
	time_t now = time(NULL);
	struct tm tm;
	long online;

	memset(m, 0, sizeof(*m));
	if (uname(&name))
		memset(&name, 0, sizeof(name));
	snprintf(m->kernel, sizeof(m->kernel), "%.64s %.64s", name.sysname,
		 name.release);
	read_cpu(m, name.machine);
	snprintf(path, sizeof(path), "%s/cpu%d/cpufreq/scaling_governor", cpus,
		 plan->cpus[0]);
	if (!wf_tools_proc_line(path, m->governor, sizeof(m->governor)))
		snprintf(m->governor, sizeof(m->governor), "unknown");
	snprintf(path, sizeof(path), "%s/cpu%d/topology/thread_siblings_list",
		 cpus, plan->cpus[0]);
	if (wf_tools_proc_line(path, line, sizeof(line)))
		m->siblings = !plan->one_cpu && is_listed(line, plan->cpus[1]);
	if (wf_tools_proc_line("/proc/loadavg", line, sizeof(line)))
		m->load = strtod(line, NULL);
	online = sysconf(_SC_NPROCESSORS_ONLN);
	m->n_cpus = online > 0 ? (unsigned)online : 0;
	if (gmtime_r(&now, &tm))
		strftime(m->time, sizeof(m->time), "%Y-%m-%dT%H:%M:%SZ", &tm);
}
