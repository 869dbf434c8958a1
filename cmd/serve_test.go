package cmd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// TestServe_RealObservations wants the real observations to be answered by every operation, and the same answers
// after a clean stop.
func TestServe_RealObservations(t *testing.T) {
	t.Parallel()
	needReal(t)
	data := t.TempDir() + "/data"
	p := start(t, realNow, serveArgs(data, "--import", realFile)...).listening()
	summary := p.Await("imported " + realFile)
	t.Log(summary)
	if !strings.Contains(summary, ": 20,575 lines in ") || !strings.Contains(summary, " 0 refused, 0 malformed") {
		t.Errorf("the import says %q", summary)
	}
	want := answers(p)
	checkReal(t, want)
	p.stop(syscall.SIGTERM)
	again := start(t, realNow, serveArgs(data)...).listening()
	t.Log(again.Await("recovered"))
	sameAnswers(t, answers(again), want)
	again.stop(os.Interrupt)
}

// checkReal looks at a few facts of the real observations: nothing empty, no zero, none of the known typing errors.
func checkReal(t *testing.T, bodies map[string]string) {
	t.Helper()
	for path, body := range bodies {
		for _, never := range []string{`"buy":"0"`, `"sell":"0"`, `"6.09"`, `"39.70"`, `"39.7"`, "58.949999"} {
			if strings.Contains(body, never) {
				t.Errorf("GET %s has %s", path, never)
			}
		}
		empty := strings.Contains(body, `"data":[]`)
		if expected := strings.Contains(path, "EUR"); empty != expected { // the file has US dollars only
			t.Errorf("GET %s: empty is %t", path, empty)
		}
	}
}

// TestServe_ConnectionsOfAClient: an address has as many connections as --connections-per-address says, and a fifth of
// --connections, also with --limits off, of which a line tells; a trusted proxy has any number.
func TestServe_ConnectionsOfAClient(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]int{
		"--connections-per-address 2 --trusted-proxy 10.0.0.0/8": 2, "--connections-per-address 2 --trusted-proxy 127.0.0.0/8": 5, "--connections 15": 3,
		"--connections 3 --trusted-proxy 127.0.0.0/8": 5, // a newcomer takes the place of an idle connection (goal O2)
	} {
		p := startNode(t, t.TempDir()+"/data", strings.Fields("--limits off "+flags)...)
		p.Await("quotas are off (--limits off); the limit of connections stays")
		answered := 0
		for range 5 {
			conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
			noError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "GET /v1/currencies HTTP/1.1\r\nHost: x\r\n\r\n")
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
			}
			if err == nil {
				answered++
			}
		}
		if answered != want {
			t.Errorf("with %s %d of 5 connections are answered, want %d", flags, answered, want)
		}
	}
}

// TestServe_Options wants the switches to reach the HTTP side, and each imported line that is not published in the log.
func TestServe_Options(t *testing.T) {
	t.Parallel()
	file := observationsFile(t, observation(1, "59", "60"), "x\n", observation(2, "0", "60"))
	p := startNode(t, t.TempDir(), "--import", file, "--strict=off", "--fee-notice", "Sin cargos.", "--cors-authorization=on")
	for _, part := range []string{"o.csv:3: malformed: ", "o.csv:4: quarantined as number 1: zero: ", "imported"} {
		p.Await(part)
	}
	if body := p.mustGet("/v1/convert?currency=USD&operation=buy&amount=1&unknown=1"); !strings.Contains(body, `"feeNotice":"Sin cargos."`) {
		t.Errorf("the notice is missing: %s", body)
	}
	_, headers := p.ask(http.MethodOptions, "/v1/rates")
	if !strings.Contains(headers.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("Authorization is not allowed: %v", headers)
	}
}

