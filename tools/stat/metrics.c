/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of counters as OpenMetrics wants them: families with a type and a unit,
 * whose samples stand together and differ in labels. The names are an
 * interface: they may grow, not change. A counter that has no place here (its
 * owner is of a newer build) appears under weft_other.
 */
#include "tools/stat/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NET(name) WF_TOOLS_PACKETS name
#define MEMBERS_MAX 20

enum type { COUNTER, GAUGE };

struct member {
	const char *counter;
	const char *labels; /* besides those of the owner; "": none */
	double scale;	    /* 0: 1 */
};

struct family {
	const char *name; /* without _total */
	enum type type;
	const char *unit; /* NULL: none; the name ends with it */
	const char *help;
	struct member members[MEMBERS_MAX];
};

#define SHM "transport=\"shm\""
#define PKT "transport=\"packets\""
#define OUT "direction=\"out\""
#define IN "direction=\"in\""
#define PATH(name) "path=\"" name "\""

static const struct family families[] = {
	{ "weft_messages",
	  COUNTER,
	  NULL,
	  "Messages sent and received, by the path that they took.",
	  { { "sent_inline", SHM "," OUT "," PATH("inline"), 0 },
	    { "sent_eager", SHM "," OUT "," PATH("eager"), 0 },
	    { "sent_chunked", SHM "," OUT "," PATH("chunked"), 0 },
	    { "sent_parked", SHM "," OUT "," PATH("parked"), 0 },
	    { "received_inline", SHM "," IN "," PATH("inline"), 0 },
	    { "received_eager", SHM "," IN "," PATH("eager"), 0 },
	    { "received_chunked", SHM "," IN "," PATH("chunked"), 0 },
	    { "pulled_cma", SHM "," IN "," PATH("cma"), 0 },
	    { "pulled_shared", SHM "," IN "," PATH("shared"), 0 },
	    { "pulled_stream", SHM "," IN "," PATH("stream"), 0 },
	    { "pulled_self", SHM "," IN "," PATH("self"), 0 },
	    { NET("sent_eager"), PKT "," OUT "," PATH("eager"), 0 },
	    { NET("sent_medium"), PKT "," OUT "," PATH("medium"), 0 },
	    { NET("sent_runtread"), PKT "," OUT "," PATH("runtread"), 0 },
	    { NET("sent_longread"), PKT "," OUT "," PATH("longread"), 0 },
	    { NET("sent_longcts"), PKT "," OUT "," PATH("longcts"), 0 },
	    { NET("received"), PKT "," IN "," PATH("all"), 0 } } },
	{ "weft_message_bytes",
	  COUNTER,
	  "bytes",
	  "Bytes of messages sent and received, by path.",
	  { { "sent_inline_bytes", SHM "," OUT "," PATH("inline"), 0 },
	    { "sent_eager_bytes", SHM "," OUT "," PATH("eager"), 0 },
	    { "sent_chunked_bytes", SHM "," OUT "," PATH("chunked"), 0 },
	    { "sent_parked_bytes", SHM "," OUT "," PATH("parked"), 0 },
	    { "received_inline_bytes", SHM "," IN "," PATH("inline"), 0 },
	    { "received_eager_bytes", SHM "," IN "," PATH("eager"), 0 },
	    { "received_chunked_bytes", SHM "," IN "," PATH("chunked"), 0 },
	    { "pulled_cma_bytes", SHM "," IN "," PATH("cma"), 0 },
	    { "pulled_shared_bytes", SHM "," IN "," PATH("shared"), 0 },
	    { "pulled_stream_bytes", SHM "," IN "," PATH("stream"), 0 },
	    { "pulled_self_bytes", SHM "," IN "," PATH("self"), 0 },
	    { NET("sent_eager_bytes"), PKT "," OUT "," PATH("eager"), 0 },
	    { NET("sent_medium_bytes"), PKT "," OUT "," PATH("medium"), 0 },
	    { NET("sent_runtread_bytes"), PKT "," OUT "," PATH("runtread"), 0 },
	    { NET("sent_longread_bytes"), PKT "," OUT "," PATH("longread"), 0 },
	    { NET("sent_longcts_bytes"), PKT "," OUT "," PATH("longcts"), 0 },
	    { NET("received_bytes"), PKT "," IN "," PATH("all"), 0 } } },
	{ "weft_parked_stream_messages",
	  COUNTER,
	  NULL,
	  "Parked messages that the receiver asked for through the ring.",
	  { { "sent_stream", "", 0 } } },
	{ "weft_parked_stream_bytes",
	  COUNTER,
	  "bytes",
	  "Bytes of parked messages that went through the ring.",
	  { { "sent_stream_bytes", "", 0 } } },
#define WRITE "operation=\"write\""
#define READ "operation=\"read\""
	{ "weft_rma_operations",
	  COUNTER,
	  NULL,
	  "Writes and reads of remote memory that the endpoint started.",
	  { { "rma_writes", SHM "," WRITE "," PATH("cma"), 0 },
	    { "rma_reads", SHM "," READ "," PATH("cma"), 0 },
	    { "ring_writes", SHM "," WRITE "," PATH("ring"), 0 },
	    { "ring_reads", SHM "," READ "," PATH("ring"), 0 },
	    { NET("direct_writes"), PKT "," WRITE "," PATH("direct"), 0 },
	    { NET("eager_writes"), PKT "," WRITE "," PATH("eager"), 0 },
	    { NET("longread_writes"), PKT "," WRITE "," PATH("longread"), 0 },
	    { NET("longcts_writes"), PKT "," WRITE "," PATH("longcts"), 0 },
	    { NET("direct_reads"), PKT "," READ "," PATH("direct"), 0 },
	    { NET("short_reads"), PKT "," READ "," PATH("short"), 0 },
	    { NET("longcts_reads"), PKT "," READ "," PATH("longcts"), 0 } } },
	{ "weft_rma_bytes",
	  COUNTER,
	  "bytes",
	  "Bytes of writes and reads of remote memory.",
	  { { "rma_write_bytes", SHM "," WRITE "," PATH("cma"), 0 },
	    { "rma_read_bytes", SHM "," READ "," PATH("cma"), 0 },
	    { "ring_write_bytes", SHM "," WRITE "," PATH("ring"), 0 },
	    { "ring_read_bytes", SHM "," READ "," PATH("ring"), 0 },
	    { NET("direct_write_bytes"), PKT "," WRITE "," PATH("direct"), 0 },
	    { NET("eager_write_bytes"), PKT "," WRITE "," PATH("eager"), 0 },
	    { NET("longread_write_bytes"), PKT "," WRITE "," PATH("longread"),
	      0 },
	    { NET("longcts_write_bytes"), PKT "," WRITE "," PATH("longcts"),
	      0 },
	    { NET("direct_read_bytes"), PKT "," READ "," PATH("direct"), 0 },
	    { NET("short_read_bytes"), PKT "," READ "," PATH("short"), 0 },
	    { NET("longcts_read_bytes"), PKT "," READ "," PATH("longcts"),
	      0 } } },
	{ "weft_atomic_operations",
	  COUNTER,
	  NULL,
	  "Atomic operations that the endpoint started.",
	  { { "atomics", SHM ",operation=\"any\"", 0 },
	    { NET("write_atomics"), PKT ",operation=\"write\"", 0 },
	    { NET("fetch_atomics"), PKT ",operation=\"fetch\"", 0 },
	    { NET("compare_atomics"), PKT ",operation=\"compare\"", 0 } } },
	{ "weft_atomic_bytes",
	  COUNTER,
	  "bytes",
	  "Bytes of atomic operations.",
	  { { NET("write_atomic_bytes"), PKT ",operation=\"write\"", 0 },
	    { NET("fetch_atomic_bytes"), PKT ",operation=\"fetch\"", 0 },
	    { NET("compare_atomic_bytes"), PKT ",operation=\"compare\"",
	      0 } } },
	{ "weft_served_operations",
	  COUNTER,
	  NULL,
	  "Pieces of writes, reads and atomic operations done for peers.",
	  { { "served", SHM, 0 }, { NET("served"), PKT, 0 } } },
	{ "weft_keys_rejected",
	  COUNTER,
	  NULL,
	  "Operations on remote memory with a wrong key.",
	  { { "keys_rejected", SHM, 0 }, { NET("keys_rejected"), PKT, 0 } } },
	{ "weft_peers",
	  GAUGE,
	  NULL,
	  "Connected peers.",
	  { { "peers_out", SHM "," OUT, 0 },
	    { "peers_in", SHM "," IN, 0 },
	    { NET("peers"), PKT ",direction=\"both\"", 0 } } },
	{ "weft_letters",
	  COUNTER,
	  NULL,
	  "First messages that went without a ring; also inline messages.",
	  { { "letters_out", SHM "," OUT, 0 },
	    { "letters_in", SHM "," IN, 0 } } },
	{ "weft_unanswered_peers",
	  GAUGE,
	  NULL,
	  "Peers that have not answered so far.",
	  { { "unanswered", SHM, 0 }, { NET("unanswered"), PKT, 0 } } },
	{ "weft_peers_lost",
	  COUNTER,
	  NULL,
	  "Peers that went away.",
	  { { "peers_lost", SHM, 0 }, { NET("peers_lost"), PKT, 0 } } },
	{ "weft_peers_forgotten",
	  COUNTER,
	  NULL,
	  "Idle peers whose state was freed.",
	  { { NET("peers_released"), PKT, 0 } } },
	{ "weft_unexpected_messages",
	  GAUGE,
	  NULL,
	  "Messages that wait for a receive.",
	  { { "unexpected", SHM, 0 }, { NET("unexpected"), PKT, 0 } } },
	{ "weft_unexpected_messages_max",
	  GAUGE,
	  NULL,
	  "The most messages of one kind that waited for a receive.",
	  { { "unexpected_max", "", 0 } } },
	{ "weft_pending_operations",
	  GAUGE,
	  NULL,
	  "Operations that wait for room or for a peer.",
	  { { "pending", SHM, 0 }, { NET("pending"), PKT, 0 } } },
	{ "weft_sleeps",
	  COUNTER,
	  NULL,
	  "Times that the endpoint went to sleep.",
	  { { "sleeps", "", 0 } } },
	{ "weft_wakes",
	  COUNTER,
	  NULL,
	  "Times that the endpoint woke a peer.",
	  { { "wakes", "", 0 } } },
	{ "weft_bells",
	  COUNTER,
	  NULL,
	  "Bells of peers that were answered.",
	  { { "bells", "", 0 } } },
	{ "weft_slots",
	  COUNTER,
	  NULL,
	  "Slots of rings written and read.",
	  { { "slots_out", OUT, 0 }, { "slots_in", IN, 0 } } },
	{ "weft_cma_refused",
	  COUNTER,
	  NULL,
	  "Channels on which the kernel refused to copy between processes.",
	  { { "cma_refused", "", 0 } } },
	{ "weft_protocol_errors",
	  COUNTER,
	  NULL,
	  "Channels that were closed because a peer broke the rules.",
	  { { "protocol_errors", "", 0 } } },
	{ "weft_packets",
	  COUNTER,
	  NULL,
	  "Packets sent and received, of all kinds.",
	  { { NET("packets_out"), OUT, 0 }, { NET("packets_in"), IN, 0 } } },
	{ "weft_packet_bytes",
	  COUNTER,
	  "bytes",
	  "Bytes of packets, with headers and what was sent again.",
	  { { NET("wire_out_bytes"), OUT, 0 },
	    { NET("wire_in_bytes"), IN, 0 } } },
	{ "weft_tls_connections",
	  COUNTER,
	  NULL,
	  "Encrypted connections, and those refused for their key.",
	  { { NET("tls_connections"), "result=\"accepted\"", 0 },
	    { NET("tls_refused"), "result=\"refused\"", 0 } } },
	{ "weft_packet_system_calls",
	  COUNTER,
	  NULL,
	  "System calls that sent and received packets.",
	  { { NET("send_calls"), OUT, 0 }, { NET("receive_calls"), IN, 0 } } },
	{ "weft_packet_retransmits",
	  COUNTER,
	  NULL,
	  "Packets that were sent again.",
	  { { NET("retransmits"), "", 0 } } },
	{ "weft_packet_losses",
	  COUNTER,
	  NULL,
	  "Packets that were taken for lost.",
	  { { NET("losses"), "", 0 } } },
	{ "weft_packet_duplicates",
	  COUNTER,
	  NULL,
	  "Packets that came twice.",
	  { { NET("duplicates"), "", 0 } } },
	{ "weft_packets_reordered",
	  COUNTER,
	  NULL,
	  "Packets that came before their turn.",
	  { { NET("reordered"), "", 0 } } },
	{ "weft_packets_reordered_depth_max",
	  GAUGE,
	  NULL,
	  "The most packets of one peer that waited for their turn.",
	  { { NET("reorder_depth"), "", 0 } } },
	{ "weft_packets_rejected",
	  COUNTER,
	  NULL,
	  "Packets that were dropped.",
	  { { NET("stale_packets"), "reason=\"stale\"", 0 },
	    { NET("bad_packets"), "reason=\"malformed\"", 0 },
	    { NET("damaged"), "reason=\"damaged\"", 0 },
	    { NET("overflows"), "reason=\"overflow\"", 0 } } },
	{ "weft_stale_completions",
	  COUNTER,
	  NULL,
	  "Completions of the device for peers that were gone.",
	  { { NET("stale_completions"), "", 0 } } },
	{ "weft_receiver_not_ready",
	  COUNTER,
	  NULL,
	  "Packets refused for want of a receive buffer.",
	  { { NET("rnr_sent"), OUT, 0 }, { NET("rnr_received"), IN, 0 } } },
	{ "weft_read_nacks",
	  COUNTER,
	  NULL,
	  "Messages that could not be read from the sender's memory.",
	  { { NET("read_nacks"), "", 0 } } },
	{ "weft_handshakes",
	  COUNTER,
	  NULL,
	  "Handshakes of peers.",
	  { { NET("handshakes"), "", 0 } } },
	{ "weft_round_trip_seconds",
	  GAUGE,
	  "seconds",
	  "Smoothed round trip of the last peer heard by packets.",
	  { { NET("rtt_ns"), "", 1e-9 } } },
	{ "weft_congestion_window_bytes",
	  GAUGE,
	  "bytes",
	  "Bytes that may be in flight to the last peer heard by packets.",
	  { { NET("cwnd_bytes"), "", 0 } } },
};

