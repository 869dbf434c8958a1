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
	// notifyEvery is how often a node that reads its log says that it goes on, where no watchdog asks for more.
	notifyEvery = 10 * time.Second
	// signsOfLife are so many within the time after which the service manager gives up.
	signsOfLife = 3
	// answerMax is how long a question may take inside a node that lives: as long as its callers wait.
	answerMax = 5 * time.Second
)

// notifier tells the service manager how the node is (sd_notify(3)): ready when the log is replayed, reloading, stopping, and, where it
// keeps a watchdog, that the node lives. A node lives whose actors answer; a disk that is slow or sources that fail are nothing that a
// restart would cure. Nil says nothing.
type notifier struct {
	node  *node.Node
	clock func() time.Time
	log   *slog.Logger

	every    time.Duration
	watchdog bool
	released chan struct{}
	ended    chan struct{}
}

// newNotifier begins with signs of life where somebody listens for them; nil where there is no service manager.
func (p *commands) newNotifier(n *node.Node, log *slog.Logger) *notifier {
	if p.Variable(notifyVariable) == "" {
		return nil
	}
	t := &notifier{node: n, clock: p.Clock, log: log, every: notifyEvery, released: make(chan struct{}), ended: make(chan struct{})}
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the service manager's watchdog is not fed", "cause", err.Error())
	}
	if limit > 0 {
		t.watchdog, t.every = true, limit/signsOfLife
	}
	go t.live()
	return t
}

// tell sends lines of sd_notify.
func (t *notifier) tell(lines ...string) {
	if t == nil {
		return
	}
	if _, err := daemon.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		t.log.Warn("the service manager could not be told", "cause", err.Error())
	}
}

// ready says that the node serves.
func (t *notifier) ready(status string) { t.tell(daemon.SdNotifyReady, "STATUS="+status) }

// reloading says that the settings are read anew; ready ends it.
func (t *notifier) reloading() { t.tell(daemon.SdNotifyReloading, daemon.SdNotifyMonotonicUsec()) }

// live gives signs of life until end.
func (t *notifier) live() {
	defer close(t.ended)
	ticker := time.NewTicker(t.every)
	defer ticker.Stop()
	for {
		select {
		case <-t.released:
			return
		case <-ticker.C:
			t.sign()
		}
	}
}

// sign gives a sign of life, if the node lives. While the log is read the start is given the time for it.
func (t *notifier) sign() {
	var lines []string
	select {
	case <-t.node.Ready():
		if !t.answers() {
			t.log.Error("the node does not answer itself: no sign of life for the service manager")
			return
		}
	default:
		lines = append(lines, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (signsOfLife*t.every).Microseconds()), "STATUS=reading the log")
	}
	if t.watchdog {
		lines = append(lines, daemon.SdNotifyWatchdog)
	}
	if len(lines) > 0 {
		t.tell(lines...)
	}
}

// answers asks the actors. An error is an answer, unless it took as long as a question may.
func (t *notifier) answers() bool {
	asked := t.clock()
	_, _ = t.node.System().Rates(engine.RatesQuery{Cut: engine.Cut{Limit: 1}}) // what it says does not matter, but when
	return t.node.System().Err() == nil && t.clock().Sub(asked) < answerMax
}

// end ends the signs of life.
func (t *notifier) end() {
	if t == nil {
		return
	}
	close(t.released)
	<-t.ended
}
