/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hints of fi_getinfo(), one by one: which are refused with FI_ENODATA, and
 * which are fulfilled and returned.
 */
#include "prov_info_check.h"

struct hint_case {
	const char *name;
	void (*set)(struct fi_info *hints);
	bool (*good)(const struct fi_info *info); /* NULL: must be refused */
};

/* Hints that must be refused. */
static void type_msg(struct fi_info *h)
{
	h->ep_attr->type = FI_EP_MSG;
}
static void type_dgram(struct fi_info *h)
{
	h->ep_attr->type = FI_EP_DGRAM;
}
static void caps_multicast(struct fi_info *h)
{
	h->caps = FI_MSG | FI_MULTICAST;
}
static void caps_collective(struct fi_info *h)
{
	h->caps = FI_COLLECTIVE;
}
static void caps_hmem(struct fi_info *h)
{
	h->caps = FI_MSG | FI_HMEM;
}
/* FI_HMEM_HOST_ALLOC's bit; 2.x uses it for tagged directed receives. */
static void caps_bit45(struct fi_info *h)
{
	h->caps = FI_TAGGED | 1ULL << 45;
}
static void format_str(struct fi_info *h)
{
	h->addr_format = FI_ADDR_STR;
}
static void format_ib(struct fi_info *h)
{
	h->addr_format = FI_SOCKADDR_IB;
}
static void fabric_name(struct fi_info *h)
{
	h->fabric_attr->name = strdup("192.0.2.0/24");
}
static void prov_version(struct fi_info *h)
{
	h->fabric_attr->prov_version = FI_VERSION(99, 0);
}
static void domain_name(struct fi_info *h)
{
	h->domain_attr->name = strdup("invalid_domain");
}
static void progress_bad(struct fi_info *h)
{
	h->domain_attr->data_progress = (enum fi_progress)99;
}
static void threading_bad(struct fi_info *h)
{
	h->domain_attr->threading = (enum fi_threading)99;
}
static void av_type_bad(struct fi_info *h)
{
	h->domain_attr->av_type = (enum fi_av_type)99;
}
static void cq_data_large(struct fi_info *h)
{
	h->domain_attr->cq_data_size = 9;
}
static void mr_mode_mixed(struct fi_info *h)
{
	h->domain_attr->mr_mode = FI_MR_BASIC | FI_MR_LOCAL;
}
static void domain_caps(struct fi_info *h)
{
	h->domain_attr->caps = FI_HMEM;
}
static void protocol(struct fi_info *h)
{
	h->ep_attr->protocol = FI_PROTO_UDP;
}
static void msg_size(struct fi_info *h)
{
	h->ep_attr->max_msg_size = ((size_t)1 << 40) + 1;
}
static void tx_contexts(struct fi_info *h)
{
	h->ep_attr->tx_ctx_cnt = 2;
}
static void rx_shared(struct fi_info *h)
{
	h->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
}
static void auth_key(struct fi_info *h)
{
	/* libfabric copies the key, so the hint must contain one. */
	h->ep_attr->auth_key = calloc(1, 8);
	h->ep_attr->auth_key_size = 8;
}
static void tx_order(struct fi_info *h)
{
	h->tx_attr->msg_order = FI_ORDER_STRICT;
}
static void rx_order(struct fi_info *h)
{
	h->rx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_DATA;
}
static void tx_comp_order(struct fi_info *h)
{
	h->tx_attr->comp_order = FI_ORDER_STRICT;
}
static void tx_flags(struct fi_info *h)
{
	h->tx_attr->op_flags = FI_COMMIT_COMPLETE;
}
static void tx_inject(struct fi_info *h)
{
	h->tx_attr->inject_size = 4097;
}
static void tx_size(struct fi_info *h)
{
	h->tx_attr->size = 65537;
}
static void rx_size(struct fi_info *h)
{
	h->rx_attr->size = 65537;
}
static void tx_iov(struct fi_info *h)
{
	h->tx_attr->iov_limit = 5;
}
static void rx_iov(struct fi_info *h)
{
	h->rx_attr->iov_limit = 5;
}
static void src_short(struct fi_info *h)
{
	h->src_addr = calloc(1, 4);
	h->src_addrlen = 4;
}
static void src_elsewhere(struct fi_info *h)
{
	put_src(h, NODE_ONLY_DOCUMENTED, 0);
}
static void src_other_family(struct fi_info *h)
{
	put_src(h, "127.0.0.1", 0);
	h->addr_format = FI_SOCKADDR_IN6;
}
static void src_other_domain(struct fi_info *h)
{
	put_src(h, "127.0.0.1", 0);
	h->domain_attr->name = strdup("invalid_domain");
}

