package actors

import (
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
)

// ErrUnknownRecord means that a newer version of the program wrote the record or snapshot. The files were not changed.
var ErrUnknownRecord = record.ErrUnknown

// errNoRates is a shared value: do not modify it.
var errNoRates = &engine.Error{Code: engine.CodeDataUnavailable, Message: "no rates have been published yet", RetryAfter: retryNoRates}

// Values of Error.RetryAfter while the node cannot answer reads.
const (
	retryNoRates   = 60 * time.Second
	retryReplayMin = time.Second
	retryReplayMax = 30 * time.Second
	retryReplay    = 2 * time.Second // while the speed of the replay is unknown
)
