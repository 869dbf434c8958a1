package cluster

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	repeatInterval = time.Minute
	repeatedMax    = 256 // number of different messages that limitedLog remembers
)

// limitedLog logs a kind of message once a minute, however often it occurs. Otherwise a node that is down, or programs
// that connect to this node's port, could fill the log. Kinds that differ only in digits, such as ports and numbers of
// connections, count as the same.
type limitedLog struct {
	logger *slog.Logger
	clock  func() time.Time

	mu     sync.Mutex
	logged map[string]time.Time // when each kind was logged last
}

func (l *limitedLog) write(kind string, level slog.Level, message string, attributes ...any) {
	kind = strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, kind)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	if at, ok := l.logged[kind]; ok && now.Sub(at) < repeatInterval {
		return
	}
	if l.logged == nil || len(l.logged) >= repeatedMax {
		l.logged = map[string]time.Time{}
	}
	l.logged[kind] = now
	l.logger.Log(context.Background(), level, message, attributes...)
}
