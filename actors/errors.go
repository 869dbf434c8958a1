package actors

import (
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
)

// ErrUnknownRecord says that the log or a snapshot holds something that only a newer program understands.
// Nothing was changed.
var ErrUnknownRecord = record.ErrUnknown

// errNoRates is shared: do not change it.
var errNoRates = &engine.Error{Code: engine.CodeDataUnavailable, Message: "no rates have been published yet", RetryAfter: retryNoRates}

// When another try makes sense.
const (
	retryNoRates   = 60 * time.Second // E4
	retryReplayMin = time.Second      // E4
	retryReplayMax = 30 * time.Second
	retryReplay    = 2 * time.Second // before anything is known of the pace
)
