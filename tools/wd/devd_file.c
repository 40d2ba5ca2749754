/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a file of options into arguments. It must not know any option.
 */
#include "tools/wd/devd_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blank[] = " \t\r\n";

static int add(struct wf_tools_devd_args *args, char *arg)
{
	size_t size = (size_t)(args->argc + 2) * sizeof(char *);
	char **longer = arg ? realloc(args->argv, size) : NULL;

	if (!longer) {
		free(arg);
		return -ENOMEM;
	}
	args->argv = longer;
	args->argv[args->argc++] = arg;
	args->argv[args->argc] = NULL;
	return 0;
}

/* "name value" or "name = value" or "name". */
static int add_line(struct wf_tools_devd_args *args, char *line)
{
	char *name, *value, *end, *arg = NULL;

	line[strcspn(line, "#")] = '\0';
	name = line + strspn(line, blank);
	end = name + strlen(name);
	while (end > name && strchr(blank, end[-1]))
		*--end = '\0';
	if (!*name)
		return 0;
	value = name + strcspn(name, " \t=");
	if (*value) {
		end = value;
		value += strspn(value, " \t");
		value += *value == '=';
		value += strspn(value, " \t");
		*end = '\0';
		if (asprintf(&arg, "--%s=%s", name, value) < 0)
			arg = NULL;
	} else if (asprintf(&arg, "--%s", name) < 0) {
		arg = NULL;
	}
	return add(args, arg);
}

int wf_tools_devd_file_read(const char *path, struct wf_tools_devd_args *args)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int err;

	*args = (struct wf_tools_devd_args){ 0 };
	if (!file)
		return -errno;
	err = add(args, strdup(path));
	while (!err && getline(&line, &size, file) >= 0)
		err = add_line(args, line);
	if (!err && ferror(file))
		err = -EIO; /* a folder, for one */
	free(line);
	fclose(file);
	if (err)
		wf_tools_devd_file_free(args);
	return err;
}

void wf_tools_devd_file_free(struct wf_tools_devd_args *args)
{
	for (int i = 0; i < args->argc; i++)
		free(args->argv[i]);
	free(args->argv);
	*args = (struct wf_tools_devd_args){ 0 };
}
