/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that processes share, with store buffers between them and it. A model
 * sets PROCS, BUFFERED (entries of each buffer) and ADDRS before it includes this
 * file, and starts cpu(p) for each process.
 *
 * Without WEAK it is x86: a buffer drains in order, and a process sees its own
 * stores before others do. With WEAK, stores to different addresses may drain in
 * any order, as on arm64, but a store with release waits for all stores before
 * it. In both, loads happen in program order: what an acquire is needed for is
 * not found here.
 */
byte mem[ADDRS];
byte buf_at[PROCS * BUFFERED];
byte buf_value[PROCS * BUFFERED];
bit buf_release[PROCS * BUFFERED];
byte buf_len[PROCS];

#define SLOT(p, i) ((p) * BUFFERED + (i))
#define HOLDS(p, i, a) (buf_len[p] > (i) && buf_at[SLOT(p, i)] == (a))

#if BUFFERED != 3
#error "HAS, LOAD and cpu() are written out for three entries"
#endif

/* Whether a store to @a stands in the buffer of @p. */
#define HAS(p, a) (HOLDS(p, 0, a) || HOLDS(p, 1, a) || HOLDS(p, 2, a))

/* What @p sees at @a: its own newest store, or memory. */
#define LOAD(p, a)                                                             \
	(HOLDS(p, 2, a) -> buf_value[SLOT(p, 2)] :                             \
	(HOLDS(p, 1, a) -> buf_value[SLOT(p, 1)] :                             \
	(HOLDS(p, 0, a) -> buf_value[SLOT(p, 0)] : mem[a])))

#define DRAINED(p) (buf_len[p] == 0)

/* A store waits for room in the buffer. */
inline put_in_buffer(p, a, v, rel)
{
	atomic {
		buf_len[p] < BUFFERED ->
		buf_at[SLOT(p, buf_len[p])] = (a);
		buf_value[SLOT(p, buf_len[p])] = (v);
		buf_release[SLOT(p, buf_len[p])] = (rel);
		buf_len[p]++
	}
}

#define STORE(p, a, v) put_in_buffer(p, a, v, 0)
#define STORE_RELEASE(p, a, v) put_in_buffer(p, a, v, 1)

/* memory_order_seq_cst: nothing before it is in the buffer, and nor is it. */
#define STORE_SEQ_CST(p, a, v) atomic { DRAINED(p) -> mem[a] = (v) }

/* Read, modify, write with release: what stands before it is in memory. x86 has
 * no other kind. */
#define RMW_RELEASE(p, a, old, v)                                              \
	atomic { DRAINED(p) -> old = mem[a]; mem[a] = (v) }

#ifdef WEAK
#define RMW_RELAXED(p, a, old, v)                                              \
	atomic { !HAS(p, a) -> old = mem[a]; mem[a] = (v) }
#else
#define RMW_RELAXED(p, a, old, v) RMW_RELEASE(p, a, old, v)
#endif

inline drain_one(p, i)
{
	mem[buf_at[SLOT(p, i)]] = buf_value[SLOT(p, i)];
	if
	:: (i) < 1 ->
		buf_at[SLOT(p, 0)] = buf_at[SLOT(p, 1)];
		buf_value[SLOT(p, 0)] = buf_value[SLOT(p, 1)];
		buf_release[SLOT(p, 0)] = buf_release[SLOT(p, 1)]
	:: else
	fi;
	if
	:: (i) < 2 ->
		buf_at[SLOT(p, 1)] = buf_at[SLOT(p, 2)];
		buf_value[SLOT(p, 1)] = buf_value[SLOT(p, 2)];
		buf_release[SLOT(p, 1)] = buf_release[SLOT(p, 2)]
	:: else
	fi;
	/* No two states that differ in nothing else. */
	buf_at[SLOT(p, 2)] = 0;
	buf_value[SLOT(p, 2)] = 0;
	buf_release[SLOT(p, 2)] = 0;
	buf_len[p]--;
	if
	:: buf_len[p] < 2 ->
		buf_at[SLOT(p, 1)] = 0;
		buf_value[SLOT(p, 1)] = 0;
		buf_release[SLOT(p, 1)] = 0
	:: else
	fi;
	if
	:: buf_len[p] < 1 ->
		buf_at[SLOT(p, 0)] = 0;
		buf_value[SLOT(p, 0)] = 0;
		buf_release[SLOT(p, 0)] = 0
	:: else
	fi
}

/* Drains the buffer of @p, at any time. */
proctype cpu(byte p)
{
end:
	do
	:: d_step { buf_len[p] > 0 -> drain_one(p, 0) }
#ifdef WEAK
	:: d_step {
		buf_len[p] > 1 && !buf_release[SLOT(p, 1)] &&
		buf_at[SLOT(p, 1)] != buf_at[SLOT(p, 0)] -> drain_one(p, 1)
	   }
	:: d_step {
		buf_len[p] > 2 && !buf_release[SLOT(p, 2)] &&
		buf_at[SLOT(p, 2)] != buf_at[SLOT(p, 0)] &&
		buf_at[SLOT(p, 2)] != buf_at[SLOT(p, 1)] -> drain_one(p, 2)
	   }
#endif
	od
}