// TestW8_TwoProcesses wants the second one to leave at once with a helpful line, and the first one unharmed.
func TestW8_TwoProcesses(t *testing.T) {
	data := t.TempDir()
	first := startImported(t, serveArgs(data), observation(1, "59", "60"))
	for _, args := range [][]string{
		serveArgs(data), {"log", "repair", "--data", data, "--yes"},
	} {
		promptly(t, args...).fails(t, exit.Busy, data, "a running node uses the directory")
	}
	contains(t, mustRun(t, "import", "--data", data, observationsFile(t, observation(2, "58", "61"))), "1 accepted (1 new)")
	contains(t, first.mustGet("/v1/rates"), `"buy":"58"`)
	contains(t, mustRun(t, "export", "--data", data), ",58,61,")
	contains(t, mustRun(t, "log", "verify", "--data", data), "The log is whole up to record ", "a running node uses it")
	contains(t, mustRun(t, "log", "dump", "--data", data), "58")
	first.mustGet("/v1/rates")
	if code := first.signal(syscall.SIGTERM); code != exit.OK {
		t.Errorf("the first one ends with %d", code)
	}
	lock := data + "/LOCK"
	_ = os.Remove(lock)
	mustRun(t, "export", "--data", data)
	if _, err := os.Stat(lock); err == nil {
		t.Error("an export writes into the directory, which may be mounted read-only")
	}
}

// halfRequest is a connection on which the node has read half of a request.
type halfRequest struct {
	net.Conn
	limit time.Time // for the other half
}

