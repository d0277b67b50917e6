// Package runtime holds the C runtime of traced programs, as source and as committed objects, and the layout of the
// memory that such a program shares with its recorder (src/arena.h, mirrored here).
package runtime

// The constants of arena.h; see there.
const (
	ArenaMagic   uint64 = 0x414e455241445242
	SessionMagic uint64 = 0x534553534442524f
	Version      uint32 = 4

	BlocksOff  = 0x10000
	BlockMax   = 2048
	ModulesOff = 0x90000
	ModuleMax  = 256
	RingsOff   = 0x100000 // and the size of all that lies before the rings
	AreaStride = 1 << 36
	AreaMax    = 65536
	AreaFirst  = 1 << 44

	NarrowStride = 1 << 28
	NarrowMax    = 65534

	CursorOff    uint64 = 0
	CursorAttend uint64 = 3
	CursorOn     uint64 = 7
	CursorTag    uint64 = 7

	PolicyNone uint32 = 0
	PolicyMain uint32 = 1
	PolicyAll  uint32 = 2

	StateFree     uint32 = 0
	StateClaiming uint32 = 1
	StateReady    uint32 = 2
	StateExiting  uint32 = 3

	APINone uint32 = 0
	APIOn   uint32 = 1
	APIOff  uint32 = 2

	// MaskStop are the bits of a mask that a recorder clears to ask for a stop, MaskSwap those for a swap.
	MaskStop uint64 = 7
	MaskSwap uint64 = 4

	// SessionEnv names the variable through which a program finds its recorder's session: a path that it can open.
	SessionEnv = "BRAID_SESSION"
	// MemoryName is what /proc/PID/maps calls an area.
	MemoryName = "/memfd:braid"
)

// Block mirrors struct braid_block. Cursor, Mask and Done are shared with the running program: access them atomically.
type Block struct {
	Cursor    uint64
	Mask      uint64
	Done      uint64
	RingAddr  uint64
	RingBytes uint64
	RingOff   uint64
	Start     uint64
	Tid       uint32
	State     uint32
	Want      uint32
	Uses      uint32
	Thread    uint64
	Exit      uint64
	Comm      [16]byte
	Rounds    uint64

	NextAddr, NextBytes, NextOff uint64
	PrevAddr, PrevBytes, PrevOff uint64
	PrevCursor, PrevDone         uint64
	PrevStart, PrevEnd           uint64
	Swaps                        uint32
	API                          uint32

	Opened   uint64
	Reserved [6]uint64
}

// Module mirrors struct braid_module.
type Module struct {
	Bias       uint64
	Low, High  uint64
	Loaded     uint64
	Unloaded   uint64
	BuildIDLen uint32
	State      uint32
	BuildID    [32]byte
	Path       [432]byte
}

// Header mirrors struct braid_header.
type Header struct {
	Magic           uint64
	Version         uint32
	Pid             uint32
	Base            uint64
	Bytes           uint64
	CounterHz       uint64
	Started         uint64
	RingBytes       uint64
	Policy          uint32
	Armed           uint32
	BlockUsed       uint32
	ModuleUsed      uint32
	RingNext        uint64
	LostThreads     uint64
	LostRings       uint64
	LostModules     uint64
	SessionFdClosed uint32
	Parent          uint32
	TriggerSeq      uint32
	TriggerLock     uint32
	TriggerTid      uint32
	_               uint32
	TriggerAt       uint64
	TriggerLost     uint64
	TriggerWhy      [64]byte
	Reserved        [38]uint64
	Dummy           Block
	Parked          Block
}

// Session mirrors struct braid_session.
type Session struct {
	Magic      uint64
	Version    uint32
	AreaMax    uint32
	AreaStride uint64
	AreaNext   uint32
	Policy     uint32
	RingBytes  uint64
	Armed      uint32
	NarrowNext uint32
	AreaFirst  uint64

	NarrowStride uint64
	NarrowMax    uint32
	Reserved     uint32
}
