package cmd

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// drained counts what became of requests around a stop.
type drained struct {
	whole   atomic.Int64
	failed  atomic.Int64 // on a connection that had answered before: the node had taken it
	dropped atomic.Int64 // on a fresh connection, before the first byte: maybe nobody had accepted it
	closing atomic.Int64 // answers that said that their connection ends
	cutOff  bool         // the node's log says that connections that wait to be accepted are cut off
	enough  chan struct{}
}

const (
	drainClients = 8
	drainEnough  = 400 // requests before the signal
)

// drainClient is how a client behaves: fresh ones open a connection for each request, balanced ones go elsewhere when they are told to.
type drainClient struct{ fresh, balanced bool }

// ask asks without pause. A client that is told to leave opens another connection, or, like one behind a balancer, goes elsewhere.
func (d *drained) ask(ctx context.Context, address string, c drainClient) {
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return // the node is gone
		}
		ended := d.askOn(conn, c.fresh)
		if ended == drainFailed || ended == drainTold && c.balanced {
			return
		}
	}
}

// How a connection ended.
const (
	drainFailed = iota
	drainTold
	drainLeft // by the client itself
)

// askOn asks on one connection until it ends, or once.
func (d *drained) askOn(conn net.Conn, once bool) int {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	wire := bufio.NewReader(conn)
	for answered := 0; ; answered++ {
		_, err := io.WriteString(conn, "GET /v1/currencies HTTP/1.1\r\nHost: x\r\n\r\n")
		var res *http.Response
		if err == nil {
			res, err = http.ReadResponse(wire, nil)
		}
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		switch {
		case err != nil && answered == 0:
			d.dropped.Add(1)
			return drainFailed
		case err != nil || res.StatusCode != http.StatusOK:
			d.failed.Add(1)
			return drainFailed
		}
		if d.whole.Add(1) == drainEnough {
			close(d.enough)
		}
		if res.Close {
			d.closing.Add(1)
			return drainTold
		}
		if once {
			return drainLeft
		}
	}
}

// stopUnderLoad stops a node that is being asked, finishes after the signal the requests of which it had read half, and waits for its end.
func stopUnderLoad(t *testing.T, balanced bool, args ...string) *drained {
	t.Helper()
	p := startNode(t, t.TempDir(), args...)
	var half []net.Conn
	if !balanced {
		half = halfRequests(t, p, "/v1/currencies", 20)
	}
	d := &drained{enough: make(chan struct{})}
	var clients sync.WaitGroup
	for i := range drainClients {
		client := drainClient{fresh: i%2 == 0, balanced: balanced}
		clients.Go(func() { d.ask(t.Context(), strings.TrimPrefix(p.url, "http://"), client) })
	}
	<-d.enough
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.await("stopping")
	for i, conn := range half {
		finishRequest(t, i, conn)
	}
	if code := p.end(); code != exit.Done {
		t.Errorf("exit code %d:\n%s", code, p.output())
	}
	p.await("stopped")
	clients.Wait()
	d.cutOff = strings.Contains(p.output(), "connections that wait to be accepted are cut off")
	return d
}

// TestDrain_NoRequestFails stops a busy node several times: every request on a connection that it had taken gets its whole answer, also one
// that it had read half, and each client is told that its connection ends.
func TestDrain_NoRequestFails(t *testing.T) {
	t.Parallel()
	stops := sweep(4, 20)
	most := stops / 4
	var whole, dropped int64
	for range stops {
		d := stopUnderLoad(t, false)
		whole, dropped = whole+d.whole.Load(), dropped+d.dropped.Load()
		if d.cutOff { // two or three a stop are, then
			most += 8
		}
		if failed := d.failed.Load(); failed > 0 || d.closing.Load() == 0 {
			t.Errorf("%d of %d requests failed, %d connections ended with an answer", failed, d.whole.Load()+failed, d.closing.Load())
		}
	}
	t.Logf("%d stops: %d whole answers; %d connections were never accepted", stops, whole, dropped)
	if dropped > int64(most) {
		t.Errorf("%d connections were opened and not accepted, want at most %d", dropped, most)
	}
}

// TestDrain_Delay: with --drain-delay a client that goes elsewhere when it is told so sees nothing of the stop at all.
func TestDrain_Delay(t *testing.T) {
	d := stopUnderLoad(t, true, "--drain-delay", "300ms")
	if d.failed.Load()+d.dropped.Load() > 0 || d.closing.Load() != drainClients {
		t.Errorf("%d failed, %d were not accepted, %d of %d clients were told", d.failed.Load(), d.dropped.Load(), d.closing.Load(), drainClients)
	}
}

// TestDrain_Readyz: before the node stops accepting, balancers are told; and the delay ends at once when nobody waits for it any more.
func TestDrain_Readyz(t *testing.T) {
	t.Parallel()
	p := startNode(t, t.TempDir(), "--drain-delay", "10m")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.await("stopping")
	status, body := 0, ""
	for deadline := time.Now().Add(patience); status != http.StatusServiceUnavailable || !strings.Contains(body, `"state":"draining"`); {
		var err error
		if status, body, err = p.get("/readyz"); err != nil || time.Now().After(deadline) {
			t.Fatalf("/readyz: %d %s, %v", status, body, err)
		}
	}
	if status, _ := p.ask(http.MethodGet, "/v1/currencies"); status != http.StatusOK {
		t.Errorf("a newcomer during the delay gets %d", status)
	}
	if code := p.signal(syscall.SIGTERM); code != -1 {
		t.Errorf("exit code %d, want the second signal to kill", code)
	}
}
