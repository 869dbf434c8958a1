package cmd

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// TestServe_RealObservations wants the real observations to be answered by every operation, and the same answers after a
// clean stop.
func TestServe_RealObservations(t *testing.T) {
	t.Parallel()
	needReal(t)
	data := t.TempDir() + "/data"
	p := start(t, realNow, serveArgs(data, "--import", realFile)...).listening()
	summary := p.await("imported " + realFile)
	t.Log(summary)
	if !strings.Contains(summary, ": 20,575 lines in ") || !strings.Contains(summary, " 0 refused, 0 malformed") {
		t.Errorf("the import says %q", summary)
	}
	want := answers(p)
	checkReal(t, want)
	p.stop(syscall.SIGTERM)
	again := start(t, realNow, serveArgs(data)...).listening()
	t.Log(again.await("recovered"))
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

// TestE4_UntilReady wants 503 with Retry-After while nothing is loaded, and the catalogue all the same.
func TestE4_UntilReady(t *testing.T) {
	t.Parallel()
	p := start(t, realNow, serveArgs(t.TempDir()+"/new/data")...).listening()
	p.await("recovered 0 rates")
	p.await("nothing is collected (--no-collect)")
	if status, headers := p.ask(http.MethodGet, "/v1/rates"); status != http.StatusServiceUnavailable || headers.Get("Retry-After") != "60" {
		t.Errorf("status %d, Retry-After %q", status, headers.Get("Retry-After"))
	}
	if !strings.Contains(p.mustGet("/v1/institutions"), `"popular"`) {
		t.Error("the catalogue is not answered")
	}
}

// TestServe_Options wants the switches to reach the HTTP side, and each imported line that is not published in the log.
func TestServe_Options(t *testing.T) {
	t.Parallel()
	file := observationsFile(t, observation(1, "59", "60"), "x\n", observation(2, "0", "60"))
	p := startNode(t, t.TempDir(), "--import", file, "--strict=off", "--fee-notice", "Sin cargos.", "--cors-authorization=on")
	for _, part := range []string{"o.csv:3: malformed: ", "o.csv:4: held as number 1: zero: ", "imported"} {
		p.await(part)
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
	first := startWithLines(t, data, observation(1, "59", "60"))
	for _, args := range [][]string{
		serveArgs(data), {"import", "--data", data, observationsFile(t)}, {"export", "--data", data},
		{"log", "verify", "--data", data}, {"log", "dump", "--data", data}, {"log", "repair", "--data", data, "--yes"},
	} {
		promptly(t, args...).fails(t, exit.Busy, data, "a running node holds the directory")
	}
	first.mustGet("/v1/rates")
	if code := first.signal(syscall.SIGTERM); code != exit.Done {
		t.Errorf("the first one ends with %d", code)
	}
}

func TestServe_AddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	data := t.TempDir() + "/data"
	run(t, nil, nil, "serve", "--data", data, "--listen", taken.Addr().String(), "--log-format", "text").fails(t, exit.Busy, "listen on "+taken.Addr().String(), "--listen")
	if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data directory was touched: %v", err)
	}
}

// halfRequests are connections on which the node has read half of a request.
func halfRequests(t *testing.T, p *program, path string, count int) []net.Conn {
	t.Helper()
	var conns []net.Conn
	for range count {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n"); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	p.mustGet(path) // a whole round trip later the node has begun to read them
	return conns
}

func finishRequest(t *testing.T, number int, conn net.Conn) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "\r\n"); err != nil {
		t.Errorf("request %d: %v", number, err)
		return
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Errorf("request %d is not answered: %v", number, err)
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || !json.Valid(body) {
		t.Errorf("request %d: status %d, %v", number, res.StatusCode, err)
	}
}

// TestServe_SecondSignal wants a second signal to end what a client holds up.
func TestServe_SecondSignal(t *testing.T) {
	p := startNode(t, t.TempDir())
	halfRequests(t, p, "/v1/currencies", 1)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.await("stopping")
	if code := p.signal(syscall.SIGTERM); code != -1 {
		t.Errorf("exit code %d, want a death by signal", code)
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
	if code := p.end(); code != exit.FailStop {
		t.Fatalf("exit code %d:\n%s", code, p.output())
	}
	t.Log(p.await("tasard: stopped, because going on could lose data"))
	again := start(t, realNow, serveArgs(data)...).listening()
	again.await("recovered 1 rates")
}
