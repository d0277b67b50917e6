package inline

import "math/bits"

// Unknown is the index of a method of which nothing is known: it was entered before the first record that is left, or
// its pointer was overwritten.
const Unknown uint32 = 0

// MethodState says how much of a method is known.
type MethodState uint8

// What a Methods table knows of a method.
const (
	MethodUnknown    MethodState = iota // index Unknown alone
	MethodKnown                         // given to Add
	MethodUnresolved                    // seen in a record, never given to Add
	MethodAmbiguous                     // a narrow word that fits two known methods
)

// Method is one row of a Methods table.
type Method struct {
	// Addr is the method pointer; only its low half if State is MethodAmbiguous, or MethodUnresolved and not Wide.
	Addr  uint64
	State MethodState
	Wide  bool // unresolved: Addr is whole
}

// Methods gives the methods that occur in records small indices, in the order in which they come. Narrow words are
// found in a table with open addressing, since this is done for every entry; whole pointers, which are rare, in a map.
//
// Decoding adds methods that it meets and does not find, so one table must not be used by two goroutines at once.
type Methods struct {
	// Thumb says that bit 0 of a method pointer selects the instruction set and is no part of the address, as on 32-bit
	// ARM. Add is given addresses without it; records may hold it.
	Thumb bool

	rows []Method
	// narrow holds word<<32 | index+1, or 0 where free; its length is a power of two and at least twice the number
	// of its entries.
	narrow     []uint64
	shift      uint8 // 64 - log2(len(narrow))
	used       int
	wide       map[uint64]uint32
	reserved   map[uint32]uint32 // of the low halves that are no narrow words
	collisions int
}

// NewMethods returns an empty table with room for about n methods.
func NewMethods(n int) *Methods {
	n = max(n, 16)
	m := &Methods{rows: make([]Method, 1, n+1), wide: make(map[uint64]uint32), reserved: make(map[uint32]uint32)}
	m.resize(bits.Len(uint(n)*2 - 1))
	pos, _, _ := m.find(WordExit)
	m.insert(pos, WordExit, Unknown)
	return m
}

// Len is the number of methods, Unknown included; indices are below it.
func (m *Methods) Len() int { return len(m.rows) }

// Row is the method with an index that this table gave out.
func (m *Methods) Row(index uint32) Method { return m.rows[index] }

// Collisions is the number of low halves that fit more than one of the methods given to Add.
func (m *Methods) Collisions() int { return m.collisions }

// Add makes a method known, and returns its index. Adding it twice is harmless. All methods must be added before
// records are decoded: a word that was met before stays unresolved.
func (m *Methods) Add(addr uint64) uint32 {
	if i, ok := m.wide[addr]; ok {
		return i
	}
	i := m.appendRow(Method{Addr: addr, State: MethodKnown})
	m.wide[addr] = i
	word := uint32(addr)
	if !Narrow(addr) {
		old, ok := m.reserved[word]
		if !ok {
			m.reserved[word] = i
		} else if m.rows[old].State == MethodKnown {
			m.reserved[word] = m.ambiguous(word)
		}
		return i
	}
	pos, old, ok := m.find(word)
	if !ok {
		m.insert(pos, word, i)
		return i
	}
	if m.rows[old].State == MethodKnown {
		m.narrow[pos] = uint64(word)<<32 | uint64(m.ambiguous(word)+1)
	}
	return i
}

// ambiguous makes a row for a low half that a second known method has.
func (m *Methods) ambiguous(word uint32) uint32 {
	m.collisions++
	return m.appendRow(Method{Addr: uint64(word), State: MethodAmbiguous})
}

// Narrow is the index for a record's 32-bit word, which is Unknown for an exit. A word that no known method has becomes
// an unresolved method.
func (m *Methods) Narrow(word uint32) uint32 {
	if e := m.again(word); e != 0 {
		return uint32(e) - 1
	}
	return m.unresolved(word)
}

