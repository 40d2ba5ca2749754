/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the facts as text: as wide as the terminal, at most 80 columns;
 * elsewhere a fact is one line, so that grep(1) finds it whole.
 */
#include "tools/info/report.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "nic/open.h"
#include "tools/wrap.h"

#define WIDTH 80
#define LABEL 15

static void say(FILE *out, const char *label, const char *text)
{
	fprintf(out, "  %-*s%c%s\n", LABEL, label, WF_TOOLS_WRAP_MARK, text);
}

static void head(FILE *out, const char *text)
{
	fprintf(out, "%c%c%s\n", WF_TOOLS_WRAP_STYLED(WF_TOOLS_HEAD), text);
}

static void say_problems(const struct wf_tools_facts *f, FILE *out)
{
	if (!f->n_problems)
		return;
	head(out, "Problems");
	for (unsigned i = 0; i < f->n_problems; i++)
		fprintf(out, "%c%c  * %c%s\n",
			WF_TOOLS_WRAP_STYLED(WF_TOOLS_TROUBLE),
			WF_TOOLS_WRAP_MARK, f->problems[i]);
	fputc('\n', out);
}

static void say_provider(const struct wf_tools_facts *f, FILE *out)
{
	char text[PATH_MAX + 256];

	head(out, "Provider");
	snprintf(text, sizeof(text), "%s%s with libfabric %s",
		 f->found ? "weft " : "NOT AVAILABLE",
		 f->found ? f->provider_version : "", f->libfabric);
	say(out, "weft", text);
	snprintf(text, sizeof(text), "%s (%s)", *f->path ? f->path : "none",
		 f->path_from);
	say(out, "folder", text);
	if (!f->found) {
		fputc('\n', out);
		return;
	}
	snprintf(text, sizeof(text),
		 "inject up to %zu bytes, %zu sends and %zu receives in flight",
		 f->inject_size, f->tx_size, f->rx_size);
	say(out, "an endpoint", text);
	fputc('\n', out);
	head(out, "Interfaces (domain, address), in the order of fi_getinfo");
	for (unsigned i = 0; i < f->n_ifaces; i++)
		fprintf(out, "  %-12s %s%s\n", f->ifaces[i].domain,
			f->ifaces[i].address,
			i ? "" : "  (used unless you name another)");
	fputc('\n', out);
}

static const char *verdict(int err, char *buf, size_t len)
{
	if (!err)
		return "yes";
	snprintf(buf, len, "no (%s)", strerror(err));
	return buf;
}

static void say_cma(const struct wf_tools_facts *f, FILE *out)
{
	const struct wf_tools_cma *cma = &f->cma;
	const struct wf_tools_param *param = wf_tools_param_find(f, "CMA");
	char text[256], buf[96];

	snprintf(text, sizeof(text), "Copying between processes (CMA): %s",
		 f->cma_on ? "allowed" :
		 *cma->why ? "refused" :
			     "switched off");
	head(out, text);
	if (*cma->why)
		say(out, "why", cma->why);
	if (*cma->advice)
		say(out, "what to do", cma->advice);
	if (!f->cma_on && !*cma->why && param)
		say(out, "why", "FI_WEFT_CMA is false");
	say(out, "parent, child", verdict(cma->child, buf, sizeof(buf)));
	say(out, "child, parent", verdict(cma->parent, buf, sizeof(buf)));
	say(out, "siblings", verdict(cma->sibling, buf, sizeof(buf)));
	snprintf(text, sizeof(text), "%s, seccomp %s, CAP_SYS_PTRACE %s",
		 cma->ptrace_scope < 0	? "no Yama" :
		 cma->ptrace_scope == 0 ? "ptrace_scope 0" :
		 cma->ptrace_scope == 1 ? "ptrace_scope 1" :
		 cma->ptrace_scope == 2 ? "ptrace_scope 2" :
					  "ptrace_scope 3",
		 cma->seccomp == 2 ? "filters" :
		 cma->seccomp == 0 ? "off" :
				     "unknown",
		 cma->capable ? "yes" : "no");
	say(out, "settings", text);
	fputc('\n', out);
}

static void say_folder(const struct wf_tools_facts *f, FILE *out)
{
	const struct wf_tools_folder *folder = &f->folder;
	char text[192];

	if (f->shm_off)
		return;
	fprintf(out, "  %s, to other network namespaces of this host\n",
		*folder->path ? "shared memory" : "packets");
	if (*folder->path) {
		snprintf(text, sizeof(text),
			 "%s, to those that share it; packets to others",
			 folder->path);
		say(out, "  folder", text);
		return;
	}
	say(out, "  why", folder->why);
	if (*folder->advice)
		say(out, "  what to do", folder->advice);
}

