/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft and the efa provider of Debian's libfabric on an EFA device, the one in
 * software: delivery complete, data in completions, remote reads and writes and
 * atomic operations of one on the memory of the other, short, in several packets
 * and long. Everything is checked on both sides. weft is the client and libfabric
 * the server, the reverse, and weft both. The memory is registered and named in the
 * calls (FI_MR_LOCAL).
 */
#include "efa_util.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#define CAPS (FI_TAGGED | FI_RMA | FI_ATOMIC)
#define MODE (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL)
#define ACCESS                                                                 \
	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |             \
	 FI_REMOTE_WRITE)

#define BYTES (1u << 20)
#define WORDS 16u	/* uint64_t, behind BYTES */
#define DATA 0x1234567u /* libfabric's efa has 4 bytes of it */
#define LAST 99u	/* tag of the last message */

/* Messages with delivery complete, and accesses to memory. */
static const size_t sizes[] = { 1, 40, 4000, 30000, 300000, BYTES };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct side {
	struct efa_end efa;
	struct fid_mr *mr;
	struct fi_context2 context;
	fi_addr_t peer;
	bool weft;	 /* or libfabric's */
	uint8_t *memory; /* BYTES and WORDS of it for the peer, and again */
	uint8_t *own;	 /* the second half */
	uint64_t *words; /* of our own */
};

struct target {
	uint64_t addr;
	uint64_t key;
};

static void fill(uint8_t *at, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)(i * 7 + (i >> 8) * 3 + seed);
}

static void check(const uint8_t *at, size_t len, unsigned int seed,
		  const char *what)
{
	for (size_t i = 0; i < len; i++) {
		if (at[i] != (uint8_t)(i * 7 + (i >> 8) * 3 + seed)) {
			fprintf(stderr, "byte %zu of %zu\n", i, len);
			expect(false, what);
		}
	}
}

static bool open_side(struct side *side, const char *provider)
{
	size_t half = BYTES + WORDS * sizeof(uint64_t);

	if (!efa_open(&side->efa, provider, CAPS, MODE))
		return false;
	side->weft = !strcmp(provider, "weft");
	side->memory = aligned_alloc(4096, (2 * half + 4095) & ~4095u);
	expect(side->memory, "no memory");
	memset(side->memory, 0, 2 * half);
	side->own = side->memory + half;
	side->words = (uint64_t *)(void *)(side->own + BYTES);
	must("fi_mr_reg", fi_mr_reg(side->efa.domain, side->memory, 2 * half,
				    ACCESS, 0, 1, 0, &side->mr, NULL));
	return true;
}