/* Counters that devices, users and drivers have in common. */
#define JOB_FAMILIES(owner)                                                    \
	{ owner "_channels",                                                   \
	  GAUGE,                                                               \
	  NULL,                                                                \
	  "Open channels.",                                                    \
	  { { "channels", "", 0 } } },                                         \
		{ owner "_jobs_waiting",                                       \
		  GAUGE,                                                       \
		  NULL,                                                        \
		  "Jobs that are not done yet.",                               \
		  { { "waiting", "", 0 } } },                                  \
		{ owner "_jobs",                                               \
		  COUNTER,                                                     \
		  NULL,                                                        \
		  "Jobs done.",                                                \
		  { { "jobs", "", 0 } } },                                     \
		{ owner "_jobs_failed",                                        \
		  COUNTER,                                                     \
		  NULL,                                                        \
		  "Jobs done with an error.",                                  \
		  { { "failed", "", 0 } } },                                   \
		{ owner "_job_bytes",                                          \
		  COUNTER,                                                     \
		  "bytes",                                                     \
		  "Bytes that jobs took (in) and made (out).",                 \
		  { { "bytes_in", IN, 0 }, { "bytes_out", OUT, 0 } } },        \
	{                                                                      \
		owner "_copied_bytes", COUNTER, "bytes",                       \
			"Bytes copied besides the work itself.",               \
		{                                                              \
			{                                                      \
				"copied_bytes", "", 0                          \
			}                                                      \
		}                                                              \
	}

