/* SPDX-License-Identifier: Apache-2.0 */
/* What the dynamic linker says of the module that a copy of the runtime is in, and the search for another copy. */
#include "runtime.h"

static const char exe[] = "/proc/self/exe";

static void note(struct module_scan *m, const struct phdr *ph, word bias, int mine)
{
	const char *p = (const char *)(bias + ph->vaddr), *end = p + ph->filesz;
	word align = ph->align == 8 ? 8 : 4;
	while (end - p >= 12) {
		const braid_u32 *n = (const braid_u32 *)p;
		const char *name = p + 12, *desc = name + ((n[0] + align - 1) & ~(align - 1));
		const char *next = desc + ((n[1] + align - 1) & ~(align - 1));
		if (n[0] > 64 || next < p || desc > end)
			return;
		if (n[2] == 1 && n[0] == 6 && n[1] == 4 && name[0] == 'b' && name[1] == 'r' && name[2] == 'a' &&
		    name[3] == 'i' && name[4] == 'd') {
			struct braid_header *h = *(struct braid_header **)(desc + *(const int *)desc);
			if (h && !m->peer)
				m->peer = h;
		}
		if (mine && n[2] == 3 && n[0] == 4 && name[0] == 'G' && name[1] == 'N' && name[2] == 'U' && n[1] <= 32) {
			m->found.build_id_len = n[1];
			copy(m->found.build_id, desc, n[1]);
		}
		p = next;
	}
}

HIDDEN int __braid_scan(struct phdr_info *i, size_t size, void *arg)
{
	struct module_scan *m = arg;
	word low = -1, high = 0;
	(void)size;
	for (int k = 0; k < i->phnum; k++) {
		const struct phdr *ph = &i->phdr[k];
		if (ph->type != PT_LOAD)
			continue;
		if (i->addr + ph->vaddr < low)
			low = i->addr + ph->vaddr;
		if (i->addr + ph->vaddr + ph->memsz > high)
			high = i->addr + ph->vaddr + ph->memsz;
	}
	int mine = low <= m->inside && m->inside < high;
	for (int k = 0; k < i->phnum; k++)
		if (i->phdr[k].type == PT_NOTE)
			note(m, &i->phdr[k], i->addr, mine);
	if (!mine)
		return 0;
	m->found.bias = i->addr;
	m->found.low = low;
	m->found.high = high;
	char *path = m->found.path;
	const size_t room = sizeof m->found.path;
	if (!i->name || !i->name[0] || same(i->name, exe)) { /* musl's name for a static program is the link itself */
		long n = sys6(SYS_readlinkat, AT_CWD, (long)exe, (long)path, room, 0, 0);
		path[n > 0 && (size_t)n < room ? n : 0] = 0;
		return 0;
	}
	size_t at = 0, n = length(i->name);
	if (i->name[0] != '/') {
		long c = sys(SYS_getcwd, path, room, 0); /* counts the zero */
		if (c > 1) {
			at = c - 1;
			if (at < room)
				path[at++] = '/';
		}
	}
	if (at + n >= room)
		path[0] = 0;
	else
		copy(path + at, i->name, n + 1);
	return 0;
}

/* The entry of the same library at the same place, if it has been closed and nothing else has been loaded there since: a
 * recorder need not tell the two times apart. Without a build id it could be another library. */
static struct braid_module *again(struct braid_header *h, const struct braid_module *found)
{
	braid_u32 k = __atomic_load_n(&h->module_used, __ATOMIC_ACQUIRE);
	for (k = k < BRAID_MODULE_MAX ? k : BRAID_MODULE_MAX; k-- > 0;) {
		struct braid_module *m = &modules(h)[k];
		if (m->state != 1 || m->high <= found->low || m->low >= found->high)
			continue;
		int one = m->unloaded && m->bias == found->bias && m->high == found->high && found->build_id_len &&
			  m->build_id_len == found->build_id_len && same(m->path, found->path);
		for (braid_u32 i = 0; one && i < found->build_id_len; i++)
			one = m->build_id[i] == found->build_id[i];
		return one ? m : 0;
	}
	return 0;
}

HIDDEN void __braid_register_module(struct braid_header *h, struct braid_module *found)
{
	if ((__braid_self = again(h, found))) {
		__braid_self->unloaded = 0;
		return;
	}
	braid_u32 k = __atomic_fetch_add(&h->module_used, 1, __ATOMIC_ACQ_REL);
	if (k >= BRAID_MODULE_MAX) {
		__atomic_fetch_add(&h->lost_modules, 1, __ATOMIC_RELAXED);
		return;
	}
	__braid_self = &modules(h)[k];
	found->loaded = braid_counter();
	copy(__braid_self, found, sizeof *__braid_self);
	__atomic_store_n(&__braid_self->state, 1, __ATOMIC_RELEASE);
}
