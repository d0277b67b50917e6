package perfetto

// The fields of Perfetto's messages that are written here, as tags (field number << 3 | wire type). Numbers are those
// of protos/perfetto/trace in Perfetto v55.3; the comment above each group names the message and its file.
const (
	varint   = 0
	fixed64  = 1
	lenDelim = 2

	// Trace, trace.proto
	tagPacket = 1<<3 | lenDelim

	// TracePacket, trace_packet.proto
	tagFtraceEvents    = 1<<3 | lenDelim
	tagProcessTree     = 2<<3 | lenDelim
	tagClockSnapshot   = 6<<3 | lenDelim
	tagTimestamp       = 8<<3 | varint
	tagSequenceID      = 10<<3 | varint // trusted_packet_sequence_id
	tagTrackEvent      = 11<<3 | lenDelim
	tagInternedData    = 12<<3 | lenDelim
	tagSequenceFlags   = 13<<3 | varint
	tagSystemInfo      = 45<<3 | lenDelim
	tagClockID         = 58<<3 | varint   // timestamp_clock_id
	tagPacketDefaults  = 59<<3 | lenDelim // trace_packet_defaults
	tagTrackDescriptor = 60<<3 | lenDelim
	tagPerfSample      = 66<<3 | lenDelim
	tagFirstPacket     = 87<<3 | varint // first_packet_on_sequence
	tagTraceUUID       = 89<<3 | lenDelim

	sequenceCleared    = 1 // SEQ_INCREMENTAL_STATE_CLEARED
	sequenceNeedsState = 2 // SEQ_NEEDS_INCREMENTAL_STATE

	// TracePacketDefaults, trace_packet_defaults.proto
	tagDefaultEvent   = 11<<3 | lenDelim // track_event_defaults
	tagDefaultSample  = 12<<3 | lenDelim // perf_sample_defaults
	tagDefaultClockID = 58<<3 | varint
	// TrackEventDefaults, track_event/track_event.proto
	tagDefaultTrack = 11<<3 | varint

	// ClockSnapshot and Clock, clock_snapshot.proto; BuiltinClock, common/builtin_clock.proto
	tagClock            = 1<<3 | lenDelim
	tagPrimaryClock     = 2<<3 | varint // primary_trace_clock
	tagClockClockID     = 1<<3 | varint
	tagClockTimestamp   = 2<<3 | varint
	tagClockIncremental = 3<<3 | varint

	clockRealtime = 1
	clockBoottime = 6
	// clockDelta is a clock of one packet sequence (64 to 127), whose timestamps are differences from packet to packet.
	clockDelta = 64

	// TraceUuid, trace_uuid.proto
	tagUUIDHigh = 1<<3 | varint
	tagUUIDLow  = 2<<3 | varint

	// SystemInfo, common/system_info.proto
	tagUtsname = 1<<3 | lenDelim
	tagNumCPUs = 8<<3 | varint
	// Utsname
	tagSysname = 1<<3 | lenDelim
	tagVersion = 2<<3 | lenDelim
	tagRelease = 3<<3 | lenDelim
	tagMachine = 4<<3 | lenDelim

	// TrackDescriptor, track_event/track_descriptor.proto
	tagTrackUUID   = 1<<3 | varint
	tagTrackName   = 2<<3 | lenDelim
	tagProcess     = 3<<3 | lenDelim
	tagThread      = 4<<3 | lenDelim
	tagTrackParent = 5<<3 | varint
	tagCounter     = 8<<3 | lenDelim
	// ProcessDescriptor, track_event/process_descriptor.proto
	tagProcessPid     = 1<<3 | varint
	tagProcessCmdline = 2<<3 | lenDelim
	tagProcessName    = 6<<3 | lenDelim
	tagProcessStart   = 7<<3 | varint // start_timestamp_ns
	// ThreadDescriptor, track_event/thread_descriptor.proto
	tagThreadPid  = 1<<3 | varint
	tagThreadTid  = 2<<3 | varint
	tagThreadName = 5<<3 | lenDelim
	// CounterDescriptor, track_event/counter_descriptor.proto
	tagCounterUnit = 6<<3 | lenDelim // unit_name

	// ProcessTree, ps/process_tree.proto
	tagTreeProcess = 1<<3 | lenDelim
	tagTreePid     = 1<<3 | varint
	tagTreePPid    = 2<<3 | varint
	tagTreeCmdline = 3<<3 | lenDelim
	tagTreeIsComm  = 9<<3 | varint // cmdline_is_comm

	// TrackEvent, track_event/track_event.proto
	tagAnnotation      = 4<<3 | lenDelim // debug_annotations
	tagType            = 9<<3 | varint
	tagNameIID         = 10<<3 | varint
	tagCounterValue    = 30<<3 | varint
	tagFlow            = 47<<3 | fixed64 // flow_ids
	tagTerminatingFlow = 48<<3 | fixed64 // terminating_flow_ids

	typeBegin   = 1 // TYPE_SLICE_BEGIN
	typeEnd     = 2
	typeInstant = 3
	typeCounter = 4

	// DebugAnnotation, track_event/debug_annotation.proto
	tagArgNameIID = 1<<3 | varint
	tagArgBool    = 2<<3 | varint
	tagArgUint    = 3<<3 | varint
	tagArgInt     = 4<<3 | varint
	tagArgString  = 6<<3 | lenDelim
	tagArgPointer = 7<<3 | varint

	// InternedData, interned_data/interned_data.proto
	tagEventNames    = 2<<3 | lenDelim
	tagArgNames      = 3<<3 | lenDelim // debug_annotation_names
	tagFunctionNames = 5<<3 | lenDelim
	tagFrames        = 6<<3 | lenDelim
	tagCallstacks    = 7<<3 | lenDelim
	tagBuildIDs      = 16<<3 | lenDelim
	tagMappingPaths  = 17<<3 | lenDelim
	tagMappings      = 19<<3 | lenDelim
	tagKernelSymbols = 26<<3 | lenDelim
	// EventName, DebugAnnotationName and InternedString
	tagInternedIID  = 1<<3 | varint
	tagInternedName = 2<<3 | lenDelim

	// FtraceEventBundle, ftrace/ftrace_event_bundle.proto
	tagBundleCPU     = 1<<3 | varint
	tagBundleEvent   = 2<<3 | lenDelim
	tagBundleCompact = 4<<3 | lenDelim // compact_sched
	// FtraceEventBundle.CompactSched; the columns are packed
	tagSwitchTime   = 1<<3 | lenDelim
	tagSwitchState  = 2<<3 | lenDelim
	tagSwitchPid    = 3<<3 | lenDelim
	tagSwitchPrio   = 4<<3 | lenDelim
	tagCommTable    = 5<<3 | lenDelim // intern_table
	tagSwitchComm   = 6<<3 | lenDelim
	tagWakingTime   = 7<<3 | lenDelim
	tagWakingPid    = 8<<3 | lenDelim
	tagWakingCPU    = 9<<3 | lenDelim
	tagWakingPrio   = 10<<3 | lenDelim
	tagWakingComm   = 11<<3 | lenDelim
	tagWakingCommon = 12<<3 | lenDelim // waking_common_flags
	// FtraceEvent, ftrace/ftrace_event.proto
	tagFtraceTime    = 1<<3 | varint
	tagFtracePid     = 2<<3 | varint
	tagSchedSwitch   = 4<<3 | lenDelim
	tagCPUFrequency  = 11<<3 | lenDelim
	tagBlockedReason = 18<<3 | lenDelim // sched_blocked_reason
	tagSchedWaking   = 20<<3 | lenDelim
	// SchedSwitchFtraceEvent, SchedWakingFtraceEvent and SchedBlockedReasonFtraceEvent, ftrace/sched.proto
	tagPrevPid       = 2<<3 | varint
	tagPrevState     = 4<<3 | varint
	tagNextPid       = 6<<3 | varint
	tagWakeComm      = 1<<3 | lenDelim
	tagWakePid       = 2<<3 | varint
	tagWakePrio      = 3<<3 | varint
	tagWakeSuccess   = 4<<3 | varint
	tagWakeCPU       = 5<<3 | varint
	tagBlockedPid    = 1<<3 | varint
	tagBlockedCaller = 2<<3 | varint // an interned kernel symbol
	tagBlockedIO     = 3<<3 | varint
	// CpuFrequencyFtraceEvent, ftrace/power.proto
	tagFrequencyState = 1<<3 | varint
	tagFrequencyCPU   = 2<<3 | varint

	// PerfSampleDefaults and PerfSample, profiling/profile_packet.proto
	tagTimebase    = 1<<3 | lenDelim
	tagSampleCPU   = 1<<3 | varint
	tagSamplePid   = 2<<3 | varint
	tagSampleTid   = 3<<3 | varint
	tagSampleStack = 4<<3 | varint // callstack_iid
	tagSampleMode  = 5<<3 | varint // cpu_mode
	tagSampleCount = 6<<3 | varint // timebase_count
	tagSampleError = 16<<3 | varint

	modeKernel = 1
	modeUser   = 2

	// PerfEvents.Timebase, common/perf_events.proto
	tagTimebaseFrequency = 2<<3 | varint
	tagTimebaseCounter   = 4<<3 | varint

	counterCPUClock = 1
	counterCycles   = 10

	// Mapping, Frame and Callstack, profiling/profile_common.proto
	tagMappingBuild = 2<<3 | varint
	tagMappingStart = 4<<3 | varint
	tagMappingEnd   = 5<<3 | varint
	tagMappingPath  = 7<<3 | varint // path_string_ids
	tagMappingExact = 8<<3 | varint // exact_offset
	tagFrameName    = 2<<3 | varint
	tagFrameMapping = 3<<3 | varint
	tagFramePC      = 4<<3 | varint // rel_pc
	tagStackFrame   = 2<<3 | varint
)
