package trigger

// Engine decides which rules fire. It is not for use by several goroutines at a time.
type Engine struct {
	config *Config
}

// NewEngine returns an engine for the rules of a configuration.
func NewEngine(c *Config) *Engine { return &Engine{config: c} }

// Observe takes an observation and returns what fires.
func (e *Engine) Observe(o Observation) []Fired { return nil }

// Tick says that it is now, CLOCK_BOOTTIME ns, and returns what fires because nothing has changed until then.
func (e *Engine) Tick(now uint64) []Fired { return nil }

// Next is when Tick should be called at the latest, CLOCK_BOOTTIME ns; 0: nothing is pending.
func (e *Engine) Next() uint64 { return 0 }

// Forget drops what is known of a process that has ended.
func (e *Engine) Forget(target int) {}