/* And those of `weft devd` alone, for a device or a user. */
#define DEVD_FAMILIES(owner)                                                             \
	JOB_FAMILIES(owner),                                                             \
		{ owner "_channels_opened",                                              \
		  COUNTER,                                                               \
		  NULL,                                                                  \
		  "Channels that were opened.",                                          \
		  { { "opened", "", 0 } } },                                             \
		{ owner "_channels_refused",                                             \
		  COUNTER,                                                               \
		  NULL,                                                                  \
		  "Channels that were asked for and not given.",                         \
		  { { "turned_away", "", 0 } } },                                        \
		{ owner "_memory_bytes",                                                 \
		  GAUGE,                                                                 \
		  "bytes",                                                               \
		  "Reserved memory of the channels.",                                    \
		  { { "memory", "", 0 } } },                                             \
		{ owner "_quota_waits",                                                  \
		  COUNTER,                                                               \
		  NULL,                                                                  \
		  "Times that jobs had to wait for the quota of their user.",            \
		  { { "held_back", "", 0 } } },                                          \
		{ owner "_interrupts",                                                   \
		  COUNTER,                                                               \
		  NULL,                                                                  \
		  "Interrupts.",                                                         \
		  { { "interrupts", "", 0 } } },                                         \
	{                                                                                \
		owner "_channels_failed", COUNTER, NULL,                                 \
			"Channels that were closed because their user broke the rules.", \
		{                                                                        \
			{                                                                \
				"faults", "", 0                                          \
			}                                                                \
		}                                                                        \
	}

