package trigger

// Observation is what somebody saw who watches for the rules.
type Observation struct {
	Time   uint64 // CLOCK_BOOTTIME ns: when it was so
	Target int    // pid of the process; 0: the system, which counts for every process
	Tid    int    // 0: not one thread
	Kind   Kind
	// Condition is the ID of the one condition that it is about; 0: of all of its kind whose pattern fits Subject.
	Condition int
	// Subject is a method's name, a thermal zone, a resource of pressure, or why a program or somebody on the socket asked.
	Subject string
	// Value is what is compared with the condition's limit: ns of durations; of Pressure the ns of stall in a window; faults
	// per second, °C, percent; the number of the signal of Crash and Signal.
	Value float64
}

// Fired says that a rule's condition was met.
type Fired struct {
	Rule   *Rule
	Time   uint64 // CLOCK_BOOTTIME ns: when what completed the condition was so
	Target int    // pid; 0: the system, and with it all programs
	Tid    int    // 0: not one thread
	Kind   Kind   // of the condition that completed it
	Method string // that the rule is about; "" not one method
	Reason string // a sentence for the user
	// Values are measured values and limits of all parts that were true; names end in their unit.
	Values map[string]float64
}
