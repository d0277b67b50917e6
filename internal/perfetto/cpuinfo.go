package perfetto

// CPUInfo describes one processor.
type CPUInfo struct {
	Name     string // what it is, for people
	Capacity int    // of 1024; 0: unknown. Perfetto makes clusters of equal ones if it knows all
}

const (
	tagCPUInfo = 67<<3 | lenDelim // TracePacket.cpu_info

	// CpuInfo and CpuInfo.Cpu, protos/perfetto/trace/system_info/cpu_info.proto, v55.
	tagCPUs         = 1<<3 | lenDelim
	tagCPUProcessor = 1<<3 | lenDelim
	tagCPUCapacity  = 3<<3 | varint
)

// CPUs describes the machine's processors, in the order of their numbers from 0 on. Once is enough.
func (w *Writer) CPUs(list []CPUInfo) {
	p := w.globalPacket()
	info := w.buf.open(tagCPUInfo)
	for i := range list {
		c := w.buf.open(tagCPUs)
		w.buf.string(tagCPUProcessor, list[i].Name)
		if list[i].Capacity > 0 {
			w.buf.uint(tagCPUCapacity, uint64(list[i].Capacity))
		}
		w.buf.close(c)
	}
	w.buf.close(info)
	w.buf.close(p)
}