/* Repeats a call, and waits for its completion. */
#define DO(side, call)                                                         \
	do {                                                                   \
		struct fi_cq_tagged_entry entry_;                              \
		ssize_t ret_;                                                  \
                                                                               \
		while ((ret_ = (call)) == -FI_EAGAIN)                          \
			fi_cq_read((side)->efa.cq, NULL, 0);                   \
		must(#call, ret_);                                             \
		expect(efa_next(&(side)->efa, &entry_), #call " fails");       \
	} while (0)

static void receive(struct side *side, size_t len, uint64_t tag, uint64_t data)
{
	struct fi_cq_tagged_entry entry;

	memset(side->own, 0, len);
	must("fi_trecv",
	     fi_trecv(side->efa.ep, side->own, len, fi_mr_desc(side->mr),
		      FI_ADDR_UNSPEC, tag, 0, &side->context));
	expect(efa_next(&side->efa, &entry), "a receive fails");
	expect(entry.tag == tag && entry.len == len, "another message");
	/* libfabric 1.17 does not always say that there is data. */
	if ((side->weft && !(entry.flags & FI_REMOTE_CQ_DATA) != !data) ||
	    (data && entry.data != data)) {
		fprintf(stderr, "tag %lu: flags %lx, data %lx\n",
			(unsigned long)tag, (unsigned long)entry.flags,
			(unsigned long)entry.data);
		expect(false, "other data in the completion");
	}
	check(side->own, len, (unsigned int)tag, "bytes of a message");
}

static void deliver(struct side *side, size_t len, uint64_t tag)
{
	void *desc = fi_mr_desc(side->mr);
	struct iovec iov = { side->own, len };
	const struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = side->peer,
		.tag = tag,
		.context = &side->context,
	};

	fill(side->own, len, (unsigned int)tag);
	DO(side, fi_tsendmsg(side->efa.ep, &msg,
			     FI_DELIVERY_COMPLETE | FI_COMPLETION));
}

static void send_data(struct side *side, size_t len, uint64_t tag)
{
	fill(side->own, len, (unsigned int)tag);
	DO(side,
	   fi_tsenddata(side->efa.ep, side->own, len, fi_mr_desc(side->mr),
			DATA, side->peer, tag, &side->context));
}

/* -- the client ------------------------------------------------------------- */

static void write_and_read(struct side *side, const struct target *target)
{
	void *desc = fi_mr_desc(side->mr);

	for (unsigned int i = 0; i < SIZES; i++) {
		fill(side->own, sizes[i], i + 50);
		DO(side,
		   fi_write(side->efa.ep, side->own, sizes[i], desc, side->peer,
			    target->addr, target->key, &side->context));
		memset(side->own, 0, sizes[i]);
		DO(side,
		   fi_read(side->efa.ep, side->own, sizes[i], desc, side->peer,
			   target->addr, target->key, &side->context));
		check(side->own, sizes[i], i + 50, "what was written");
	}
}

/* Word 0 counts, word 1 is compared and set. */
static void count_and_swap(struct side *side, const struct target *target)
{
	uint64_t at = target->addr + BYTES;
	void *desc = fi_mr_desc(side->mr);
	uint64_t *word = side->words;

	for (uint64_t i = 1; i <= 3; i++) {
		word[0] = i;
		DO(side,
		   fi_atomic(side->efa.ep, &word[0], 1, desc, side->peer, at,
			     target->key, FI_UINT64, FI_SUM, &side->context));
	}
	/* libfabric 1.17 reports a sum before it is made. */
	do {
		word[0] = 0;
		DO(side,
		   fi_fetch_atomic(side->efa.ep, &word[0], 1, desc, &word[1],
				   desc, side->peer, at, target->key, FI_UINT64,
				   FI_SUM, &side->context));
		expect(word[1] <= 6, "a sum");
	} while (word[1] < 6);
	for (uint64_t i = 0; i < 2; i++) {
		word[0] = 1000; /* new */
		word[1] = 0;	/* wanted */
		word[2] = 77;	/* found */
		DO(side,
		   fi_compare_atomic(side->efa.ep, &word[0], 1, desc, &word[1],
				     desc, &word[2], desc, side->peer, at + 8,
				     target->key, FI_UINT64, FI_CSWAP,
				     &side->context));
		expect(word[2] == i * 1000, "what was there");
	}
}

static int run(const char *client, const char *server)
{
	const char *words[4] = { "server", server };
	struct side side = { .peer = 0 };
	char name[EFA_TEXT], text[256];
	struct target target;
	FILE *said;
	pid_t pid;
	int out;

	if (!open_side(&side, client))
		return 77;
	efa_name(&side.efa, name);
	words[2] = name;
	pid = efa_start(words, &out);
	said = fdopen(out, "r");
	expect(said && fgets(text, sizeof(text), said),
	       "the server says nothing");
	expect(sscanf(text + EFA_TEXT, "%lx %lx", &target.addr, &target.key) ==
		       2,
	       "no memory of the server");
	side.peer = efa_insert(&side.efa, text);
	for (unsigned int i = 0; i < SIZES; i++)
		deliver(&side, sizes[i], i + 1);
	for (unsigned int i = 0; i < SIZES; i++) {
		send_data(&side, sizes[i], i + 20);
		receive(&side, sizes[i], i + 40, DATA);
	}
	write_and_read(&side, &target);
	count_and_swap(&side, &target);
	deliver(&side, 1, LAST);
	receive(&side, 1, LAST, DATA);
	fclose(said);
	return efa_wait(pid);
}

/* -- the server ------------------------------------------------------------- */

static int serve(const char *provider, const char *client)
{
	struct side side = { .peer = 0 };
	uint64_t word[2];
	char name[EFA_TEXT];

	if (!open_side(&side, provider))
		return 77;
	side.peer = efa_insert(&side.efa, client);
	efa_name(&side.efa, name);
	printf("%s %lx %lx\n", name, (unsigned long)(uintptr_t)side.memory,
	       (unsigned long)fi_mr_key(side.mr));
	fflush(stdout);
	for (unsigned int i = 0; i < SIZES; i++)
		receive(&side, sizes[i], i + 1, 0);
	for (unsigned int i = 0; i < SIZES; i++) {
		receive(&side, sizes[i], i + 20, DATA);
		send_data(&side, sizes[i], i + 40);
	}
	/* All accesses were reported to the client when this has come. */
	receive(&side, 1, LAST, 0);
	check(side.memory, BYTES, SIZES - 1 + 50,
	      "what the client has written");
	memcpy(word, side.memory + BYTES, sizeof(word));
	expect(word[0] == 6 && word[1] == 1000, "atomic operations");
	/* The client ends when it has this, and drives nothing any more. */
	send_data(&side, 1, LAST);
	return 0;
}

int main(int argc, char **argv)
{
	efa_begin();
	if (argc == 4 && !strcmp(argv[1], "server"))
		return serve(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], "client"))
		return run(argv[2], argv[3]);
	return efa_main();
}