static const struct family device_families[] = {
	DEVD_FAMILIES("weft_device"),
};
static const struct family user_families[] = {
	DEVD_FAMILIES("weft_user"),
};
static const struct family driver_families[] = {
	JOB_FAMILIES("weft_driver"),
	{ "weft_driver_jobs_handed_on",
	  COUNTER,
	  NULL,
	  "Jobs that the next driver had to do.",
	  { { "handed_on", "", 0 } } },
	{ "weft_driver_busy",
	  COUNTER,
	  NULL,
	  "Jobs that found a channel of the driver full.",
	  { { "busy", "", 0 } } },
	{ "weft_driver_jobs_passed_over",
	  COUNTER,
	  NULL,
	  "Jobs that were expected to end sooner with another driver.",
	  { { "passed_over", "", 0 } } },
};

/* The table lists the metrics of each kind of page. */
static const struct {
	const struct family *all;
	size_t count;
	const char *label; /* what the page's name is called */
} kinds[WF_TOOLS_KINDS] = {
#define KIND(families, label)                                                  \
	{                                                                      \
		families, sizeof(families) / sizeof(families[0]), label        \
	}
	[WF_TOOLS_ENDPOINT] = KIND(families, "address"),
	[WF_TOOLS_DEVICE] = KIND(device_families, "device"),
	[WF_TOOLS_USER] = KIND(user_families, "user"),
	[WF_TOOLS_DRIVER] = KIND(driver_families, "driver"),
#undef KIND
};

