//go:build faults && linux

package main

import (
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	shortSpan  = 30 * time.Second
	shortAfter = 2 * time.Second
)

// TestFaultsO4_DescriptorsExhausted leaves a process without file descriptors for half a minute while clients
// connect. It survives, and serves new clients within two seconds of the end. The control is a listener that does not
// retry.
func TestFaultsO4_DescriptorsExhausted(t *testing.T) {
	f := smallFixture(t, 1)
	for name, path := range map[string]string{
		"node":    buildNode(t, ""),
		"control": buildNode(t, "httpapi/conn/listener.go", "if !short && !isConnError(err) {", "if short || !isConnError(err) {"),
	} {
		t.Run(name, func(t *testing.T) {
			span := shortSpan
			if name == "control" {
				span /= 10
			}
			node, err := startNode(t.Context(), path, f, anyCore)
			if err != nil {
				t.Fatal(err)
			}
			defer node.kill()
			failed, back := exhaustDescriptors(t, node, span)
			alive := node.alive()
			figure(t, "%s: no descriptors for %v: alive %t, %d clients had no answer meanwhile, served again after %v", name, span, alive, failed, back)
			if failed == 0 {
				t.Error("no client was shut out: there was no shortage")
			}
			if good := alive && back <= shortAfter; good != (name == "node") {
				t.Errorf("alive %t, served again after %v", alive, back)
			}
		})
	}
}

// exhaustDescriptors takes all descriptors from a node for a while. It returns how many clients got no answer, and
// how long after the end one gets an answer.
func exhaustDescriptors(t *testing.T, node *server, span time.Duration) (failed int, back time.Duration) {
	t.Helper()
	pid := node.cmd.Process.Pid
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: before.Max}, nil); err != nil {
		t.Fatal(err)
	}
	served := func() bool {
		_, status, _ := askFresh(node.address, "/v1/currencies")
		return status == http.StatusOK
	}
	pause := time.NewTicker(250 * time.Millisecond)
	defer pause.Stop()
	for began := time.Now(); time.Since(began) < span && node.alive(); <-pause.C {
		if conn, err := net.Dial("tcp", node.address); err == nil {
			defer conn.Close() // it waits in the backlog
		}
		if !served() {
			failed++
		}
	}
	_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil) // the process may have exited
	began := time.Now()
	for !served() && time.Since(began) < 4*shortAfter {
		<-pause.C
	}
	return failed, time.Since(began).Round(time.Millisecond)
}

// alive reports whether the server's process runs.
func (s *server) alive() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}
