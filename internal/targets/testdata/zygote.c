/*
 * Behaves as Android's zygote does, as far as a recorder sees it: one process that is warm and forks on request; children
 * that take group, seccomp filter and user first, their main thread's name next, which is the end of the whole name cut as
 * SetThreadName cuts it, then the whole name, then "<pre-initialized>", and their own name again.
 *
 *   zygote SOCKET LIBRARY PADDING...
 *
 * Each datagram to SOCKET is "NAME UID FRAMES HOW": it starts an app and sends the app's process id back. LIBRARY has the
 * app's code, app.c, and is loaded when the app knows who it is; "-" says that it is linked in. FRAMES 0: until it is killed.
 * HOW is any of: r, wait until a recorder has come; s, start the sibling NAME:remote as well; d, leave a daemon behind.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char *block; /* where the arguments lie */
static size_t block_bytes;

static void fail(const char *what)
{
	perror(what);
	_exit(99);
}

static void sleep_ms(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	while (nanosleep(&t, &t))
		;
}

/* SetThreadName of com_android_internal_os_Zygote.cpp: the last 15 bytes of a name with a dot, of which strlcpy takes 14. */
static void set_thread_name(const char *name)
{
	size_t n = strlen(name);
	if (n >= 15 && !strchr(name, '@') && strchr(name, '.'))
		name += n - 15;
	char buf[16];
	snprintf(buf, 15, "%s", name);
	prctl(PR_SET_NAME, buf);
}

/* AndroidRuntime::setArgv0. */
static void set_argv0(const char *name)
{
	size_t n = strlen(name);
	prctl(PR_SET_NAME, n < 15 ? name : name + n - 15);
	memset(block, 0, block_bytes);
	snprintf(block, block_bytes, "%s", name);
}

/* Apps may not call everything: here, not swapon. */
static void filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_swapon, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(*code), code};
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		fail("seccomp");
}

#ifdef LINKED
extern void app_main(const char *name, int frames, const char *how);
#endif

static void app(const char *library, const char *name, int uid, int frames, const char *how)
{
	if (setgroups(0, 0) || setresgid(uid, uid, uid))
		fail("group");
	filter();
	if (setresuid(uid, uid, uid))
		fail("user");
	set_thread_name(name);
	sleep_ms(3);
	set_argv0(name);
	sleep_ms(3);
	set_argv0("<pre-initialized>");
	sleep_ms(30);
	set_argv0(name);
	sleep_ms(3);
#ifdef LINKED
	app_main(name, frames, how);
#else
	void *so = dlopen(library, RTLD_NOW);
	void (*app_main)(const char *, int, const char *) = so ? dlsym(so, "app_main") : 0;
	if (!app_main) {
		fprintf(stderr, "%s\n", dlerror());
		_exit(99);
	}
	app_main(name, frames, how);
#endif
	exit(0);
}

static int start(const char *library, const char *name, int uid, int frames, const char *how)
{
	int pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid) {
		signal(SIGCHLD, SIG_DFL);
		app(library, name, uid, frames, how);
	}
	return pid;
}

int main(int argc, char **argv)
{
	block = argv[0];
	block_bytes = argv[argc - 1] + strlen(argv[argc - 1]) - block;
	const char *library = strdup(argv[2]);
	prctl(PR_SET_NAME, "main");
	signal(SIGCHLD, SIG_IGN);
	int s = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct sockaddr_un at = {AF_UNIX, ""};
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", argv[1]);
	if (s < 0 || bind(s, (void *)&at, sizeof(at)))
		fail("bind");
	memset(block, 0, block_bytes);
	snprintf(block, block_bytes, "zygote64");
	printf("ready %d\n", getpid());
	fflush(stdout);
	for (;;) {
		char line[256], name[128], sibling[160], how[16] = "", answer[64];
		struct sockaddr_un from;
		socklen_t bytes = sizeof(from);
		ssize_t n = recvfrom(s, line, sizeof(line) - 1, 0, (void *)&from, &bytes);
		int uid, frames;
		if (n <= 0)
			continue;
		line[n] = 0;
		if (sscanf(line, "%127s %d %d %15s", name, &uid, &frames, how) < 3)
			return 0;
		int pid = start(library, name, uid, frames, how), other = 0;
		if (strchr(how, 's')) {
			snprintf(sibling, sizeof(sibling), "%s:remote", name);
			other = start(library, sibling, uid, frames, how);
		}
		snprintf(answer, sizeof(answer), "%d %d", pid, other);
		sendto(s, answer, strlen(answer), 0, (void *)&from, bytes);
	}
}
