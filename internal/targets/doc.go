// Package targets chooses processes to record: by the name that Android or a shell gives them, by component, by user.
//
// An Android app is a child of zygote. It renames its main thread in the fork's specialisation, which keeps at most 15
// bytes of the name, then writes the whole name over its first argument, calls itself "<pre-initialized>" for a while, and
// takes its name again. So /proc/PID/comm shows a part of the name early, and /proc/PID/cmdline all of it, a little later.
// Read from Android's SpecializeCommon and SetThreadName (com_android_internal_os_Zygote.cpp), AndroidRuntime::setArgv0 and
// ActivityThread.main (Android 10 to 14).
package targets
