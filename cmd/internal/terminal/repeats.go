package terminal

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	repeatInterval = 10 * time.Second // minimum time between two lines about the same error
	repeatKeysMax  = 16               // maximum number of different errors; further ones count as one
	requestAttr    = "requestId"      // the attribute that marks a record about one request
)

// repeatLimiter is a slog.Handler. It logs equal errors of requests at most once in repeatInterval, so that a full
// disk, for example, does not cause a line for each request. Errors are equal if they differ only in the id of the
// request. The attribute repeated is the number of records omitted since the previous line. All other records pass.
type repeatLimiter struct {
	slog.Handler
	recent *recentErrors
}

// recentErrors holds the logged errors by text. Handlers from WithAttrs and WithGroup share it.
type recentErrors struct {
	mu     sync.Mutex
	errors map[string]recentError
}

type recentError struct {
	loggedAt time.Time
	leftOut  int // number of equal records omitted since then
}

func newRepeatLimiter(h slog.Handler) *repeatLimiter {
	return &repeatLimiter{h, &recentErrors{errors: map[string]recentError{}}}
}

// Handle implements slog.Handler.
func (l *repeatLimiter) Handle(ctx context.Context, record slog.Record) error {
	key, ofRequest := record.Message, false
	record.Attrs(func(attr slog.Attr) bool {
		if attr.Key == requestAttr {
			ofRequest = true
		} else {
			key += "\n" + attr.String()
		}
		return true
	})
	if ofRequest && record.Level >= slog.LevelWarn {
		repeated, leaveOut := l.recent.note(key, record.Time)
		if leaveOut {
			return nil
		}
		if repeated > 0 {
			record.AddAttrs(slog.Int("repeated", repeated))
		}
	}
	return l.Handler.Handle(ctx, record)
}

// note counts an error. If the record must be logged, it returns the number of equal records omitted before it.
func (e *recentErrors) note(key string, now time.Time) (repeated int, leaveOut bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	last, isKnown := e.errors[key]
	if !isKnown && len(e.errors) >= repeatKeysMax {
		key = ""
		last, isKnown = e.errors[key]
	}
	if isKnown && now.Sub(last.loggedAt) < repeatInterval {
		last.leftOut++
		e.errors[key] = last
		return 0, true
	}
	e.errors[key] = recentError{loggedAt: now}
	return last.leftOut, false
}

// WithAttrs implements slog.Handler.
func (l *repeatLimiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &repeatLimiter{l.Handler.WithAttrs(attrs), l.recent}
}

// WithGroup implements slog.Handler.
func (l *repeatLimiter) WithGroup(name string) slog.Handler {
	return &repeatLimiter{l.Handler.WithGroup(name), l.recent}
}
