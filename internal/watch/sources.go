package watch

import "context"

func (d *Daemon) openSources(ctx context.Context) error { return nil }
