package inline

// Twin makes another method known at an address that has one: that of a library which was loaded where another one had
// been before. No record leads to its index. The decoder gives events the index that Add returned, and whoever knows
// when each of the two was there tells by the event's time.
func (m *Methods) Twin(addr uint64) uint32 {
	return m.appendRow(Method{Addr: addr, State: MethodKnown})
}
