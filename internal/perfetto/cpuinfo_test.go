package perfetto

import "testing"

func TestCPUs(t *testing.T) {
	tr := write(t, func(w *Writer) {
		w.CPUs([]CPUInfo{{Name: "Cortex-A55 (little)", Capacity: 400}, {Name: "Cortex-A55 (little)", Capacity: 400}, {},
			{Name: "Cortex-X1 (big)", Capacity: 1024}})
	})
	want(t, tr, "processors", "select cpu, processor, capacity from cpu order by cpu",
		"0 Cortex-A55 (little) 400", "1 Cortex-A55 (little) 400", "2 NULL NULL", "3 Cortex-X1 (big) 1024")
	tr = write(t, func(w *Writer) {
		w.CPUs([]CPUInfo{{Capacity: 400}, {Capacity: 400}, {Capacity: 1024}})
	})
	want(t, tr, "clusters", "select cpu, cluster_id from cpu order by cpu", "0 0", "1 0", "2 1")
}
