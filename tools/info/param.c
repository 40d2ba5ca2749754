/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The FI_WEFT_* settings: libfabric lists them with the given value and with
 * the default of the loaded provider, and base/setting evaluates them as in the
 * provider. It must not know values of its own.
 */
#include "tools/info/facts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/setting.h"
#include "nic/open.h"

#define DEFAULT " (default: "

/* "weft: text (default: value)" */
static void take_apart(struct wf_tools_param *param, const char *help)
{
	const char *at = NULL, *next = help, *end;

	if (!strncmp(help, "weft: ", 6))
		help += 6;
	while ((next = strstr(next, DEFAULT)))
		at = next++;
	snprintf(param->help, sizeof(param->help), "%.*s",
		 at ? (int)(at - help) : (int)strlen(help), help);
	if (!at)
		return;
	at += strlen(DEFAULT);
	end = strrchr(at, ')');
	snprintf(param->fallback, sizeof(param->fallback), "%.*s",
		 end ? (int)(end - at) : (int)strlen(at), at);
}

static char logged[WF_SETTING_NOTE];

static void keep_line(enum wf_log_level level, const char *func, int line,
		      const char *text)
{
	(void)level;
	(void)func;
	(void)line;
	snprintf(logged, sizeof(logged), "%s", text);
}

/* The one text with a language of its own; its parser says in the log what is
 * wrong with it. */
static bool is_bad_fault(const struct wf_setting *s, const char *given)
{
	struct wf_nic_fault fault;
	int err;

	if (!s || strcmp(s->name, "fault") != 0)
		return false;
	*logged = '\0';
	wf_base_log_set_sink(keep_line);
	err = wf_nic_fault_parse(given, &fault);
	wf_base_log_set_sink(NULL);
	return err;
}

static const struct wf_setting *find(const char *name)
{
	if (strncmp(name, WF_SETTING_PREFIX, strlen(WF_SETTING_PREFIX)) != 0)
		return NULL;
	return wf_base_setting_find(name + strlen(WF_SETTING_PREFIX));
}

void wf_tools_param_fill(struct wf_tools_param *param, const char *help,
			 uint64_t call_ns)
{
	const struct wf_setting *s = find(param->name);
	char text[WF_SETTING_TEXT_LEN];
	uint64_t value = 0;

	take_apart(param, help ? help : "");
	param->why = s ? s->why : NULL;
	param->source = "default";
	param->counts = false;
	/* A number whose default depends on the machine: there is one. */
	snprintf(param->value, sizeof(param->value), "%s",
		 s && !strcmp(s->name, "coop_min") ?
			 wf_base_setting_text(
				 s, wf_base_setting_coop_min(call_ns), text) :
			 param->fallback);
	if (!*param->given)
		return;
	/* libfabric 2 also has a file of settings. */
	param->source = getenv(param->name) ? "environment" : "libfabric";
	/* Not ours: a provider of another version. */
	if (s && !wf_base_setting_read(s, param->given, &value, param->note))
		return;
	if (is_bad_fault(s, param->given)) {
		snprintf(param->note, sizeof(param->note), "it is invalid: %s",
			 logged);
		return;
	}
	param->counts = true;
	snprintf(param->value, sizeof(param->value), "%s",
		 !s || wf_base_setting_is_text(s) ?
			 param->given :
			 wf_base_setting_text(s, value, text));
}

static void add_unknown(const char *name, const struct wf_setting *meant,
			void *arg)
{
	struct wf_tools_facts *facts = arg;
	char upper[48];
	size_t len = 0;

	for (; meant && meant->name[len] && len < sizeof(upper) - 1; len++)
		upper[len] = (char)toupper((unsigned char)meant->name[len]);
	upper[len] = '\0';
	/* The provider that is loaded may be newer than this program. */
	if (wf_tools_param_find(facts, name))
		return;
	wf_tools_facts_problem(facts,
			       WF_SETTING_PREFIX
			       "%s is no setting and changes nothing%s%s%s",
			       name, meant ? ": is " WF_SETTING_PREFIX : "",
			       upper, meant ? " meant?" : "");
}

void wf_tools_param_unknown(struct wf_tools_facts *facts)
{
	wf_base_setting_unknown(add_unknown, facts);
}

const struct wf_tools_param *
wf_tools_param_find(const struct wf_tools_facts *facts, const char *name)
{
	for (unsigned i = 0; i < facts->n_params; i++) {
		if (!strcmp(facts->params[i].name + strlen(WF_SETTING_PREFIX),
			    name))
			return &facts->params[i];
	}
	return NULL;
}
