package cmd

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/node"
)

const (
	notifyVariable = "NOTIFY_SOCKET"
	// keepAliveInterval is the interval between keep-alives, unless the watchdog of the service manager needs a shorter
	// one.
	keepAliveInterval = 10 * time.Second
	// keepAlivesPerTimeout is the number of keep-alives within the service manager's timeout.
	keepAlivesPerTimeout = 3
	// responseMax is the maximum time for the actors, which own the rates, to answer a query.
	responseMax = 5 * time.Second
)

// notifier reports the state of the node to the service manager (sd_notify(3)): ready, reloading, stopping, and
// keep-alives for its watchdog. It sends keep-alives while the actors respond, even if disks are slow or sources fail,
// because a restart would not help then. A nil notifier does nothing.
type notifier struct {
	node  *node.Node
	clock func() time.Time
	log   *slog.Logger

	interval time.Duration // between two keep-alives
	watchdog bool          // the service manager expects keep-alives
	stopping chan struct{} // closed by stop
	done     chan struct{} // closed when run has returned
}

// newNotifier starts a notifier, which sends keep-alives until stop. It returns nil without a service manager.
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

func (t *notifier) send(lines ...string) {
	if t == nil {
		return
	}
	if _, err := daemon.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		t.log.Warn("the service manager was not notified", "cause", err.Error())
	}
}

// ready reports that the node serves requests.
func (t *notifier) ready(status string) { t.send(daemon.SdNotifyReady, "STATUS="+status) }

// reloading reports that the node is reading its files again. The caller must call ready afterwards.
func (t *notifier) reloading() { t.send(daemon.SdNotifyReloading, daemon.SdNotifyMonotonicUsec()) }

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

// keepAlive sends one keep-alive if the actors respond. While the node reads its log, it does not query the actors, and
// asks the service manager for more start-up time instead.
func (t *notifier) keepAlive() {
	var lines []string
	select {
	case <-t.node.Ready():
		start, system := t.clock(), t.node.System()
		_, _ = system.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 1}}) // only the time matters: an error is an answer
		if system.Err() != nil || t.clock().Sub(start) >= responseMax {
			t.log.Error("the actors do not answer: no keep-alive is sent to the service manager")
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

func (t *notifier) stop() {
	if t == nil {
		return
	}
	close(t.stopping)
	<-t.done
}

const (
	socketsVariable = "LISTEN_FDS"
	// redirectSocket is the FileDescriptorName of the socket for plain HTTP beside HTTPS. The other socket may have any
	// name.
	redirectSocket = "redirect"
)

// takeSockets passes the service manager's listening sockets (sd_listen_fds(3)) to the node. It returns their number.
func (p *commands) takeSockets(h *node.HTTP) (count int, err error) {
	if p.Getenv(socketsVariable) == "" {
		return 0, nil
	}
	sockets, err := activation.ListenersWithNames()
	if err != nil {
		return 0, exit.Errorf(exit.Usage, "sockets of the service manager: %w", err)
	}
	for name, listeners := range sockets {
		for _, listener := range listeners {
			count++
			target := &h.Listener
			if name == redirectSocket {
				target = &h.ACME.RedirectListener
			}
			if _, tcp := listener.(*net.TCPListener); !tcp || *target != nil {
				return 0, exit.Errorf(exit.Usage, "the service manager's socket %s: want one TCP socket for requests, and with --https one with FileDescriptorName=%s", name, redirectSocket)
			}
			*target = listener
		}
	}
	if h.ACME.RedirectListener != nil && h.ACME.Name == "" {
		return 0, exit.Errorf(exit.Usage, "the service manager's socket %s is only for --https: disable it", redirectSocket)
	}
	return count, nil
}
