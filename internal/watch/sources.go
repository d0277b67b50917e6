package watch

import "context"

func (d *Daemon) openSources(ctx context.Context) error  { return nil }
func (d *Daemon) serveMetrics(ctx context.Context) error { return nil }
func (d *Daemon) watchMethods(t *target)                 {}
