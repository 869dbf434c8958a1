package main

import (
	"context"
	"fmt"
	"time"
)

func (l *load) drive(context.Context, time.Duration) (*tally, error) {
	return nil, fmt.Errorf("%w: not yet", errLoad)
}
