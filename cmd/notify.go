package cmd

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/node"
)

const (
	notifyVariable = "NOTIFY_SOCKET"
	// keepAliveInterval is how often a node that reads its log says that it goes on, where no watchdog asks for more.
	keepAliveInterval = 10 * time.Second
	// keepAlivesPerTimeout are so many within the time after which the service manager gives up.
	keepAlivesPerTimeout = 3
	// responseMax is how long a question may take inside a node that lives: as long as its callers wait.
	responseMax = 5 * time.Second
)

// notifier tells the service manager how the node is (sd_notify(3)): ready when the log is replayed, reloading, stopping, and, where it
// keeps a watchdog, that the node lives. A node lives whose actors answer; a disk that is slow or sources that fail are nothing that a
// restart would cure. Nil says nothing.
type notifier struct {
	node  *node.Node
	clock func() time.Time
	log   *slog.Logger

	interval time.Duration
	watchdog bool
	stopping chan struct{}
	done     chan struct{}
}

// newNotifier begins with signs of life where somebody listens for them; nil where there is no service manager.
func (p *commands) newNotifier(n *node.Node, log *slog.Logger) *notifier {
	if p.Getenv(notifyVariable) == "" {
		return nil
	}
	t := &notifier{node: n, clock: p.Clock, log: log, interval: keepAliveInterval, stopping: make(chan struct{}), done: make(chan struct{})}
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the service manager's watchdog is not fed", "cause", err.Error())
	}
	if limit > 0 {
		t.watchdog, t.interval = true, limit/keepAlivesPerTimeout
	}
	go t.run()
	return t
}

// send sends lines of sd_notify.
func (t *notifier) send(lines ...string) {
	if t == nil {
		return
	}
	if _, err := daemon.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		t.log.Warn("the service manager could not be told", "cause", err.Error())
	}
}

// ready says that the node serves.
func (t *notifier) ready(status string) { t.send(daemon.SdNotifyReady, "STATUS="+status) }

// reloading says that the settings are read anew; ready ends it.
func (t *notifier) reloading() { t.send(daemon.SdNotifyReloading, daemon.SdNotifyMonotonicUsec()) }

// run gives signs of life until end.
func (t *notifier) run() {
	defer close(t.done)
	ticker := time.NewTicker(t.interval)
	defer ticker.Stop()
	for {
		select {
		case <-t.stopping:
			return
		case <-ticker.C:
			t.keepAlive()
		}
	}
}

// keepAlive gives a sign of life, if the node lives. While the log is read the start is given the time for it.
func (t *notifier) keepAlive() {
	var lines []string
	select {
	case <-t.node.Ready():
		if !t.responds() {
			t.log.Error("the node does not answer itself: no sign of life for the service manager")
			return
		}
	default:
		lines = append(lines, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (keepAlivesPerTimeout*t.interval).Microseconds()), "STATUS=reading the log")
	}
	if t.watchdog {
		lines = append(lines, daemon.SdNotifyWatchdog)
	}
	if len(lines) > 0 {
		t.send(lines...)
	}
}

// responds asks the actors. An error is an answer, unless it took as long as a question may.
func (t *notifier) responds() bool {
	asked := t.clock()
	_, _ = t.node.System().Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 1}}) // what it says does not matter, but when
	return t.node.System().Err() == nil && t.clock().Sub(asked) < responseMax
}

// cancel ends the signs of life.
func (t *notifier) stop() {
	if t == nil {
		return
	}
	close(t.stopping)
	<-t.done
}
