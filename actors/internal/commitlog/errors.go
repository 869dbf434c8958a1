package commitlog

import (
	"errors"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

const (
	retryReadOnly   = 30 * time.Second
	retryNoMajority = 2 * time.Second // an election takes about as long
)

// ErrPosition means that the newest record of the journal has an unexpected number (sequence), because another process
// has written to the journal.
var ErrPosition = errors.New("the journal does not end with the expected record")

// ErrNoMajority is the cause of write errors while this node cannot reach a majority of the cluster.
var ErrNoMajority = errors.New("no majority of the cluster's members is reachable")

// ErrNotLeader means that the node that was asked for a change does not lead the cluster. Nothing was changed.
var ErrNotLeader = &engine.Error{
	Code: engine.CodeNoMajority, Message: "the nodes of the service are choosing their leader, so changes must wait; try again later", RetryAfter: retryNoMajority,
	Cause: errors.New("the node that was asked does not lead the cluster"),
}

// ErrOutcomeUnknown is returned for a change in progress when the cluster loses its leader or its majority.
var ErrOutcomeUnknown = engine.ErrOutcomeUnknown

// ReadOnly returns the error for a write while the journal accepts none. cause is ErrNoMajority, wal.ErrNoSpace, or the
// error that has stopped the journal.
func ReadOnly(cause error) *engine.Error {
	e := &engine.Error{Code: engine.CodeReadOnly, RetryAfter: retryReadOnly, Cause: cause}
	reason := "the node cannot write its log"
	switch {
	case errors.Is(cause, ErrNoMajority):
		e.Code, e.RetryAfter, reason = engine.CodeNoMajority, retryNoMajority, ErrNoMajority.Error()
	case errors.Is(cause, wal.ErrNoSpace):
		reason = "the disk of the node is nearly full"
	}
	e.Message = reason + ", so changes and new quota leases must wait; try again later"
	return e
}

// TooLarge returns the error for a write that does not fit into one batch of the journal.
func TooLarge(cause error) *engine.Error {
	return &engine.Error{
		Code: engine.CodePayloadTooLarge, Message: "the refresh is larger than a record can be; split it", Cause: cause,
	}
}

// writeError converts an error of Journal.Append into an error for callers of the API.
func writeError(err error) *engine.Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wal.ErrNoSpace):
		return ReadOnly(err)
	case errors.Is(err, wal.ErrLimit):
		return TooLarge(err)
	}
	return &engine.Error{
		Code: engine.CodeInternalError, Message: "the change may or may not have been kept; check it after the next start of the node", Cause: err,
	}
}
