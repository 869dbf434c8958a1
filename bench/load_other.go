//go:build !linux

package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// drive refuses: the load waits for all its connections with epoll, which only Linux has.
func (l *load) drive(context.Context, time.Duration) (*tally, error) {
	return nil, fmt.Errorf("%w: it needs Linux, this is %s", errLoad, runtime.GOOS)
}