/* -- writing --------------------------------------------------------------- */

/* Without a type it is unknown. That type has another name in the older text
 * format of Prometheus, and the type info has none: with neither of them its
 * readers understand this as well. */
static void write_head(FILE *out, const char *name, const char *type,
		       const char *unit, const char *help)
{
	if (type)
		fprintf(out, "# TYPE %s %s\n", name, type);
	if (unit)
		fprintf(out, "# UNIT %s %s\n", name, unit);
	fprintf(out, "# HELP %s %s\n", name, help);
}

static void write_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, ",%s=\"", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			fputc('\\', out);
		fputc(*value, out);
	}
	fputc('"', out);
}

/* Writes the labels that say whose sample it is. */
static void write_owner(FILE *out, const struct wf_tools_endpoint *ep)
{
	fprintf(out, "pid=\"%d\"", (int)ep->pid);
	write_label(out, "command", ep->command);
	write_label(out, kinds[wf_tools_scan_kind(ep)].label, ep->page.name);
	if (ep->job.rank >= 0)
		fprintf(out, ",rank=\"%d\"", ep->job.rank);
	if (ep->job.id[0])
		write_label(out, "job_id", ep->job.id);
}

static void write_sample(FILE *out, const struct family *family,
			 const struct member *member, uint64_t value,
			 const struct wf_tools_endpoint *ep)
{
	fprintf(out, "%s%s{", family->name,
		family->type == COUNTER ? "_total" : "");
	write_owner(out, ep);
	fprintf(out, "%s%s} ", member->labels[0] ? "," : "", member->labels);
	if (member->scale > 0)
		fprintf(out, "%.9f\n", (double)value * member->scale);
	else
		fprintf(out, "%llu\n", (unsigned long long)value);
}

/* Those whose samples are written. */
struct owners {
	const struct wf_tools_endpoint **all;
	size_t count;
};

/* Samples must differ: an endpoint with the labels of another is left out. */
static bool is_new(const struct owners *owners,
		   const struct wf_tools_endpoint *ep)
{
	for (size_t i = 0; i < owners->count; i++) {
		const struct wf_tools_endpoint *other = owners->all[i];

		if (other->pid == ep->pid &&
		    wf_tools_scan_kind(other) == wf_tools_scan_kind(ep) &&
		    !strcmp(other->page.name, ep->page.name))
			return false;
	}
	return true;
}

