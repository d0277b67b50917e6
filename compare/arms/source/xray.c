/* Turns LLVM XRay's flight recorder on at the program's start, and writes its log at the end, which it doesn't do by itself. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xray/xray_interface.h>
#include <xray/xray_log_interface.h>

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "XRay does not %s\n", what);
	_exit(1);
}

__attribute__((xray_never_instrument, constructor)) static void begin(void)
{
	must(__xray_log_select_mode("xray-fdr") == XRAY_REGISTRATION_OK, "know its flight recorder");
	must(__xray_log_init_mode("xray-fdr", getenv("XRAY_ARM")) == XRAY_LOG_INITIALIZED, "begin");
	must(__xray_patch() == SUCCESS, "patch the functions");
}

__attribute__((xray_never_instrument, destructor)) static void end(void)
{
	must(__xray_log_finalize() == XRAY_LOG_FINALIZED, "end");
	__xray_unpatch();
	must(__xray_log_flushLog() == XRAY_LOG_FLUSHED, "write its log");
}
