//go:build !nocluster

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

// limitedLog logs a message once a minute, however often an event occurs. Other programs cause events on the port of
// the node, and a node that is down causes them at the other nodes. Messages that differ only in digits, such as ports
// and numbers of connections, count as the same. The next record says how many were omitted.
type limitedLog struct {
	logger *slog.Logger
	clock  func() time.Time

	mu   sync.Mutex
	seen map[string]*repeatedMessage
}

type repeatedMessage struct {
	loggedAt time.Time
	omitted  int
}

func (l *limitedLog) write(level slog.Level, message string, attributes ...any) {
	l.writeAs(message, level, message, attributes...)
}

// writeAs is write for messages of a kind, which are counted together.
func (l *limitedLog) writeAs(kind string, level slog.Level, message string, attributes ...any) {
	if !l.logger.Enabled(context.Background(), level) {
		return
	}
	omitted, ok := l.count(kind)
	if !ok {
		return
	}
	if omitted > 0 {
		attributes = append(attributes, "omitted", omitted)
	}
	l.logger.Log(context.Background(), level, message, attributes...)
}

// count returns whether a message of a kind is to be logged now, and how many were omitted before it.
func (l *limitedLog) count(kind string) (omitted int, ok bool) {
	kind = strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, kind)
	now := l.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.seen[kind]
	switch {
	case m == nil:
		if len(l.seen) >= repeatedMax || l.seen == nil {
			l.seen = map[string]*repeatedMessage{}
		}
		l.seen[kind] = &repeatedMessage{loggedAt: now}
		return 0, true
	case now.Sub(m.loggedAt) < repeatInterval:
		m.omitted++
		return 0, false
	}
	omitted = m.omitted
	*m = repeatedMessage{loggedAt: now}
	return omitted, true
}
