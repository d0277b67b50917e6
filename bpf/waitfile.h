/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * What a file descriptor of the current thread stands for. Another thread may close it meanwhile: then it is unknown, or
 * what took its number.
 */
#ifndef BRAID_WAITFILE_H
#define BRAID_WAITFILE_H

#include "record.h"

/* include/uapi/linux/stat.h */
#define S_IFMT   0170000
#define S_IFSOCK 0140000
#define S_IFREG  0100000
#define S_IFBLK  0060000
#define S_IFDIR  0040000
#define S_IFCHR  0020000
#define S_IFIFO  0010000

/* include/linux/socket.h */
#define AF_UNIX  1
#define AF_INET  2
#define AF_INET6 10

/* The first eight bytes of a name, as a load has them. */
#define NAME(a, b, c, d, e, f, g, h)                                                                              \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | (__u64)(f) << 40 | \
	 (__u64)(g) << 48 | (__u64)(h) << 56)

struct waited_file {
	__u64 object;
	__u8 kind; /* enum file_kind */
};

inline_fn struct file *file_of(__u32 fd)
{
	struct task_struct *p = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(p, files, fdt);
	if (!table || fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	struct file **files = BPF_CORE_READ(table, fd), *file = NULL;
	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	return file;
}

inline_fn __u64 file_name(struct file *file)
{
	__u64 name[2] = {};
	bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(file, f_path.dentry, d_name.name));
	return name[0];
}

inline_fn __u8 device_kind(struct file *file, struct inode *inode)
{
	switch (file_name(file)) {
	case NAME('b', 'i', 'n', 'd', 'e', 'r', 0, 0):
	case NAME('h', 'w', 'b', 'i', 'n', 'd', 'e', 'r'):
	case NAME('v', 'n', 'd', 'b', 'i', 'n', 'd', 'e'):
		return FILE_BINDER;
	}
	switch (BPF_CORE_READ(inode, i_rdev) >> 20) { /* Documentation/admin-guide/devices.txt */
	case 4: /* virtual and serial terminals */
	case 5: /* the own terminal, the console */
	case 136 ... 143: /* pseudo terminals */
	case 204: /* serial terminals of ARM systems */
	case 229: /* consoles of hypervisors */
		return FILE_TTY;
	}
	return FILE_CHAR_DEVICE;
}

inline_fn __u8 socket_kind(struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	switch (BPF_CORE_READ(socket, sk, __sk_common.skc_family)) {
	case AF_UNIX: return FILE_UNIX_SOCKET;
	case AF_INET:
	case AF_INET6: return FILE_INET_SOCKET;
	}
	return FILE_OTHER_SOCKET;
}

/* Files without a place in the file system share one inode; their name tells them apart. */
inline_fn void fill_anonymous(struct waited_file *w, struct file *file)
{
	w->object = 0;
	switch (file_name(file)) {
	case NAME('[', 'e', 'v', 'e', 'n', 't', 'f', 'd'): {
		struct eventfd_ctx *c = BPF_CORE_READ(file, private_data);
		w->kind = FILE_EVENTFD;
		if (bpf_core_field_exists(c->id))
			w->object = (__u32)BPF_CORE_READ(c, id);
		break;
	}
	case NAME('[', 'e', 'v', 'e', 'n', 't', 'p', 'o'): w->kind = FILE_EPOLL; break;
	case NAME('[', 't', 'i', 'm', 'e', 'r', 'f', 'd'): w->kind = FILE_TIMERFD; break;
	case NAME('[', 's', 'i', 'g', 'n', 'a', 'l', 'f'): w->kind = FILE_SIGNALFD; break;
	case NAME('i', 'n', 'o', 't', 'i', 'f', 'y', 0): w->kind = FILE_INOTIFY; break;
	}
}

inline_fn void fill_file(struct waited_file *w, __u32 fd)
{
	struct file *file = file_of(fd);
	if (!file)
		return;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	w->kind = FILE_OTHER;
	w->object = BPF_CORE_READ(inode, i_ino);
	switch (BPF_CORE_READ(inode, i_mode) & S_IFMT) {
	case S_IFREG: w->kind = FILE_REGULAR; break;
	case S_IFDIR: w->kind = FILE_DIRECTORY; break;
	case S_IFIFO: w->kind = FILE_PIPE; break;
	case S_IFSOCK: w->kind = socket_kind(file); break;
	case S_IFCHR: w->kind = device_kind(file, inode); break;
	case S_IFBLK: w->kind = FILE_BLOCK_DEVICE; break;
	default: fill_anonymous(w, file);
	}
}

#endif
