package cmd

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

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
		send := func(method, path, body string, want int) {
			request, _ := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			answer, err := http.DefaultClient.Do(request) //nolint:forbidigo // loopback; the test has a deadline
			if err != nil {
				t.Fatalf("stalled %v: %v", stalled, err)
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			if _ = answer.Body.Close(); answer.StatusCode != want {
				t.Fatalf("stalled %v: status %d, want %d", stalled, answer.StatusCode, want)
			}
		}
		for range 1000 { // 230 KB of lines; a pipe holds 64
			send("GET", "/v1/institutions", "", http.StatusOK)
		}
		if stalled {
			send("POST", "/v1/account/codes", `{"email":"ana@example.com"}`, http.StatusAccepted)
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
