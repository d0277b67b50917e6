package ctl

import "time"

// Status is what the daemon knows about itself and its targets at one moment. Counts are since the daemon started, or
// since it found the target, whichever is later. It is a copy: nobody changes it later.
type Status struct {
	Time     time.Time `json:"time"` // the wall clock when it was taken
	Daemon   Daemon    `json:"daemon"`
	Targets  []Target  `json:"targets"`
	Triggers []Trigger `json:"triggers"`
	Kept     Kept      `json:"kept"`
}

// Daemon is braid itself.
type Daemon struct {
	PID          int               `json:"pid"`
	Version      string            `json:"version"`
	UptimeNs     uint64            `json:"uptime_ns"`
	CPUNs        uint64            `json:"cpu_ns"`    // user and system time together
	RSSBytes     uint64            `json:"rss_bytes"` // resident memory, shared pages included
	RingBytes    uint64            `json:"ring_bytes"`
	Kernel       string            `json:"kernel"`                  // "on", "off", or why there is no kernel side
	HooksMissing []string          `json:"hooks_missing,omitempty"` // hooks that this kernel does not have
	Lost         map[string]uint64 `json:"lost,omitempty"`          // losses that belong to no target, by name
}

// Target is one traced process.
type Target struct {
	PID         int               `json:"pid"`
	Name        string            `json:"name"`
	UID         int               `json:"uid"`
	State       string            `json:"state"` // "on", "off", "flushing", "ended", "kernel" for one without stubs
	Threads     []Thread          `json:"threads,omitempty"`
	Records     uint64            `json:"records"`
	RingBytes   uint64            `json:"ring_bytes"`
	Flushes     uint64            `json:"flushes"`
	Lost        map[string]uint64 `json:"lost,omitempty"`
	LastTrigger string            `json:"last_trigger,omitempty"`
	LastFlush   time.Time         `json:"last_flush,omitzero"`
	Note        string            `json:"note,omitempty"` // why it is not recorded, or not kept: no consent, say
}

// Thread is one thread of a target that has reached a trace point.
type Thread struct {
	TID       int    `json:"tid"`
	Name      string `json:"name"`
	On        bool   `json:"on"`
	Records   uint64 `json:"records"`
	Wraps     uint64 `json:"wraps"` // how often its ring began anew
	RingBytes uint64 `json:"ring_bytes"`
	Swaps     uint64 `json:"swaps"`
}

// Trigger is one configured trigger.
type Trigger struct {
	Name       string    `json:"name"`
	Fired      uint64    `json:"fired"`
	Suppressed uint64    `json:"suppressed"` // conditions that were met, but too soon after the last time
	Last       time.Time `json:"last,omitzero"`
}

// Kept is what lies in the folder of traces.
type Kept struct {
	Dir     string            `json:"dir,omitempty"`
	Traces  int               `json:"traces"`
	Bytes   int64             `json:"bytes"`
	Refused map[string]uint64 `json:"refused,omitempty"` // traces that were not kept, by reason
	Removed map[string]uint64 `json:"removed,omitempty"` // traces that had to go, by reason
}

// Flushed is one trace that a flush wrote, or why it wrote none.
type Flushed struct {
	PID     int    `json:"pid"`
	Name    string `json:"name"`
	Path    string `json:"path,omitempty"` // empty if no trace was kept
	Records uint64 `json:"records"`
	Bytes   int64  `json:"bytes"`
	Error   string `json:"error,omitempty"`
}