/* Hints that must be fulfilled, and what must be returned. */
static void caps_tagged(struct fi_info *h)
{
	h->caps = FI_TAGGED;
}
static bool only_tagged(const struct fi_info *i)
{
	return i->caps & FI_TAGGED && !(i->caps & FI_MSG) &&
	       i->caps & FI_SEND && i->caps & FI_RECV &&
	       !(i->caps & FI_DIRECTED_RECV) && !(i->caps & FI_SOURCE) &&
	       !(i->tx_attr->caps & FI_MSG) && !(i->rx_attr->caps & FI_MSG);
}
static void caps_send(struct fi_info *h)
{
	h->caps = FI_MSG | FI_SEND;
}
static bool only_send(const struct fi_info *i)
{
	return i->caps & FI_SEND && !(i->caps & FI_RECV) &&
	       !(i->rx_attr->caps & FI_RECV);
}
/* As Open MPI 4.1's mtl/ofi asks. */
/* Returned when requested, without removing anything else. */
static void shared_av(struct fi_info *h)
{
	h->caps = FI_MSG | FI_SHARED_AV;
	h->domain_attr->caps = FI_SHARED_AV;
}
static bool shared_av_ok(const struct fi_info *info)
{
	return info->caps & FI_SHARED_AV && info->caps & FI_LOCAL_COMM &&
	       info->caps & FI_REMOTE_COMM &&
	       info->domain_attr->caps & FI_SHARED_AV;
}
static void open_mpi(struct fi_info *h)
{
	h->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->tx_attr->msg_order = FI_ORDER_SAS;
	h->rx_attr->msg_order = FI_ORDER_SAS;
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->av_type = FI_AV_MAP;
	h->domain_attr->cq_data_size = 4;
}
static bool open_mpi_ok(const struct fi_info *i)
{
	uint64_t caps =
		FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;

	return (i->caps & caps) == caps && !(i->caps & FI_MSG) &&
	       i->domain_attr->threading == FI_THREAD_DOMAIN &&
	       i->domain_attr->control_progress == FI_PROGRESS_MANUAL &&
	       i->domain_attr->av_type == FI_AV_MAP && !i->mode;
}
static void models(struct fi_info *h)
{
	h->domain_attr->threading = FI_THREAD_COMPLETION;
	h->domain_attr->control_progress = FI_PROGRESS_AUTO;
	h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->av_type = FI_AV_TABLE;
	h->ep_attr->mem_tag_format = 0x00ff00ff;
}
static bool models_ok(const struct fi_info *i)
{
	return i->domain_attr->threading == FI_THREAD_COMPLETION &&
	       i->domain_attr->control_progress == FI_PROGRESS_AUTO &&
	       i->domain_attr->av_type == FI_AV_TABLE &&
	       i->ep_attr->mem_tag_format == 0x00ff00ff;
}
static void automatic(struct fi_info *h)
{
	h->domain_attr->data_progress = FI_PROGRESS_AUTO;
}
static bool automatic_ok(const struct fi_info *i)
{
	return i->domain_attr->data_progress == FI_PROGRESS_AUTO;
}
static void sizes(struct fi_info *h)
{
	h->tx_attr->size = 2000;
	h->rx_attr->size = 65536;
	h->tx_attr->inject_size = 100;
	h->tx_attr->iov_limit = 2;
	h->tx_attr->op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
	h->rx_attr->op_flags = FI_MULTI_RECV;
}
static bool sizes_ok(const struct fi_info *i)
{
	return i->tx_attr->size == 2048 && i->rx_attr->size == 65536 &&
	       i->tx_attr->inject_size == 100 && i->tx_attr->iov_limit == 2 &&
	       i->tx_attr->op_flags == (FI_DELIVERY_COMPLETE | FI_COMPLETION) &&
	       i->rx_attr->op_flags == FI_MULTI_RECV;
}
static void mr_any(struct fi_info *h)
{
	h->domain_attr->mr_mode = ~(FI_MR_BASIC | FI_MR_SCALABLE);
	h->mode = ~0ull;
}
/* Virtual addresses and provider keys for applications that support them, and
 * nothing else. */
