package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/engine"
)

// leaderOperation is a change that every node of a cluster accepts, and that the leader makes. A node that does not
// lead sends the query to the leader, and answers when it has itself applied what the leader has changed. A node
// without a cluster does not use it.
type leaderOperation[Q, A any] struct {
	name string
	run  func(*System, Q) (A, error)
}

// operations are all operations by name, for the queries of other nodes. An answer is sent with an error too.
var operations = map[string]func(*System, []byte) (answer any, err error){}

func newOperation[Q, A any](name string, run func(*System, Q) (A, error)) *leaderOperation[Q, A] {
	operations[name] = func(s *System, data []byte) (any, error) {
		var query Q
		if err := json.Unmarshal(data, &query); err != nil {
			return nil, accounts.Internal(fmt.Errorf("read the query of another node: %w", err))
		}
		return run(s, query)
	}
	return &leaderOperation[Q, A]{name, run}
}

// Request and response of a query to the leader, in JSON.
type (
	leaderRequest struct {
		Operation string
		Query     any
	}
	receivedRequest struct {
		Operation string
		Query     json.RawMessage
	}
	leaderResponse[A any] struct {
		NotLeader bool   // nothing was done
		Sequence  uint64 // of the leader's newest record after the operation
		Answer    A
		Error     *responseError
	}
	responseError struct {
		Code           engine.Code
		Message, Cause string
		RetryAfter     time.Duration
	}
)

const (
	retryLeader     = 10 * time.Millisecond  // time after which a query is sent again that no leader has accepted
	problemInterval = 250 * time.Millisecond // interval of checks whether a node can apply a change
)

// do runs the operation on the leader. It tries again only while it is certain that nothing was done: during the
// election of a leader.
func (o *leaderOperation[Q, A]) do(s *System, query Q) (answer A, err error) {
	if err := s.beginChange(); err != nil {
		return answer, err
	}
	defer s.calls.leave()
	ctx, cancel := context.WithTimeout(context.Background(), s.config.WriteTimeout)
	defer cancel()
	for {
		if _, leads := s.log.Decides(); leads {
			answer, err = o.run(s, query)
		} else {
			answer, err = o.ask(ctx, s, query)
		}
		if !errors.Is(err, commitlog.ErrNotLeader) {
			return answer, err
		}
		if problem := s.log.WriteProblem(); problem != nil {
			return answer, commitlog.ReadOnly(problem)
		}
		if !pause(ctx, retryLeader) {
			return answer, err
		}
	}
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ask sends the query to the leader. After an answer it waits until this node has applied the leader's change.
func (o *leaderOperation[Q, A]) ask(ctx context.Context, s *System, query Q) (answer A, err error) {
	body, err := json.Marshal(leaderRequest{o.name, query})
	if err != nil {
		return answer, accounts.Internal(err)
	}
	data, err := s.log.Shared.Ask(ctx, body)
	if err != nil {
		return answer, err
	}
	var r leaderResponse[A]
	if err := json.Unmarshal(data, &r); err != nil {
		return answer, accounts.Internal(fmt.Errorf("read the leader's answer: %w", err))
	}
	switch {
	case r.NotLeader:
		return answer, commitlog.ErrNotLeader
	case r.Error != nil:
		return r.Answer, r.Error.error()
	case !s.awaitApplied(ctx, r.Sequence):
		return answer, commitlog.ErrOutcomeUnknown
	}
	return r.Answer, nil
}

// awaitApplied waits until this node has applied all records up to a sequence. It returns false if it can't.
func (s *System) awaitApplied(ctx context.Context, sequence uint64) bool {
	for {
		wait, cancel := context.WithTimeout(ctx, problemInterval)
		err := s.log.AwaitApplied(wait, sequence)
		cancel()
		if err == nil {
			return true
		}
		if ctx.Err() != nil || s.log.WriteProblem() != nil {
			return false
		}
	}
}

// answer runs an operation for another node, if this node leads.
func (s *System) answer(body []byte) []byte {
	var q receivedRequest
	var r leaderResponse[any]
	err := json.Unmarshal(body, &q)
	run := operations[q.Operation]
	_, leads := s.log.Decides()
	switch {
	case s.available() != nil || !leads:
		r.NotLeader = true
	case err != nil || run == nil:
		r.Error = responseErrorOf(&engine.Error{Code: engine.CodeInternalError, Message: "the leader does not know the operation; do all nodes have the same version?"})
	default:
		if r.Answer, err = run(s, q.Query); errors.Is(err, commitlog.ErrNotLeader) {
			r = leaderResponse[any]{NotLeader: true}
		} else if err != nil {
			r.Error = responseErrorOf(err)
		}
	}
	r.Sequence = s.Sequence()
	data, err := json.Marshal(&r)
	if err != nil {
		panic(err) // all answers of operations have an encoding
	}
	return data
}

func responseErrorOf(err error) *responseError {
	if err == nil {
		return nil
	}
	known := accounts.AsEngineError(err)
	e := &responseError{Code: known.Code, Message: known.Message, RetryAfter: known.RetryAfter}
	if known.Cause != nil {
		e.Cause = known.Cause.Error()
	}
	return e
}

func (e *responseError) error() error {
	if e == nil {
		return nil
	}
	switch e.Message {
	case commitlog.ErrOutcomeUnknown.Message:
		return commitlog.ErrOutcomeUnknown
	case commitlog.ErrNotLeader.Message:
		return commitlog.ErrNotLeader
	}
	err := &engine.Error{Code: e.Code, Message: e.Message, RetryAfter: e.RetryAfter}
	if e.Cause != "" {
		err.Cause = errors.New("at the leader: " + e.Cause)
	}
	return err
}
