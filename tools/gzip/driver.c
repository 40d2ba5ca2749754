/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explains why the driver that was asked for does not do a file, and names those
 * that do such files.
 */
#include "tools/gzip/gzip.h"

#include <string.h>

#include <weft/wd_comp_drv.h>

#include "tools/near.h"

static bool does(const struct wd_alg_comp *d, const struct wf_gzip_options *o)
{
	if (o->decompress)
		return d->can & WD_COMP_CAN_INFLATE_STREAM;
	return d->can & WD_COMP_CAN_DEFLATE && d->levels >> o->level & 1;
}

static const char *reason(const struct wd_alg_comp *d,
			  const struct wf_gzip_options *o)
{
	if (!o->decompress)
		return d->can & WD_COMP_CAN_DEFLATE ? "has no such level" :
						      "only decompresses";
	if (d->can & WD_COMP_CAN_INFLATE_PIECE)
		return "takes only files that consist of pieces";
	return d->can & WD_COMP_CAN_INFLATE ? "takes whole buffers only" :
					      "only compresses";
}

/* "isal, zlib": all, or those that do such files. */
static void list(const struct wf_gzip_options *o, bool all, char *names,
		 size_t room)
{
	const struct wd_alg_comp *d;
	size_t at = 0;

	*names = '\0';
	for (unsigned int i = 0; (d = wd_alg_comp_list(i)) && at < room; i++) {
		if (all || does(d, o))
			at += (size_t)snprintf(names + at, room - at, "%s%s",
					       at ? ", " : "", d->name);
	}
}

const char *wf_tools_gzip_driver_why(const struct wf_gzip_options *o)
{
	static char text[512];
	struct wf_tools_near near = { .word = o->driver };
	const struct wd_alg_comp *d, *found = NULL;
	char names[256];

	for (unsigned int i = 0; o->driver && (d = wd_alg_comp_list(i)); i++) {
		wf_tools_near_try(&near, d->name);
		if (!strcmp(d->name, o->driver))
			found = d;
	}
	list(o, o->driver && !found, names, sizeof(names));
	if (!o->driver)
		snprintf(text, sizeof(text), "no driver can do this level");
	else if (!found)
		snprintf(text, sizeof(text),
			 "there is no driver '%s'%s (drivers here: %s)",
			 o->driver, wf_tools_near_text(&near), names);
	else if (does(found, o))
		snprintf(
			text, sizeof(text),
			"the driver %s cannot do this file; leave --driver out",
			o->driver);
	else
		snprintf(text, sizeof(text),
			 "the driver %s %s (drivers that can %s: %s)",
			 o->driver, reason(found, o),
			 o->decompress ? "decompress any file" :
					 "do this level",
			 names);
	return text;
}