static bool mr_any_ok(const struct fi_info *i)
{
	return i->domain_attr->mr_mode ==
		       (FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED) &&
	       !i->mode;
}
static bool rx_shared_ok(const struct fi_info *i)
{
	return i->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
}
static void mr_basic(struct fi_info *h)
{
	h->domain_attr->mr_mode = FI_MR_BASIC;
}
static bool mr_basic_ok(const struct fi_info *i)
{
	return i->domain_attr->mr_mode == FI_MR_BASIC;
}
static void format_any(struct fi_info *h)
{
	h->addr_format = FI_SOCKADDR;
}
static bool any_info(const struct fi_info *i)
{
	return i->src_addr;
}
static void format_in(struct fi_info *h)
{
	h->addr_format = FI_SOCKADDR_IN;
}
static bool format_in_ok(const struct fi_info *i)
{
	return i->addr_format == FI_SOCKADDR_IN;
}
static void type_any(struct fi_info *h)
{
	h->ep_attr->type = FI_EP_UNSPEC;
}
static void src_any(struct fi_info *h)
{
	/* No port: libfabric's ofi_rxm, which is asked first, writes port 0
	 * into hints that hold the wildcard (rxm_getinfo, 1.17 and 2.6). */
	put_src(h, "0.0.0.0", 0);
}
static bool src_any_ok(const struct fi_info *i)
{
	return is_addr(i->src_addr, "0.0.0.0", 0);
}
static void domain_lo(struct fi_info *h)
{
	h->domain_attr->name = strdup("lo");
}

#define NO(fn)                                                                 \
	{                                                                      \
		.name = #fn, .set = fn                                         \
	}
static const struct hint_case cases[] = {
	NO(type_msg),
	NO(type_dgram),
	NO(caps_multicast),
	NO(caps_collective),
	NO(caps_hmem),
	NO(caps_bit45),
	NO(format_str),
	NO(format_ib),
	NO(fabric_name),
	NO(prov_version),
	NO(domain_name),
	NO(progress_bad),
	NO(threading_bad),
	NO(av_type_bad),
	NO(cq_data_large),
	NO(mr_mode_mixed),
	NO(domain_caps),
	NO(protocol),
	NO(msg_size),
	NO(tx_contexts),
	{ "rx_shared", rx_shared, rx_shared_ok },
	NO(auth_key),
	NO(tx_order),
	NO(rx_order),
	NO(tx_comp_order),
	NO(tx_flags),
	NO(tx_inject),
	NO(tx_size),
	NO(rx_size),
	NO(tx_iov),
	NO(rx_iov),
	NO(src_short),
	NO(src_elsewhere),
	NO(src_other_family),
	NO(src_other_domain),
	{ "caps_tagged", caps_tagged, only_tagged },
	{ "caps_send", caps_send, only_send },
	{ "shared_av", shared_av, shared_av_ok },
	{ "open_mpi", open_mpi, open_mpi_ok },
	{ "models", models, models_ok },
	{ "automatic", automatic, automatic_ok },
	{ "sizes", sizes, sizes_ok },
	{ "mr_any", mr_any, mr_any_ok },
	{ "mr_basic", mr_basic, mr_basic_ok },
	{ "format_any", format_any, any_info },
	{ "format_in", format_in, format_in_ok },
	{ "type_any", type_any, any_info },
	{ "src_any", src_any, src_any_ok },
	{ "domain_lo", domain_lo, domain_lo_ok },
};

static void test_hints(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fi_info *hints = check_hints(), *list = NULL;
		int ret;

		cases[i].set(hints);
		ret = fi_getinfo(API, NULL, NULL, 0, hints, &list);
		CHECK(ret == (cases[i].good ? 0 : -FI_ENODATA), "%s: %s",
		      cases[i].name, fi_strerror(-ret));
		for (struct fi_info *info = list; info; info = info->next)
			CHECK(cases[i].good && cases[i].good(info), "%s",
			      cases[i].name);
		/* A result of fi_getinfo() must be accepted as a hint. */
		if (list) {
			fi_freeinfo(get_info(API, NULL, NULL, 0, list, 0));
			fi_freeinfo(list);
		}
		fi_freeinfo(hints);
	}
}

int main(void)
{
	check_only_weft();
	test_hints();
	return check_result();
}
