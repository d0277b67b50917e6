/* The natives of Listing.java. Loaded as an agent, it also records each entry and return of Listing.call: method and time go to
 * a ring in memory, as in a method trace of Android. */
#define _GNU_SOURCE
#include <jvmti.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define RING 65536

static jvmtiEnv *vm_events; /* 0: not an agent */
static jmethodID traced;
static uint64_t count;
static struct {
	jmethodID method;
	int64_t time; /* lowest bit: a return */
} ring[RING];

static int64_t nanoseconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void record(jmethodID method, int is_return)
{
	/* Turning the events on and off returns from a method too. */
	if (method != traced)
		return;
	ring[count % RING].method = method;
	ring[count % RING].time = (nanoseconds(CLOCK_MONOTONIC) & ~INT64_C(1)) | is_return;
	count++;
}

static void JNICALL entered(jvmtiEnv *events, JNIEnv *env, jthread thread, jmethodID method)
{
	(void)events, (void)env, (void)thread;
	record(method, 0);
}

static void JNICALL returned(jvmtiEnv *events, JNIEnv *env, jthread thread, jmethodID method, jboolean thrown, jvalue value)
{
	(void)events, (void)env, (void)thread, (void)thrown, (void)value;
	record(method, 1);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	jvmtiCapabilities can = { .can_generate_method_entry_events = 1, .can_generate_method_exit_events = 1 };
	jvmtiEventCallbacks callbacks = { .MethodEntry = entered, .MethodExit = returned };

	(void)options, (void)reserved;
	if ((*vm)->GetEnv(vm, (void **)&vm_events, JVMTI_VERSION_1_2) != JNI_OK)
		return JNI_ERR;
	if ((*vm_events)->AddCapabilities(vm_events, &can) != JVMTI_ERROR_NONE)
		return JNI_ERR;
	return (*vm_events)->SetEventCallbacks(vm_events, &callbacks, sizeof callbacks) == JVMTI_ERROR_NONE ? JNI_OK : JNI_ERR;
}

JNIEXPORT jint JNICALL Java_Listing_pin(JNIEnv *env, jclass class, jint cpu)
{
	cpu_set_t set;

	(void)env, (void)class;
	CPU_ZERO(&set);
	if (cpu >= 0) {
		CPU_SET(cpu, &set);
		sched_setaffinity(0, sizeof set, &set);
	}
	return getpid();
}

JNIEXPORT void JNICALL Java_Listing_trace(JNIEnv *env, jclass class, jboolean on)
{
	jvmtiEventMode mode = on ? JVMTI_ENABLE : JVMTI_DISABLE;
	jthread self;

	if (!vm_events)
		return;
	traced = (*env)->GetStaticMethodID(env, class, "call", "(IIJ)J");
	if (!traced || (*vm_events)->GetCurrentThread(vm_events, &self) != JVMTI_ERROR_NONE)
		return;
	(*vm_events)->SetEventNotificationMode(vm_events, mode, JVMTI_EVENT_METHOD_ENTRY, self);
	(*vm_events)->SetEventNotificationMode(vm_events, mode, JVMTI_EVENT_METHOD_EXIT, self);
}

JNIEXPORT jlong JNICALL Java_Listing_cpu(JNIEnv *env, jclass class)
{
	(void)env, (void)class;
	return nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

JNIEXPORT jlong JNICALL Java_Listing_recorded(JNIEnv *env, jclass class)
{
	jlong n = (jlong)count;

	(void)env, (void)class;
	count = 0;
	return n;
}
