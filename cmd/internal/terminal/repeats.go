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
	// repeatKeysMax is the largest number of different errors. Further ones count as one.
	repeatKeysMax = 16
	// requestAttr is the name of the attribute that marks a record about one request.
	requestAttr = "requestId"
)

// repeatLimiter is a slog.Handler that logs the same error of many requests at most once in repeatInterval, with the
// attribute repeated: how many such records it has left out before this one. Otherwise a full disk, for example, would
// cause a line for each request. Errors are the same if they differ only in
// the id of the request. All other records pass.
type repeatLimiter struct {
	slog.Handler
	recent *recentErrors
}

// recentErrors counts the errors that were left out, by their text. Derived handlers share it.
type recentErrors struct {
	mu     sync.Mutex
	logged map[string]time.Time
	count  map[string]int
}

func newRepeatLimiter(h slog.Handler) *repeatLimiter {
	return &repeatLimiter{h, &recentErrors{logged: map[string]time.Time{}, count: map[string]int{}}}
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
		repeated, leftOut := l.recent.note(key, record.Time)
		if leftOut {
			return nil
		}
		if repeated > 0 {
			record.AddAttrs(slog.Int("repeated", repeated))
		}
	}
	return l.Handler.Handle(ctx, record)
}

// note reports whether a record must be left out, and otherwise how many were left out before it.
func (e *recentErrors) note(key string, now time.Time) (repeated int, leftOut bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.logged[key]; !known && len(e.logged) >= repeatKeysMax {
		key = ""
	}
	if last, known := e.logged[key]; known && now.Sub(last) < repeatInterval {
		e.count[key]++
		return 0, true
	}
	repeated = e.count[key]
	e.logged[key], e.count[key] = now, 0
	return repeated, false
}

// WithAttrs implements slog.Handler.
func (l *repeatLimiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &repeatLimiter{l.Handler.WithAttrs(attrs), l.recent}
}

// WithGroup implements slog.Handler.
func (l *repeatLimiter) WithGroup(name string) slog.Handler {
	return &repeatLimiter{l.Handler.WithGroup(name), l.recent}
}
