package perfetto

import "math/bits"

// State is the state in which a thread left its CPU, as sched_switch reports it since Linux 4.14
// (TASK_REPORT in include/linux/sched.h, v6.12).
type State uint16

// The states.
const (
	Runnable  State = 0 // R: gave its CPU up, but wants to run on
	Sleeping  State = 0x01
	Blocked   State = 0x02 // D: sleeps uninterruptibly
	Stopped   State = 0x04
	Traced    State = 0x08
	Dead      State = 0x10
	Zombie    State = 0x20
	Parked    State = 0x40
	Idle      State = 0x80  // I: a kernel thread without work
	Preempted State = 0x100 // R+: runnable, but another thread took its CPU
)

// TaskState translates task_struct.__state of a thread that leaves its CPU, as __task_state_index does
// (include/linux/sched.h, v6.12): of several bits, the highest one of TASK_REPORT.
func TaskState(raw uint32, preempted bool) State {
	const (
		taskReport   = 0x7f // up to and with TASK_PARKED
		taskDead     = 0x80
		taskNoload   = 0x400
		taskIdle     = 0x2 | taskNoload
		taskRTLock   = 0x1000
		taskFrozen   = 0x8000
		taskWaitsToo = taskRTLock | taskFrozen
	)
	switch report := raw & taskReport; {
	case preempted:
		return Preempted
	case raw&taskIdle == taskIdle:
		return Idle
	case raw&taskDead != 0:
		return Dead
	case report == 0 && raw&taskWaitsToo != 0:
		return Blocked
	case report == 0:
		return Runnable
	default:
		return State(1) << (bits.Len32(report) - 1)
	}
}
