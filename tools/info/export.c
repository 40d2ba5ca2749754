/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the facts as JSON. Field names are an interface: new ones may be
 * added, none may change.
 */
#include "tools/info/report.h"

#include <string.h>

#include "tools/json.h"

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

static void write_provider(struct wf_tools_json *j,
			   const struct wf_tools_facts *f)
{
	wf_tools_json_open(j, "provider", '{');
	wf_tools_json_bool(j, "found", f->found);
	wf_tools_json_text(j, "version", or_null(f->provider_version));
	wf_tools_json_text(j, "libfabric", f->libfabric);
	wf_tools_json_text(j, "path", or_null(f->path));
	wf_tools_json_text(j, "path_from", f->path_from);
	wf_tools_json_number(j, "inject_size", f->inject_size);
	wf_tools_json_number(j, "tx_size", f->tx_size);
	wf_tools_json_number(j, "rx_size", f->rx_size);
	wf_tools_json_open(j, "interfaces", '[');
	for (unsigned i = 0; i < f->n_ifaces; i++) {
		wf_tools_json_open(j, NULL, '{');
		wf_tools_json_text(j, "domain", f->ifaces[i].domain);
		wf_tools_json_text(j, "address", f->ifaces[i].address);
		wf_tools_json_close(j, '}');
	}
	wf_tools_json_close(j, ']');
	wf_tools_json_close(j, '}');
}

static void write_cma(struct wf_tools_json *j, const struct wf_tools_facts *f)
{
	const struct wf_tools_cma *cma = &f->cma;
	const struct {
		const char *name;
		int err;
	} tries[] = {
		{ "self", cma->self },
		{ "parent_to_child", cma->child },
		{ "child_to_parent", cma->parent },
		{ "siblings", cma->sibling },
	};

	wf_tools_json_open(j, "cma", '{');
	wf_tools_json_bool(j, "in_use", f->cma_on);
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		wf_tools_json_text(j, tries[i].name,
				   tries[i].err ? strerror(tries[i].err) :
						  "allowed");
	wf_tools_json_text(j, "why_not", or_null(cma->why));
	wf_tools_json_text(j, "advice", or_null(cma->advice));
	if (cma->ptrace_scope >= 0)
		wf_tools_json_number(j, "ptrace_scope",
				     (uint64_t)cma->ptrace_scope);
	else
		wf_tools_json_text(j, "ptrace_scope", NULL);
	wf_tools_json_bool(j, "seccomp_filter", cma->seccomp == 2);
	wf_tools_json_bool(j, "dumpable", cma->dumpable);
	wf_tools_json_bool(j, "cap_sys_ptrace", cma->capable);
	wf_tools_json_close(j, '}');
}

static void write_net(struct wf_tools_json *j, const struct wf_tools_facts *f)
{
	const struct wf_tools_net *net = &f->net;

	wf_tools_json_open(j, NULL, '{');
	wf_tools_json_text(j, "path", "packets");
	wf_tools_json_text(j, "device", net->device);
	if (net->is_efa)
		wf_tools_json_text(j, "requests", net->way);
	wf_tools_json_bool(j, "encrypted", net->encrypts);
	wf_tools_json_text(j, "tls", net->tls);
	wf_tools_json_text(j, "interface", net->iface);
	wf_tools_json_text(j, "address", net->address);
	wf_tools_json_number(j, "mtu", net->mtu);
	wf_tools_json_bool(j, "gso", net->gso);
	wf_tools_json_bool(j, "gro", net->gro);
	wf_tools_json_number(j, "receive_buffer", net->buffer);
	wf_tools_json_bool(j, "all_peers", f->shm_off);
	wf_tools_json_close(j, '}');
}

static void write_measured(struct wf_tools_json *j,
			   const struct wf_tools_facts *f)
{
	wf_tools_json_open(j, "tried", '[');
	for (unsigned i = 0; i < f->n_tried; i++) {
		wf_tools_json_open(j, NULL, '{');
		wf_tools_json_number(j, "from", f->tried[i].from);
		wf_tools_json_number(j, "to", f->tried[i].to);
		wf_tools_json_bool(j, "cma", f->tried[i].cma);
		wf_tools_json_close(j, '}');
	}
	wf_tools_json_close(j, ']');
	wf_tools_json_open(j, "measured", '{');
	wf_tools_json_number(j, "cma_call_ns", f->cma.call_ns);
	wf_tools_json_number(j, "both_copy_from", f->both_from);
	wf_tools_json_bool(j, "both_copy_from_is_measured", f->both_measured);
	wf_tools_json_close(j, '}');
}