// halfRequests opens connections and sends half of a request on each.
func halfRequests(t *testing.T, p *program, path string, count int) []halfRequest {
	t.Helper()
	const inTime = 4 * time.Second // the node waits a second longer
	var half []halfRequest
	for range count {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
		noError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		half = append(half, halfRequest{conn, time.Now().Add(inTime)})
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	p.mustGet(path) // a whole round trip later the node has begun to read them
	return half
}

// finishRequests sends the other halves. On a slow machine a request may have come to its time limit by then.
func finishRequests(t *testing.T, half []halfRequest) {
	t.Helper()
	late := make([]bool, len(half))
	for i, h := range half {
		noError(t, h.SetDeadline(time.Now().Add(patience)))
		_, err := io.WriteString(h, "\r\n")
		if late[i] = time.Now().After(h.limit); err != nil && !late[i] {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if !slices.Contains(late, false) && len(half) > 0 {
		t.Error("every half request came to its time limit: nothing is judged")
	}
	for i, h := range half {
		if late[i] {
			continue
		}
		got, err := http.ReadResponse(bufio.NewReader(h), nil)
		if err != nil {
			t.Errorf("request %d is not answered: %v", i, err)
			continue
		}
		body, err := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if err != nil || got.StatusCode != http.StatusOK || !json.Valid(body) {
			t.Errorf("request %d: status %d, %v", i, got.StatusCode, err)
		}
	}
}

// TestW6_FailStop wants a node whose log cannot be written to leave with code 70 and one line, and everything that it
// acknowledged to be there afterwards.
func TestW6_FailStop(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	var file strings.Builder
	file.WriteString(header)
	for i := range 32_768 {
		file.WriteString(observation(i%60, fmt.Sprintf("59.%04d", i%997), "60.50"))
	}
	p := startWith(t, realNow, []string{fileBytesMax + "=20000"}, serveArgs(data, "--import", writeFile(t, "o.csv", file.String()))...)
	if code := p.AwaitExit(); code != exit.FailStop {
		t.Fatalf("exit code %d:\n%s", code, p.Output())
	}
	t.Log(p.Await("tasard serve: stopped, because going on could lose data"))
	startNode(t, data).Await("recovered 1 rates")
}

// drainResult counts what became of requests around a stop.
type drainResult struct {
	whole   atomic.Int64
	failed  atomic.Int64 // on a connection that had answered before: the node had taken it
	dropped atomic.Int64 // on a new connection, before the first byte: it may not have been accepted
	closing atomic.Int64 // answers that said that their connection ends
}

const (
	drainClients = 8
	drainEnough  = 400 // requests before the signal
)

// drainMode is how a client behaves: fresh ones open a connection for each request, balanced ones go elsewhere after
// Connection: close.
type drainMode struct{ fresh, balanced bool }

// ask sends requests without pause. After Connection: close a client opens another connection or, behind a load
// balancer, goes elsewhere.
func (d *drainResult) ask(ctx context.Context, address string, c drainMode) {
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
func (d *drainResult) askOn(conn net.Conn, once bool) int {
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
		d.whole.Add(1)
		if res.Close {
			d.closing.Add(1)
			return drainTold
		}
		if once {
			return drainLeft
		}
	}
}

// awaitLoad waits for the first answers.
func (d *drainResult) awaitLoad(t *testing.T) {
	t.Helper()
	eventually(t, "the clients are answered", func() bool { return d.whole.Load() >= drainEnough })
}

// stopUnderLoad stops a node that is being asked, finishes after the signal the requests of which it had read half,
// and waits for its end.
func stopUnderLoad(t *testing.T, balanced bool, args ...string) *drainResult {
	t.Helper()
	p, d := startNode(t, t.TempDir(), args...), new(drainResult)
	var clients sync.WaitGroup
	for i := range drainClients {
		client := drainMode{fresh: i%2 == 0, balanced: balanced}
		clients.Go(func() { d.ask(t.Context(), strings.TrimPrefix(p.URL, "http://"), client) })
	}
	d.awaitLoad(t)
	var half []halfRequest
	if !balanced {
		half = halfRequests(t, p, "/v1/currencies", 20)
	}
	p.Send(syscall.SIGTERM)
	p.Await("stopping")
	finishRequests(t, half)
	if code := p.AwaitExit(); code != exit.OK {
		t.Errorf("exit code %d:\n%s", code, p.Output())
	}
	p.Await("stopped")
	clients.Wait()
	return d
}

// TestDrain_NoRequestFails stops a busy node several times: every request on an accepted connection gets its whole
// answer, also a half-read one, and each client gets Connection: close.
func TestDrain_NoRequestFails(t *testing.T) {
	t.Parallel()
	stops := sweep(4, 20)
	most := drainClients * stops // one of each client, between the last accept and the end of the listener
	var whole, dropped int64
	for range stops {
		d := stopUnderLoad(t, false)
		whole, dropped = whole+d.whole.Load(), dropped+d.dropped.Load()
		if failed := d.failed.Load(); failed > 0 || d.closing.Load() == 0 {
			t.Errorf("%d of %d requests failed, %d connections ended with an answer", failed, d.whole.Load()+failed, d.closing.Load())
		}
	}
	t.Logf("%d stops: %d whole answers; %d connections were never accepted", stops, whole, dropped)
	if dropped > int64(most) {
		t.Errorf("%d connections were opened and not accepted, want at most %d", dropped, most)
	}
}

// TestDrain_Delay: with --drain-delay a client that goes elsewhere after Connection: close sees no failure.
func TestDrain_Delay(t *testing.T) {
	t.Parallel()
	d := stopUnderLoad(t, true, "--drain-delay", "3s") // a client may wait long for a processor
	if d.failed.Load()+d.dropped.Load() > 0 || d.closing.Load() != drainClients {
		t.Errorf("%d failed, %d were not accepted, %d of %d clients were informed", d.failed.Load(), d.dropped.Load(), d.closing.Load(), drainClients)
	}
}

// TestDrain_Readyz: load balancers see the stop before the node stops accepting; and the delay ends at once with the
// node.
func TestDrain_Readyz(t *testing.T) {
	t.Parallel()
	p := startNode(t, t.TempDir(), "--drain-delay", "10m")
	p.Send(syscall.SIGTERM)
	p.Await("stopping")
	eventually(t, "/readyz shows the stop", func() bool {
		status, body, _ := p.get("/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, `"state":"draining"`)
	})
	if status, _ := p.ask(http.MethodGet, "/v1/currencies"); status != http.StatusOK {
		t.Errorf("a new client during the delay gets %d", status)
	}
	if code := p.signal(syscall.SIGTERM); code != -1 {
		t.Errorf("exit code %d, want the second signal to kill", code)
	}
}

// startWithSocket starts a node with a listening socket of the service manager, which this test plays.
func startWithSocket(t *testing.T, socket *os.File, args ...string) *program {
	t.Helper()
	// The variable has the number of the process that the socket is for.
	cmd := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, os.Args[0]}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"="+realNow, socketsVariable+"=1")
	cmd.ExtraFiles = []*os.File{socket}
	p := startChild(t, cmd)
	p.Await("recovered")
	return p
}

// TestSockets_Restart: with a socket that stays open no request fails over a restart, on new connections.
func TestSockets_Restart(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	noError(t, err)
	defer socket.Close()
	args := serveArgs(t.TempDir())
	p := startWithSocket(t, socket, args...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := new(drainResult)
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() { d.ask(ctx, listener.Addr().String(), drainMode{fresh: true}) })
	}
	d.awaitLoad(t)
	for range 3 {
		p.stop(syscall.SIGTERM)
		p = startWithSocket(t, socket, args...)
		before := d.whole.Load()
		eventually(t, "the next node answers", func() bool { return d.whole.Load() > before+100 || d.dropped.Load()+d.failed.Load() > 0 })
	}
	cancel()
	clients.Wait()
	if d.dropped.Load()+d.failed.Load() > 0 {
		t.Errorf("%d requests were answered, %d not, %d failed", d.whole.Load(), d.dropped.Load(), d.failed.Load())
	}
}

// TestServe_LogReader: a node goes on, and ends in order, when the reader of its log and its codes stops reading, and
// when that reader ends.
func TestServe_LogReader(t *testing.T) {
	t.Parallel()
	for _, stalled := range []bool{true, false} {
		read, write, err := os.Pipe()
		noError(t, err)
		cmd := exec.Command(os.Args[0], serveArgs(t.TempDir(), "--access-log", "all", "--smtp-addr", "log")...)
		cmd.Env = append(os.Environ(), asProgram+"="+realNow)
		cmd.Stdout, cmd.Stderr = write, write
		noError(t, cmd.Start())
		_ = write.Close()                                                             // the child has a copy
		kill := time.AfterFunc(patience/2, func() { _ = cmd.Process.Kill() })         // then Wait gives an error
		t.Cleanup(func() { _, _, _ = kill.Stop(), cmd.Process.Kill(), read.Close() }) // after a failure
		url := ""
		for lines := bufio.NewScanner(read); lines.Scan() && !strings.Contains(lines.Text(), "recovered"); {
			if _, address, found := strings.Cut(lines.Text(), "listening on "); found {
				url = strings.Trim(address, `"`)
			}
		}
		if !stalled {
			_ = read.Close()
		}
		c := newHTTPClient("")
		defer c.close()
		for range 1000 { // 230 KB of lines; a pipe holds 64
			got, err := c.do(http.MethodGet, url+"/v1/institutions", "", nil)
			if noError(t, err); got.status != http.StatusOK {
				t.Fatalf("stalled %v: status %d", stalled, got.status)
			}
		}
		if stalled {
			got, err := c.do(http.MethodPost, url+codesPath, "", map[string]string{"email": "ana@example.com"})
			if noError(t, err); got.status != http.StatusAccepted {
				t.Fatalf("a code: status %d", got.status)
			}
		}
		noError(t, cmd.Process.Signal(syscall.SIGTERM))
		if err := cmd.Wait(); err != nil {
			t.Errorf("stalled %v: the node ended with %v", stalled, err)
		}
	}
}

// TestServe_FirstLine names what runs, on which directory, and where it listens.
func TestServe_FirstLine(t *testing.T) {
	t.Parallel()
	data, metrics := t.TempDir(), "127.0.0.1:0"
	p := startNode(t, data, "--metrics-listen", metrics)
	p.Await("problem began")
	before, after, _ := strings.Cut(p.Output(), "tasard is starting")
	first, _, _ := strings.Cut(after, "\n")
	contains(t, first, " version=", " commit=", " pid=", " data="+data, " listen="+p.URL, " metrics="+metrics)
	if strings.Contains(before, "problem began") {
		t.Errorf("a problem is logged before the start: %s", before)
	}
}