/* Prints the facts that are in no table: the ways that each pair tries, and the
 * measurements. */
static void say_measured(const struct wf_tools_facts *f, FILE *out)
{
	char text[512];
	int len = 0;

	for (unsigned i = 0; i < f->n_tried; i++)
		len += snprintf(
			text + len, sizeof(text) - (size_t)len,
			"%" PRIu64 "-%" PRIu64
			" bytes through the ring%s around the caches%s; ",
			f->tried[i].from, f->tried[i].to,
			f->tried[i].cma ? "," : " or",
			f->tried[i].cma ? ", or by CMA" : "");
	if (f->n_tried) {
		snprintf(text + len, sizeof(text) - (size_t)len,
			 "each pair of processes measures its own messages, "
			 "after 32 of a size and again after 1024 or more, and "
			 "keeps the fastest");
		say(out, "  tried", text);
	}
	if (!f->both_from)
		return;
	if (f->both_measured)
		snprintf(text, sizeof(text),
			 "a copy of 4096 bytes by CMA takes %" PRIu64
			 " ns, so both sides copy from %" PRIu64
			 " bytes on (each process measures that when it opens "
			 "its first endpoint)",
			 f->cma.call_ns, f->both_from);
	else
		snprintf(text, sizeof(text),
			 "nothing: FI_WEFT_COOP_MIN says that both sides copy "
			 "from %" PRIu64 " bytes on",
			 f->both_from);
	say(out, "  measured", text);
}

static void say_ways(const struct wf_tools_facts *f, FILE *out)
{
	head(out, "Paths");
	if (!f->shm_off)
		fputs("  shared memory, to peers on this node; a message of\n",
		      out);
	for (unsigned i = 0; i < f->n_ways; i++) {
		const struct wf_tools_way *way = &f->ways[i];
		char range[48];

		if (way->to == UINT64_MAX)
			snprintf(range, sizeof(range), "%" PRIu64 " and more",
				 way->from);
		else
			snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64,
				 way->from, way->to);
		fprintf(out, "    %15s bytes: %-8s %s\n", range, way->name,
			way->about);
	}
	say_measured(f, out);
	say_folder(f, out);
	if (!f->net.found)
		fputc('\n', out);
}

/* Behind the first of FI_WEFT_IFACE. */
static void say_more_ifaces(const struct wf_tools_facts *f, FILE *out)
{
	const struct wf_tools_param *ifaces = wf_tools_param_find(f, "IFACE");
	const char *more = ifaces ? strchr(ifaces->given, ',') : NULL;
	char text[256];

	if (!more || wf_nic_device_addrs(f->net.device) < 2)
		return;
	snprintf(text, sizeof(text),
		 "large transfers, if the peer has them, too: %s", more + 1);
	say(out, "  and by", text);
}

static void say_net(const struct wf_tools_facts *f, FILE *out)
{
	const struct wf_tools_net *net = &f->net;
	char text[256];

	if (!net->found)
		return;
	fprintf(out, "  packets (%s), to %s\n", net->device,
		f->shm_off ? "all peers: FI_WEFT_SHM is false" :
			     "peers on other nodes");
	if (net->is_efa)
		snprintf(text, sizeof(text), "%s, GID %s", net->iface,
			 net->address);
	else
		snprintf(text, sizeof(text), "%s, %s, MTU %u", net->iface,
			 net->address, net->mtu);
	say(out, "  by", text);
	say_more_ifaces(f, out);
	snprintf(text, sizeof(text), "%s: %s", net->device_about,
		 net->device_from);
	say(out, "  device", text);
	snprintf(text, sizeof(text), "%s%.240s", net->encrypts ? "on: " : "",
		 net->tls);
	say(out, "  TLS", text);
	if (net->is_efa) {
		say(out, "  requests", net->way);
		fputc('\n', out);
		return;
	}
	if (net->socket == SOCK_STREAM) {
		snprintf(text, sizeof(text),
			 "congestion control %s; cubic where a round trip "
			 "takes less than 0.5 ms and little is lost",
			 net->control[0] ? net->control : "unknown");
		say(out, "  the kernel", text);
		fputc('\n', out);
		return;
	}
	snprintf(text, sizeof(text),
		 "segmentation (GSO) %s, coalescing (GRO) %s, %" PRIu64
		 " KiB of receive buffer",
		 net->gso ? "yes" : "no", net->gro ? "yes" : "no",
		 net->buffer >> 10);
	say(out, "  the kernel", text);
	fputc('\n', out);
}

