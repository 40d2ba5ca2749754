/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft stat`: the live view, tables, or counters for other programs.
 */
#include "tools/stat/stat.h"

#include <errno.h>

#include "tools/stat/dump.h"
#include "tools/stat/look.h"
#include "tools/stat/metrics.h"
#include "tools/stat/serve.h"
#include "tools/stat/watch.h"

/* Everything once. */
static int dump(const struct wf_tools_stat_options *options)
{
	struct wf_tools_scan scan;
	int ret = wf_tools_look(options, NULL, &scan);

	if (ret)
		return wf_tools_look_failed(options, ret);
	if (options->openmetrics)
		ret = wf_tools_metrics_write(&scan, stdout);
	else
		wf_tools_dump_json(&scan, stdout);
	if (!scan.count)
		wf_tools_look_notes(options, &scan, stderr);
	if (!ret)
		ret = scan.count > 0;
	wf_tools_scan_free(&scan);
	return ret;
}

int wf_tools_stat_main(int argc, char **argv)
{
	struct wf_tools_stat_options options;
	int ret = wf_tools_stat_options_read(&options, argc, argv);

	if (ret)
		return ret < 0 ? 2 : 0;
	if (options.listen) {
		ret = wf_tools_serve(&options);
		return ret == -EINVAL ? 2 : ret ? 1 : 0;
	}
	ret = options.json || options.openmetrics ? dump(&options) :
						    wf_tools_watch(&options);
	return ret > 0 ? 0 : 1;
}