// Low is the index for a low half that stands in a framed record, where it may be any number: a narrow word, or the low
// half of a method whose entries are wide elsewhere.
func (m *Methods) Low(half uint32) uint32 {
	if half > WordReservedMax {
		return m.Narrow(half)
	}
	i, ok := m.reserved[half]
	if !ok {
		i = m.appendRow(Method{Addr: uint64(half), State: MethodUnresolved})
		m.reserved[half] = i
	}
	return i
}

// again returns the table's entry for a word that was met before, or 0.
func (m *Methods) again(word uint32) uint64 {
	for h := m.hash(word); ; h++ {
		if e := m.narrow[h&uint64(len(m.narrow)-1)]; e == 0 || uint32(e>>32) == word {
			return e
		}
	}
}

// Wide is the index for a whole method pointer. One that is not known becomes an unresolved method, the same as that
// of its narrow word if there is none for the word yet.
func (m *Methods) Wide(addr uint64) uint32 {
	if m.Thumb {
		addr &^= 1
	}
	if i, ok := m.wide[addr]; ok {
		return i
	}
	if Narrow(addr) {
		pos, i, ok := m.find(uint32(addr))
		if ok && m.rows[i].State == MethodUnresolved && !m.rows[i].Wide {
			m.rows[i].Addr, m.rows[i].Wide = addr, true
			m.wide[addr] = i
			return i
		}
		if !ok {
			i = m.appendRow(Method{Addr: addr, State: MethodUnresolved, Wide: true})
			m.insert(pos, uint32(addr), i)
			m.wide[addr] = i
			return i
		}
	}
	i := m.appendRow(Method{Addr: addr, State: MethodUnresolved, Wide: true})
	m.wide[addr] = i
	return i
}

// Resumed is the index for the method pointer of a resumed record. It differs from Wide only where the entries that it
// refers to can not tell two methods apart: then it is as ambiguous as they are.
func (m *Methods) Resumed(addr uint64) uint32 {
	if m.Thumb {
		addr &^= 1
	}
	if Narrow(addr) {
		if _, i, ok := m.find(uint32(addr)); ok && m.rows[i].State == MethodAmbiguous {
			return i
		}
	}
	return m.Wide(addr)
}

func (m *Methods) unresolved(word uint32) uint32 {
	if m.Thumb && word&1 != 0 && Narrow(uint64(word&^1)) {
		i := m.Narrow(word &^ 1)
		pos, _, _ := m.find(word)
		m.insert(pos, word, i)
		return i
	}
	i := m.appendRow(Method{Addr: uint64(word), State: MethodUnresolved})
	pos, _, _ := m.find(word)
	m.insert(pos, word, i)
	return i
}

func (m *Methods) appendRow(r Method) uint32 {
	m.rows = append(m.rows, r)
	return uint32(len(m.rows) - 1)
}

// hashFactor is 2^64 divided by the golden ratio.
const hashFactor = 0x9e3779b97f4a7c15

// hash spreads function addresses, which are multiples of 16 and close together, by the top bits of a product.
func (m *Methods) hash(word uint32) uint64 {
	return uint64(word) * hashFactor >> m.shift
}

// find returns the word's place in narrow, or the free place where it belongs.
func (m *Methods) find(word uint32) (pos uint64, index uint32, ok bool) {
	mask := uint64(len(m.narrow) - 1)
	for pos = m.hash(word) & mask; ; pos = (pos + 1) & mask {
		switch e := m.narrow[pos]; {
		case e == 0:
			return pos, 0, false
		case uint32(e>>32) == word:
			return pos, uint32(e) - 1, true
		}
	}
}

func (m *Methods) insert(pos uint64, word, index uint32) {
	m.narrow[pos] = uint64(word)<<32 | uint64(index+1)
	if m.used++; m.used*2 > len(m.narrow) {
		m.resize(bits.Len(uint(len(m.narrow))))
	}
}

func (m *Methods) resize(log int) {
	old := m.narrow
	m.narrow = make([]uint64, 1<<log)
	m.shift = uint8(64 - log)
	for _, e := range old {
		if e != 0 {
			pos, _, _ := m.find(uint32(e >> 32))
			m.narrow[pos] = e
		}
	}
}
