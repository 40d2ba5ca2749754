/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks for endpoints and says what could not be seen.
 */
#include "tools/stat/look.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int wf_tools_look(const struct wf_tools_stat_options *options,
		  const struct wf_tools_scan *before,
		  struct wf_tools_scan *scan)
{
	pid_t missing;
	int ret = wf_tools_scan_all(scan, options->pids.all,
				    options->pids.count, &missing);

	if (ret)
		return ret;
	if (missing && options->pids.count == 1) {
		wf_tools_scan_free(scan);
		return -ESRCH;
	}
	wf_tools_scan_jobs(scan, before);
	return 0;
}

int wf_tools_look_failed(const struct wf_tools_stat_options *options, int error)
{
	if (error == -ESRCH)
		wf_tools_stat_complain("there is no process %d",
				       (int)options->pids.all[0]);
	else
		wf_tools_stat_complain("cannot look for endpoints: %s",
				       strerror(-error));
	return error;
}

void wf_tools_look_missing(const struct wf_tools_stat_options *s,
			   const struct wf_tools_scan *scan, FILE *out)
{
	if (scan->elsewhere)
		fprintf(out, "%u endpoint%s %s not shown: %s\n",
			scan->elsewhere, scan->elsewhere == 1 ? "" : "s",
			scan->elsewhere == 1 ? "is" : "are",
			geteuid() ? "other users or containers have them; run "
				    "this as root" :
				    "processes of other containers, or that "
				    "start or end");
	/* Of all processes, most are none of weft's: worth a word only if nothing
	 * else explains why nothing was found. */
	if (scan->denied &&
	    (s->pids.count || (!scan->count && !scan->elsewhere)))
		fprintf(out,
			"%u process%s may not be looked into: look as %s user "
			"or as root\n",
			scan->denied, scan->denied == 1 ? "" : "es",
			scan->denied == 1 ? "its" : "their");
	if (scan->unsound)
		fprintf(out, "%u page%s of counters left out; process %d: %s\n",
			scan->unsound, scan->unsound == 1 ? "" : "s",
			(int)scan->unsound_pid, scan->unsound_why);
}

void wf_tools_look_notes(const struct wf_tools_stat_options *s,
			 const struct wf_tools_scan *scan, FILE *out)
{
	if (!scan->count)
		fprintf(out,
			"no endpoint, device or driver of weft is open%s\n",
			s->pids.count ? " in that process" : " here");
	wf_tools_look_missing(s, scan, out);
}
