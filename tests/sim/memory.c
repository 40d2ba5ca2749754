/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of simulated processes: the heap, mappings, memfds, and copies from
 * one process to another. It is real memory of the one real process. The tables
 * here record which part belongs to which process, so that a copy to memory
 * that a process does not have fails as in the kernel, and a dead process
 * leaves nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "kernel.h"
#include "oracle.h"
#include "real.h"
#include "wrap.h"

#define POOL_BYTES ((size_t)8 << 30)
#define PAGE 4096u
#define SHARED_MAX 65000
#define CANARY 0x5afe5afe5afe5afeull
#define FILL_MOST 4096u
#define HEAP_MAX ((size_t)1 << 30)

/* -- the heap --------------------------------------------------------------- */

struct sim_block {
	struct sim_block *next, **back;
	struct sim_proc *proc;
	void *base;
	void *caller;
	size_t bytes;
	uint64_t canary;
};

static void *block_alloc(size_t align, size_t bytes, void *caller)
{
	struct sim_proc *proc = sim_proc_current();
	struct sim_block *block;
	uintptr_t at;
	char *base;
	uint64_t tail = CANARY;

	if (bytes > HEAP_MAX)
		return NULL;
	base = real_malloc(align + sizeof(*block) + bytes + sizeof(tail));
	at = ((uintptr_t)base + sizeof(*block) + align - 1) &
	     ~(uintptr_t)(align - 1);
	block = (struct sim_block *)at - 1;
	*block = (struct sim_block){ .proc = proc,
				     .base = base,
				     .caller = caller,
				     .bytes = bytes,
				     .canary = CANARY };
	memcpy((char *)at + bytes, &tail, sizeof(tail));
	if (!proc)
		return (void *)at;
	block->next = proc->blocks;
	block->back = &proc->blocks;
	if (block->next)
		block->next->back = &block->next;
	proc->blocks = block;
	proc->block_bytes += bytes;
	proc->block_count++;
	return (void *)at;
}

static void block_free(struct sim_block *block)
{
	struct sim_proc *proc = block->proc;
	uint64_t tail;

	memcpy(&tail, (char *)(block + 1) + block->bytes, sizeof(tail));
	if (block->canary != CANARY || tail != CANARY)
		sim_fail("the heap is damaged near a block of %zu bytes",
			 block->bytes);
	block->canary = 0;
	if (proc) {
		*block->back = block->next;
		if (block->next)
			block->next->back = block->back;
		proc->block_bytes -= block->bytes;
		proc->block_count--;
	}
	memset(block + 1, 0xdb,
	       block->bytes < FILL_MOST ? block->bytes : FILL_MOST);
	real_free(block->base);
}

static bool no_memory(void)
{
	sim_point();
	if (!sim_fault(SIM_FAULT_MEMORY))
		return false;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t bytes)
{
	void *p;

	if (no_memory())
		return NULL;
	p = block_alloc(16, bytes, __builtin_return_address(0));
	if (p)
		memset(p, 0xa5, bytes < FILL_MOST ? bytes : FILL_MOST);
	return p;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	void *p;

	if (no_memory())
		return NULL;
	p = block_alloc(16, count * bytes, __builtin_return_address(0));
	if (p)
		memset(p, 0, count * bytes);
	return p;
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	if (no_memory())
		return NULL;
	return block_alloc(align < 16 ? 16 : align, bytes,
			   __builtin_return_address(0));
}

void __wrap_free(void *p)
{
	if (!p)
		return;
	block_free((struct sim_block *)p - 1);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	size_t had = old ? ((struct sim_block *)old - 1)->bytes : 0;
	void *p;

	if (no_memory())
		return NULL;
	p = block_alloc(16, bytes, __builtin_return_address(0));
	if (!p)
		return NULL;
	if (old)
		memcpy(p, old, had < bytes ? had : bytes);
	__wrap_free(old);
	return p;
}

char *__wrap_strdup(const char *text)
{
	char *copy = __wrap_malloc(strlen(text) + 1);

	return copy ? strcpy(copy, text) : NULL;
}

/* -- shared memory ---------------------------------------------------------- */

static char *pool;
static size_t pool_used;
static struct sim_shared *shared_list[SHARED_MAX];
static unsigned int shared_count;
/* The object that a page of the pool belongs to, plus one. */
static uint16_t *page_owner;