static void say_params(const struct wf_tools_facts *f, FILE *out)
{
	if (!f->n_params)
		return;
	head(out, "Settings in force");
	for (unsigned i = 0; i < f->n_params; i++) {
		const struct wf_tools_param *p = &f->params[i];

		/* Those that somebody has set stand out. */
		fprintf(out, "%c%c  %s = %s (%s",
			WF_TOOLS_WRAP_STYLED(strcmp(p->source, "default") ?
						     WF_TOOLS_STRONG :
						     WF_TOOLS_NORMAL),
			p->name, p->value, p->source);
		if (strcmp(p->source, "default"))
			fprintf(out, "; default: %s", p->fallback);
		fputs(")\n", out);
		if (*p->note)
			fprintf(out, "      %c%s: %s\n", WF_TOOLS_WRAP_MARK,
				p->given, p->note);
		fprintf(out, "      %c%s\n", WF_TOOLS_WRAP_MARK, p->help);
		if (p->why)
			fprintf(out, "      %cbecause: %s\n",
				WF_TOOLS_WRAP_MARK, p->why);
	}
	fputc('\n', out);
}

static void say_drivers(const struct wf_tools_facts *f, FILE *out)
{
	head(out, "Compression drivers");
	for (unsigned i = 0; i < f->n_drivers; i++) {
		const struct wf_tools_driver *d = &f->drivers[i];

		fprintf(out, "  %s (%s)%s%s\n", d->name, d->from,
			*d->about ? ": " : "", d->about);
		if (*d->can)
			say(out, "  can", d->can);
		if (*d->devices)
			say(out, "  devices", d->devices);
		if (*d->first)
			say(out, "  first for", d->first);
		if (*d->why_not)
			say(out, d->absent ? "  not used" : "  not first",
			    d->why_not);
	}
	say(out, "plug-ins", f->driver_folder);
	fputc('\n', out);
}

static void say_node(const struct wf_tools_facts *f, FILE *out)
{
	const struct wf_tools_node *node = &f->node;
	char text[512];

	head(out, "Machine");
	snprintf(text, sizeof(text), "%s, %s%s%s", node->machine.cpu,
		 node->machine.kernel,
		 *node->machine.virtual_on ? ", virtual: " : "",
		 node->machine.virtual_on);
	say(out, "processor", text);
	snprintf(text, sizeof(text),
		 "%u of %u may be used: %s; %u NUMA node%s, %u group%s with a "
		 "last-level cache of %s own",
		 node->cpus_allowed, node->machine.n_cpus, node->cpus,
		 node->numa_nodes, node->numa_nodes == 1 ? "" : "s",
		 node->caches, node->caches == 1 ? "" : "s",
		 node->caches == 1 ? "its" : "their");
	say(out, "CPUs", text);
	say(out, "membarrier",
	    node->membarrier ?
		    "yes: going to sleep costs peers nothing" :
		    "no: an endpoint that goes to sleep waits 100 us longer "
		    "(kernel 4.16 or later has it; a seccomp filter may hide "
		    "it)");
	say(out, "memfd",
	    node->memfd ? "yes, with seals" :
			  "NO: rings cannot be made (memfd_create, seals)");
	snprintf(text, sizeof(text), "%s%s%s%u, %lu open files", node->user,
		 *node->user ? ", " : "", "user ", node->uid, node->files);
	say(out, "user", text);
}

static void say_all(const struct wf_tools_facts *facts, FILE *out)
{
	say_problems(facts, out);
	say_provider(facts, out);
	say_cma(facts, out);
	say_ways(facts, out);
	say_net(facts, out);
	say_params(facts, out);
	say_drivers(facts, out);
	say_node(facts, out);
}

/* Prints @part, as wide as the terminal if the output is one. Returns how many
 * lines that are. */
static size_t
say_wrapped(const struct wf_tools_facts *facts,
	    void (*part)(const struct wf_tools_facts *f, FILE *out), FILE *out)
{
	size_t columns = wf_tools_wrap_columns(out), len, lines = 0;
	struct wf_tools_paint paint;
	char *text = NULL;
	FILE *memory = open_memstream(&text, &len);

	if (!memory)
		return 0;
	part(facts, memory);
	fclose(memory);
	wf_tools_paint_open(&paint, columns);
	if (text)
		lines = wf_tools_wrap(text, columns < WIDTH ? columns : WIDTH,
				      &paint, out);
	free(text);
	return lines;
}

void wf_tools_report_text(const struct wf_tools_facts *facts, FILE *out)
{
	size_t lines = say_wrapped(facts, say_all, out);
	size_t height = wf_tools_wrap_lines(out);

	/* The first lines have left the screen: show problems once more. */
	if (facts->n_problems && height && lines >= height) {
		fputc('\n', out);
		say_wrapped(facts, say_problems, out);
	}
}