static void write_shm(struct wf_tools_json *j, const struct wf_tools_facts *f)
{
	wf_tools_json_open(j, NULL, '{');
	wf_tools_json_text(j, "path", "shared memory");
	wf_tools_json_open(j, "ways", '[');
	for (unsigned i = 0; i < f->n_ways; i++) {
		wf_tools_json_open(j, NULL, '{');
		wf_tools_json_text(j, "name", f->ways[i].name);
		wf_tools_json_number(j, "from", f->ways[i].from);
		if (f->ways[i].to == UINT64_MAX)
			wf_tools_json_text(j, "to", NULL);
		else
			wf_tools_json_number(j, "to", f->ways[i].to);
		wf_tools_json_close(j, '}');
	}
	wf_tools_json_close(j, ']');
	write_measured(j, f);
	wf_tools_json_close(j, '}');
}

static void write_ways(struct wf_tools_json *j, const struct wf_tools_facts *f)
{
	wf_tools_json_open(j, "paths", '[');
	if (!f->shm_off)
		write_shm(j, f);
	if (f->net.found)
		write_net(j, f);
	wf_tools_json_close(j, ']');
}

static void write_folder(struct wf_tools_json *j,
			 const struct wf_tools_facts *f)
{
	wf_tools_json_open(j, "containers", '{');
	wf_tools_json_text(j, "folder", or_null(f->folder.path));
	wf_tools_json_text(j, "why_not", or_null(f->folder.why));
	wf_tools_json_text(j, "advice", or_null(f->folder.advice));
	wf_tools_json_close(j, '}');
}

static void write_params(struct wf_tools_json *j,
			 const struct wf_tools_facts *f)
{
	wf_tools_json_open(j, "settings", '[');
	for (unsigned i = 0; i < f->n_params; i++) {
		const struct wf_tools_param *p = &f->params[i];

		wf_tools_json_open(j, NULL, '{');
		wf_tools_json_text(j, "name", p->name);
		wf_tools_json_text(j, "value", p->value);
		wf_tools_json_text(j, "source", p->source);
		wf_tools_json_text(j, "given", or_null(p->given));
		wf_tools_json_text(j, "default", p->fallback);
		wf_tools_json_text(j, "help", p->help);
		wf_tools_json_text(j, "why", p->why);
		wf_tools_json_text(j, "note", or_null(p->note));
		wf_tools_json_close(j, '}');
	}
	wf_tools_json_close(j, ']');
}

static void write_drivers(struct wf_tools_json *j,
			  const struct wf_tools_facts *f)
{
	wf_tools_json_open(j, "compression", '{');
	wf_tools_json_text(j, "plugin_folder", f->driver_folder);
	wf_tools_json_text(j, "preferred", or_null(f->driver_preferred));
	wf_tools_json_open(j, "drivers", '[');
	for (unsigned i = 0; i < f->n_drivers; i++) {
		const struct wf_tools_driver *d = &f->drivers[i];

		wf_tools_json_open(j, NULL, '{');
		wf_tools_json_text(j, "name", d->name);
		wf_tools_json_text(j, "from", d->from);
		wf_tools_json_text(j, "about", or_null(d->about));
		wf_tools_json_text(j, "can", d->can);
		wf_tools_json_text(j, "devices", or_null(d->devices));
		wf_tools_json_number(j, "in_flight", d->in_flight);
		wf_tools_json_text(j, "first_for", or_null(d->first));
		wf_tools_json_text(j, "why_not", or_null(d->why_not));
		wf_tools_json_close(j, '}');
	}
	wf_tools_json_close(j, ']');
	wf_tools_json_close(j, '}');
}

static void write_node(struct wf_tools_json *j, const struct wf_tools_facts *f)
{
	const struct wf_tools_node *node = &f->node;

	wf_tools_json_open(j, "machine", '{');
	wf_tools_json_text(j, "cpu", node->machine.cpu);
	wf_tools_json_text(j, "kernel", node->machine.kernel);
	wf_tools_json_text(j, "virtual", or_null(node->machine.virtual_on));
	wf_tools_json_number(j, "cpus_online", node->machine.n_cpus);
	wf_tools_json_number(j, "cpus_allowed", node->cpus_allowed);
	wf_tools_json_text(j, "cpu_list", node->cpus);
	wf_tools_json_number(j, "numa_nodes", node->numa_nodes);
	wf_tools_json_number(j, "last_level_caches", node->caches);
	wf_tools_json_bool(j, "membarrier", node->membarrier);
	wf_tools_json_bool(j, "memfd", node->memfd);
	wf_tools_json_number(j, "uid", node->uid);
	wf_tools_json_number(j, "open_files", node->files);
	wf_tools_json_close(j, '}');
}

void wf_tools_report_json(const struct wf_tools_facts *facts, FILE *out)
{
	struct wf_tools_json json = { .out = out };

	wf_tools_json_open(&json, NULL, '{');
	write_provider(&json, facts);
	write_cma(&json, facts);
	write_ways(&json, facts);
	write_folder(&json, facts);
	write_params(&json, facts);
	write_drivers(&json, facts);
	write_node(&json, facts);
	wf_tools_json_open(&json, "problems", '[');
	for (unsigned i = 0; i < facts->n_problems; i++)
		wf_tools_json_text(&json, NULL, facts->problems[i]);
	wf_tools_json_close(&json, ']');
	wf_tools_json_close(&json, '}');
}