bool sim_memory_in_pool(uintptr_t addr)
{
	return addr - (uintptr_t)pool < pool_used;
}

struct sim_shared *sim_memory_shared(uintptr_t addr)
{
	uint16_t owner;

	if (!sim_memory_in_pool(addr))
		return NULL;
	owner = page_owner[(addr - (uintptr_t)pool) / PAGE];
	return owner ? shared_list[owner - 1] : NULL;
}

static void open_pool(void)
{
	pool = real_mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	page_owner =
		real_mmap(NULL, POOL_BYTES / PAGE * sizeof(*page_owner),
			  PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static int shared_resize(struct sim_shared *shared, size_t bytes)
{
	size_t room = (bytes + PAGE - 1) / PAGE * PAGE;

	if (!pool)
		open_pool();
	if (bytes == shared->bytes)
		return 0;
	if (shared->bytes)
		sim_fail("the simulator does not resize memory: %s",
			 shared->name);
	if (pool_used + room + PAGE > POOL_BYTES || shared_count == SHARED_MAX)
		sim_fail("the simulator is out of shared memory");
	shared->base = pool + pool_used;
	shared->bytes = bytes;
	shared_list[shared_count++] = shared;
	for (size_t i = 0; i < room / PAGE; i++)
		page_owner[pool_used / PAGE + i] = (uint16_t)shared_count;
	/* An unused page follows each object. */
	pool_used += room + PAGE;
	return 0;
}

/* Freed memory must not be touched. */
static void shared_put(struct sim_shared *shared)
{
	if (--shared->refs || !shared->bytes)
		return;
	real_mprotect(shared->base, (shared->bytes + PAGE - 1) / PAGE * PAGE,
		      PROT_NONE);
}

struct memfd {
	struct sim_file file;
	struct sim_shared *shared;
	int seals;
};

static const struct sim_file_ops memfd_ops;

static struct memfd *memfd_at(int fd)
{
	struct sim_file *file = sim_file_get(fd);

	return file && file->ops == &memfd_ops ? (struct memfd *)file : NULL;
}

struct sim_file *sim_memfd(const char *name)
{
	struct memfd *memfd = real_calloc(1, sizeof(*memfd));

	memfd->file.ops = &memfd_ops;
	memfd->file.refs = 1;
	memfd->shared = real_calloc(1, sizeof(*memfd->shared));
	memfd->shared->refs = 1;
	snprintf(memfd->shared->name, sizeof(memfd->shared->name), "%s", name);
	return &memfd->file;
}

static void memfd_release(struct sim_file *file)
{
	struct memfd *memfd = (struct memfd *)file;

	shared_put(memfd->shared);
	real_free(memfd);
}

int __wrap_memfd_create(const char *name, unsigned int flags)
{
	(void)flags;
	sim_enter("memfd_create");
	return SIM_RET(sim_file_install(sim_memfd(name)));
}

int __wrap_ftruncate64(int fd, off_t bytes)
{
	struct memfd *memfd = memfd_at(fd);

	sim_enter("ftruncate");
	if (!memfd)
		return SIM_RET(-EBADF);
	if (sim_fault(SIM_FAULT_MEMORY))
		return SIM_RET(-ENOMEM);
	return SIM_RET(shared_resize(memfd->shared, (size_t)bytes));
}

int __wrap_posix_fallocate64(int fd, off_t at, off_t bytes)
{
	struct memfd *memfd = memfd_at(fd);

	sim_enter("fallocate");
	if (!memfd)
		return EBADF;
	if (sim_fault(SIM_FAULT_MEMORY))
		return ENOSPC;
	/* Pages exist once they are touched. */
	if ((size_t)(at + bytes) <= memfd->shared->bytes)
		return 0;
	return -shared_resize(memfd->shared, (size_t)(at + bytes));
}

int __wrap_fcntl64(int fd, int command, ...)
{
	struct memfd *memfd = memfd_at(fd);
	va_list args;
	int value;

	va_start(args, command);
	value = va_arg(args, int);
	va_end(args);
	sim_enter("fcntl");
	if (command == F_ADD_SEALS && memfd) {
		memfd->seals |= value;
		return 0;
	}
	if (command == F_GET_SEALS)
		return memfd ? memfd->seals : SIM_RET(-EINVAL);
	if (!sim_file_get(fd))
		return SIM_RET(-EBADF);
	return 0;
}

int __wrap_fstat64(int fd, struct stat *st)
{
	struct memfd *memfd = memfd_at(fd);

	memset(st, 0, sizeof(*st));
	if (memfd)
		st->st_size = (off_t)memfd->shared->bytes;
	return sim_file_get(fd) ? 0 : SIM_RET(-EBADF);
}

int __wrap_fstatfs64(int fd, struct statfs *fs)
{
	memset(fs, 0, sizeof(*fs));
	fs->f_type = memfd_at(fd) ? TMPFS_MAGIC : 0;
	return sim_file_get(fd) ? 0 : SIM_RET(-EBADF);
}

/* -- mappings --------------------------------------------------------------- */

struct sim_map {
	struct sim_map *next;
	char *addr;
	size_t bytes;
	struct sim_shared *shared; /* NULL: private to this process */
};

void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd,
		    off_t off)
{
	struct sim_proc *proc = sim_proc_current();
	struct sim_map *map;
	struct memfd *memfd = NULL;

	sim_enter("mmap");
	if (fd >= 0) {
		memfd = memfd_at(fd);
		if (!memfd || (size_t)off + len > memfd->shared->bytes) {
			errno = EINVAL;
			return MAP_FAILED;
		}
	}
	if (sim_fault(SIM_FAULT_MEMORY)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	map = real_calloc(1, sizeof(*map));
	map->bytes = len;
	if (memfd) {
		map->addr = memfd->shared->base + off;
		map->shared = memfd->shared;
		map->shared->refs++;
		map->shared->maps[proc->number]++;
	} else {
		map->addr = real_mmap(addr, len, prot, flags, -1, 0);
		if (map->addr == MAP_FAILED) {
			real_free(map);
			return MAP_FAILED;
		}
	}
	map->next = proc->maps;
	proc->maps = map;
	return map->addr;
}

static void drop_map(struct sim_proc *proc, struct sim_map **at)
{
	struct sim_map *map = *at;

	*at = map->next;
	if (map->shared) {
		map->shared->maps[proc->number]--;
		shared_put(map->shared);
	} else {
		real_munmap(map->addr, map->bytes);
	}
	real_free(map);
}

static struct sim_map **find_map(struct sim_proc *proc, const void *addr,
				 size_t len)
{
	struct sim_map **at;

	for (at = &proc->maps; *at; at = &(*at)->next) {
		if ((*at)->addr == addr && (*at)->bytes == len)
			return at;
	}
	return NULL;
}

/* Adds [@begin, @end) of @of as a mapping of its own. */
static void add_part(struct sim_proc *proc, const struct sim_map *of,
		     char *begin, char *end)
{
	struct sim_map *part;

	if (begin == end)
		return;
	part = real_calloc(1, sizeof(*part));
	*part = (struct sim_map){
		.next = proc->maps,
		.addr = begin,
		.bytes = (size_t)(end - begin),
		.shared = of->shared,
	};
	part->shared->refs++;
	part->shared->maps[proc->number]++;
	proc->maps = part;
}

/* Pages of shared memory in the middle of a mapping become one of their own. */
static void cut_out(struct sim_proc *proc, char *addr, size_t len)
{
	struct sim_map **at;

	for (at = &proc->maps; *at; at = &(*at)->next) {
		struct sim_map *map = *at;

		if (!map->shared || addr < map->addr ||
		    addr + len > map->addr + map->bytes)
			continue;
		add_part(proc, map, map->addr, addr);
		add_part(proc, map, addr, addr + len);
		add_part(proc, map, addr + len, map->addr + map->bytes);
		for (at = &proc->maps; *at != map;)
			at = &(*at)->next;
		drop_map(proc, at);
		return;
	}
}

int __wrap_munmap(void *addr, size_t len)
{
	struct sim_proc *proc = sim_proc_current();
	struct sim_map **at;

	sim_enter("munmap");
	if (!find_map(proc, addr, len) && !((uintptr_t)addr % PAGE) &&
	    !(len % PAGE))
		cut_out(proc, addr, len);
	at = find_map(proc, addr, len);
	if (!at)
		sim_fail("munmap() of %zu bytes that are not mapped", len);
	drop_map(proc, at);
	return 0;
}

int __wrap_madvise(void *addr, size_t len, int advice)
{
	(void)addr;
	(void)len;
	sim_enter("madvise");
	if (advice == MADV_POPULATE_WRITE && sim_fault(SIM_FAULT_MEMORY))
		return SIM_RET(-ENOMEM);
	return 0;
}

int __wrap_mprotect(void *addr, size_t len, int prot)
{
	(void)addr;
	(void)len;
	(void)prot;
	return 0;
}

int __wrap_mincore(void *addr, size_t len, unsigned char *pages)
{
	(void)len;
	pages[0] = 1;
	return sim_memory_valid(sim_proc_current(), (uintptr_t)addr, 1) ?
		       0 :
		       SIM_RET(-ENOMEM);
}

/* -- which memory is whose -------------------------------------------------- */

struct app_memory {
	struct app_memory *next;
	struct sim_proc *proc;
	unsigned int life;
	char *addr;
	size_t bytes;
};

static struct app_memory *app_list;

/* A new incarnation has its memory at the same addresses as the previous one,
 * as programs do that start without random addresses: a copy that was meant for
 * the previous one reaches it. */
void *sim_memory_app_alloc(struct sim_proc *proc, size_t bytes)
{
	struct app_memory *m;

	for (m = app_list; m; m = m->next) {
		if (m->proc == proc && m->bytes >= bytes) {
			m->life = proc->life;
			return m->addr;
		}
	}
	m = real_calloc(1, sizeof(*m));
	m->proc = proc;
	m->life = proc->life;
	m->bytes = (bytes + PAGE - 1) / PAGE * PAGE;
	m->addr = real_mmap(NULL, m->bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	m->next = app_list;
	app_list = m;
	return m->addr;
}

static size_t overlap(uintptr_t addr, size_t len, const void *base,
		      size_t bytes)
{
	uintptr_t begin = (uintptr_t)base;

	if (addr < begin || addr >= begin + bytes)
		return 0;
	return len < begin + bytes - addr ? len : begin + bytes - addr;
}

extern char sim_statics_begin[], sim_statics_end[];

static size_t valid_part(const struct sim_proc *proc, uintptr_t addr,
			 size_t len)
{
	size_t n;

	for (const struct app_memory *m = app_list; m; m = m->next) {
		if (m->proc == proc && m->life == proc->life &&
		    (n = overlap(addr, len, m->addr, m->bytes)))
			return n;
	}
	for (const struct sim_map *m = proc->maps; m; m = m->next) {
		if ((n = overlap(addr, len, m->addr, m->bytes)))
			return n;
	}
	for (const struct sim_block *b = proc->blocks; b; b = b->next) {
		if ((n = overlap(addr, len, b + 1, b->bytes)))
			return n;
	}
	if (proc == sim_proc_current())
		return overlap(addr, len, sim_statics_begin,
			       (size_t)(sim_statics_end - sim_statics_begin));
	return 0;
}

size_t sim_memory_valid(const struct sim_proc *proc, uintptr_t addr, size_t len)
{
	size_t done = 0, n;

	while (done < len && (n = valid_part(proc, addr + done, len - done)))
		done += n;
	return done;
}

void sim_memory_end(struct sim_proc *proc)
{
	while (proc->maps)
		drop_map(proc, &proc->maps);
	while (proc->blocks)
		block_free(proc->blocks);
}

void sim_memory_check_end(const struct sim_proc *proc)
{
	const struct sim_block *block = proc->blocks;

	if (proc->block_count)
		sim_fail("%u blocks of %zu bytes in all are left; the last has "
			 "%zu bytes, allocated at %p (addr2line)",
			 proc->block_count, proc->block_bytes, block->bytes,
			 block->caller);
	/* The guard page exists as long as the process. */
	for (const struct sim_map *m = proc->maps; m; m = m->next) {
		if (m->shared || m->bytes != PAGE)
			sim_fail("a mapping of %zu bytes is left: %s", m->bytes,
				 m->shared ? m->shared->name : "anonymous");
	}
}

/* -- from process to process ------------------------------------------------ */

static size_t total(const struct iovec *iov, unsigned long count)
{
	size_t sum = 0;

	for (unsigned long i = 0; i < count; i++)
		sum += iov[i].iov_len;
	return sum;
}

struct cursor {
	const struct iovec *iov;
	unsigned long count;
	size_t off;
};

static size_t piece(struct cursor *c)
{
	while (c->count && c->off == c->iov->iov_len) {
		c->iov++;
		c->count--;
		c->off = 0;
	}
	return c->count ? c->iov->iov_len - c->off : 0;
}

static ssize_t copy(struct sim_proc *peer, struct cursor *here,
		    struct cursor *there, size_t most, bool write)
{
	size_t done = 0;

	while (done < most) {
		size_t a = piece(here), b = piece(there), n, valid;
		char *local, *remote;

		n = a < b ? a : b;
		n = n < most - done ? n : most - done;
		if (!n)
			break;
		local = (char *)here->iov->iov_base + here->off;
		remote = (char *)there->iov->iov_base + there->off;
		valid = sim_memory_valid(peer, (uintptr_t)remote, n);
		if (!valid)
			return done ? (ssize_t)done : -EFAULT;
		if (write)
			oracle_written(peer, remote, valid);
		else
			oracle_read(peer, remote, valid);
		if (write)
			memmove(remote, local, valid);
		else
			memmove(local, remote, valid);
		done += valid;
		here->off += valid;
		there->off += valid;
		if (valid < n)
			break;
	}
	return (ssize_t)done;
}

static ssize_t move(pid_t pid, const struct iovec *local, unsigned long locals,
		    const struct iovec *remote, unsigned long remotes,
		    bool write)
{
	struct cursor here = { local, locals, 0 };
	struct cursor there = { remote, remotes, 0 };
	size_t most = total(local, locals);
	struct sim_proc *peer;

	sim_enter(write ? "process_vm_writev" : "process_vm_readv");
	peer = sim_proc_find(sim_proc_current()->node, pid);
	if (!peer)
		return -ESRCH;
	if (peer != sim_proc_current() && sim_fault(SIM_FAULT_COPY)) {
		if (sim_rng_one_in(&sim.fault[SIM_FAULT_COPY], 2))
			return -EPERM;
		if (most > 16)
			most = 8 + sim_rng_below(&sim.fault[SIM_FAULT_COPY],
						 most - 8);
	}
	return copy(peer, &here, &there, most, write);
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local,
				unsigned long locals,
				const struct iovec *remote,
				unsigned long remotes, unsigned long flags)
{
	(void)flags;
	return SIM_RET(move(pid, local, locals, remote, remotes, false));
}

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local,
				 unsigned long locals,
				 const struct iovec *remote,
				 unsigned long remotes, unsigned long flags)
{
	(void)flags;
	return SIM_RET(move(pid, local, locals, remote, remotes, true));
}

/* -- memory as a file ------------------------------------------------------- */

struct memory_file {
	struct sim_file file;
	struct sim_proc *proc;
	unsigned int life; /* empty in another incarnation */
};

static const struct sim_file_ops memory_ops;

struct sim_file *sim_memory_file(struct sim_proc *proc)
{
	struct memory_file *memory = real_calloc(1, sizeof(*memory));

	memory->file.ops = &memory_ops;
	memory->file.refs = 1;
	memory->proc = proc;
	memory->life = proc->life;
	return &memory->file;
}

static void memory_release(struct sim_file *file)
{
	real_free(file);
}

static ssize_t move_at(int fd, void *buf, size_t len, off_t at, bool write)
{
	const struct iovec local = { buf, len };
	const struct iovec remote = { (void *)(uintptr_t)at, len };
	struct cursor here = { &local, 1, 0 }, there = { &remote, 1, 0 };
	struct memory_file *memory;
	ssize_t moved;

	sim_enter(write ? "pwrite" : "pread");
	memory = (struct memory_file *)sim_file_get(fd);
	if (!memory || memory->file.ops != &memory_ops)
		return -EBADF;
	if (!memory->proc->alive || memory->proc->life != memory->life)
		return 0;
	if (len > 1 && sim_fault(SIM_FAULT_COPY))
		len = 1 + sim_rng_below(&sim.fault[SIM_FAULT_COPY], len - 1);
	moved = copy(memory->proc, &here, &there, len, write);
	return moved == -EFAULT ? -EIO : moved;
}

ssize_t __wrap_pread64(int fd, void *buf, size_t len, off_t at)
{
	return SIM_RET(move_at(fd, buf, len, at, false));
}

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off_t at)
{
	return SIM_RET(move_at(fd, (void *)(uintptr_t)buf, len, at, true));
}

static const struct sim_file_ops memory_ops = {
	.name = "memory",
	.release = memory_release,
};

static const struct sim_file_ops memfd_ops = {
	.name = "memfd",
	.release = memfd_release,
};
