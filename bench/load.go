package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// What a load may be asked for.
const (
	loadConnectionsMax = 10_000
	loadRateMax        = 1_000_000 // requests a second: one takes longer than its turn by then
	loadTimeMax        = time.Hour
)

// errLoad is a load that can't be run as it is described.
var errLoad = errors.New("load")

// run puts the load on the target and returns what came back within the measured time. It ends with an error that says so when
// the target is gone, and with that of the context.
func (l *load) run(ctx context.Context) (*tally, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	return l.drive(ctx, loadPatience)
}

// check refuses what would not end, or would measure nothing.
func (l *load) check() error {
	switch {
	case l.asker == nil:
		return fmt.Errorf("%w: nothing to ask", errLoad)
	case l.connections < 1 || l.connections > loadConnectionsMax:
		return fmt.Errorf("%w: %d connections, want 1 to %d", errLoad, l.connections, loadConnectionsMax)
	case !(l.rate >= 0 && l.rate <= loadRateMax):
		return fmt.Errorf("%w: %v requests/s, want 0 (as fast as it goes) to %d", errLoad, l.rate, loadRateMax)
	case l.warmup < 0 || l.warmup > loadTimeMax:
		return fmt.Errorf("%w: warm-up of %v, want 0 to %v", errLoad, l.warmup, loadTimeMax)
	case l.measure <= 0 || l.measure > loadTimeMax:
		return fmt.Errorf("%w: measured for %v, want more than 0 and at most %v", errLoad, l.measure, loadTimeMax)
	}
	return nil
}

// loadPatience is how long a run waits at its end for what is still owed, and for a connection to be opened.
const loadPatience = 10 * time.Second
