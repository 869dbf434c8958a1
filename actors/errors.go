package actors

import (
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
)

// ErrUnknownRecord reports a record or snapshot of a newer version of the program. Nothing was changed.
var ErrUnknownRecord = record.ErrUnknown

// errNoRates is shared and must not be changed.
var errNoRates = &engine.Error{Code: engine.CodeDataUnavailable, Message: "no rates have been published yet", RetryAfter: retryNoRates}

// Values of Retry-After (decision E4).
const (
	retryNoRates   = 60 * time.Second
	retryReplayMin = time.Second
	retryReplayMax = 30 * time.Second
	retryReplay    = 2 * time.Second // while the speed of the replay is unknown
)