static void write_family(const struct owners *owners, enum wf_tools_kind kind,
			 const struct family *family, FILE *out)
{
	static const char *const types[] = {
		[COUNTER] = "counter",
		[GAUGE] = "gauge",
	};

	write_head(out, family->name, types[family->type], family->unit,
		   family->help);
	for (size_t i = 0; i < owners->count; i++) {
		const struct wf_tools_endpoint *ep = owners->all[i];

		if (wf_tools_scan_kind(ep) != kind)
			continue;
		for (int m = 0; m < MEMBERS_MAX && family->members[m].counter;
		     m++) {
			const struct member *member = &family->members[m];
			const uint64_t *value =
				wf_tools_scan_counter(ep, member->counter);

			if (value)
				write_sample(out, family, member, *value, ep);
		}
	}
}

/* -- the rest -------------------------------------------------------------- */

static bool is_known(enum wf_tools_kind kind, const char *name)
{
	const struct family *all = kinds[kind].all;

	for (size_t i = 0; i < kinds[kind].count; i++) {
		for (int m = 0; m < MEMBERS_MAX && all[i].members[m].counter;
		     m++) {
			if (!strcmp(all[i].members[m].counter, name))
				return true;
		}
	}
	return false;
}

static void write_page_others(const struct wf_tools_endpoint *ep,
			      const struct wf_tools_page *page,
			      const char *prefix, FILE *out)
{
	enum wf_tools_kind kind = wf_tools_scan_kind(ep);
	char name[64];

	for (unsigned i = 0; i < page->count; i++) {
		snprintf(name, sizeof(name), "%s%s", prefix,
			 page->counters[i].name);
		if (is_known(kind, name))
			continue;
		fputs("weft_other{", out);
		write_owner(out, ep);
		write_label(out, "counter", name);
		fprintf(out, "} %llu\n",
			(unsigned long long)page->counters[i].value);
	}
}

static void write_others(const struct owners *owners, FILE *out)
{
	write_head(out, "weft_other", NULL, NULL,
		   "Counters that this version of weft stat does not know.");
	for (size_t i = 0; i < owners->count; i++) {
		const struct wf_tools_endpoint *ep = owners->all[i];

		if (strcmp(ep->page.kind, "packets"))
			write_page_others(ep, &ep->page, "", out);
		write_page_others(ep, &ep->packets, WF_TOOLS_PACKETS, out);
	}
}

static void write_starts(const struct owners *owners, FILE *out)
{
	write_head(out, "weft_start_time_seconds", "gauge", "seconds",
		   "When the endpoint or device was opened, since 1970.");
	for (size_t i = 0; i < owners->count; i++) {
		fputs("weft_start_time_seconds{", out);
		write_owner(out, owners->all[i]);
		fprintf(out, "} %llu\n",
			(unsigned long long)owners->all[i]->page.started);
	}
}

/* Writes what a reader must know about the numbers. */
static void write_scan(const struct wf_tools_scan *scan, FILE *out)
{
	const struct {
		const char *name, *help;
		unsigned value;
	} all[] = {
		{ "weft_endpoints_hidden",
		  "Endpoints of other users or containers that are not shown.",
		  scan->elsewhere },
		{ "weft_processes_denied",
		  "Processes that weft stat may not look into.", scan->denied },
		{ "weft_pages_unsound", "Pages of counters that made no sense.",
		  scan->unsound },
	};

	write_head(out, "weft_exporter_info", "gauge", NULL,
		   "The weft stat that wrote this.");
	fprintf(out, "weft_exporter_info{version=\"%s\"} 1\n", WEFT_VERSION);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		write_head(out, all[i].name, "gauge", NULL, all[i].help);
		fprintf(out, "%s %u\n", all[i].name, all[i].value);
	}
}

int wf_tools_metrics_write(const struct wf_tools_scan *scan, FILE *out)
{
	struct owners owners = {
		.all = calloc(scan->count + 1, sizeof(owners.all[0])),
	};

	if (!owners.all)
		return -ENOMEM;
	for (size_t i = 0; i < scan->count; i++) {
		if (is_new(&owners, &scan->endpoints[i]))
			owners.all[owners.count++] = &scan->endpoints[i];
	}
	write_scan(scan, out);
	write_starts(&owners, out);
	for (int kind = 0; kind < WF_TOOLS_KINDS; kind++) {
		for (size_t i = 0; i < kinds[kind].count; i++)
			write_family(&owners, (enum wf_tools_kind)kind,
				     &kinds[kind].all[i], out);
	}
	write_others(&owners, out);
	fputs("# EOF\n", out);
	free(owners.all);
	return 0;
}
