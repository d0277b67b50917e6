package counter

const name = "cntvct_el0"

//go:noescape
func now() uint64

//go:noescape
func hz() uint64
