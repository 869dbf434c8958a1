package terminal

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// repeatInterval is the shortest time between two lines about the same error of requests.
	repeatInterval = 10 * time.Second
	// repeatKeysMax is the largest number of different errors. Further ones count as the same if their messages are equal.
	repeatKeysMax = 16
	// requestAttr is the name of the attribute that marks a record about one request.
	requestAttr = "requestId"
)

// repeatLimiter is a slog.Handler that logs the same error of many requests at most once in repeatInterval, with the
// attribute repeated: how many such records it has left out before this one. Otherwise a full disk, for example, would
// cause a line for each request. Errors are the same if they differ only in the id of the request. All other records
// pass.
type repeatLimiter struct {
	slog.Handler
	*repeatedErrors
}

// repeatedErrors has the errors that were logged lately. Handlers that WithAttrs and WithGroup return share it.
type repeatedErrors struct {
	mu     sync.Mutex
	recent map[string]*repeatedError
}

// repeatedError is an error that was logged in the last repeatInterval.
type repeatedError struct {
	handler slog.Handler
	newest  slog.Record // the newest record that was left out
	count   int         // how many were left out
	timer   *time.Timer // calls endInterval
}

func newRepeatLimiter(h slog.Handler) *repeatLimiter {
	return &repeatLimiter{Handler: h, repeatedErrors: &repeatedErrors{recent: map[string]*repeatedError{}}}
}

// Handle implements slog.Handler.
func (l *repeatLimiter) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelWarn {
		if key, ofRequest := errorKey(record); ofRequest && l.leftOut(l.Handler, key, record) {
			return nil
		}
	}
	return l.Handler.Handle(ctx, record)
}

// errorKey returns a text that is equal for records about the same error. It returns false if the record is not about a
// request.
func errorKey(record slog.Record) (key string, ofRequest bool) {
	text := []byte(record.Message)
	record.Attrs(func(attr slog.Attr) bool {
		if attr.Key == requestAttr {
			ofRequest = true
		} else {
			text = append(append(text, '\n'), attr.String()...)
		}
		return true
	})
	return string(text), ofRequest
}

// leftOut reports whether a record must not be logged, because one with this key was logged lately. It counts the
// record, or begins an interval.
func (e *repeatedErrors) leftOut(h slog.Handler, key string, record slog.Record) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.recent[key] == nil && len(e.recent) >= repeatKeysMax {
		key = record.Message
	}
	if r := e.recent[key]; r != nil {
		r.newest = record.Clone()
		r.count++
		return true
	}
	e.recent[key] = &repeatedError{handler: h, timer: time.AfterFunc(repeatInterval, func() { e.endInterval(key) })}
	return false
}

// endInterval logs how many records with a key were left out, and begins the next interval. If there were none, the
// next record is logged at once.
func (e *repeatedErrors) endInterval(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.recent[key]
	if r == nil || r.count == 0 {
		delete(e.recent, key)
		return
	}
	r.report()
	r.timer.Reset(repeatInterval)
}

// report logs the newest record that was left out, with their number. The caller must hold mu.
func (r *repeatedError) report() {
	r.newest.AddAttrs(slog.Int("repeated", r.count))
	_ = r.handler.Handle(context.Background(), r.newest) // the error can't be reported: writing the log has failed
	r.count = 0
}

// close logs how many records were left out, and stops all timers.
func (e *repeatedErrors) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, r := range e.recent {
		r.timer.Stop()
		if r.count > 0 {
			r.report()
		}
		delete(e.recent, key)
	}
}

// WithAttrs implements slog.Handler.
func (l *repeatLimiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &repeatLimiter{l.Handler.WithAttrs(attrs), l.repeatedErrors}
}

// WithGroup implements slog.Handler.
func (l *repeatLimiter) WithGroup(name string) slog.Handler {
	return &repeatLimiter{l.Handler.WithGroup(name), l.repeatedErrors}
}
