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

// TestFaultsO4_DescriptorsExhausted: for half a minute the process has no descriptor left, while callers go on connecting. It lives, and
// serves new ones within two seconds of the end. The control is a listener that has no patience.
func TestFaultsO4_DescriptorsExhausted(t *testing.T) {
	f := smallFixture(t, 1)
	for name, path := range map[string]string{
		"node":    buildNode(t, "", "", ""),
		"control": buildNode(t, "httpapi/listener.go", "if !short && !isLostConn(err) {", "if short || !isLostConn(err) {"),
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(path, f, "--connections-per-address", "0")
			found, err := node.start(t.Context(), -1)
			if err != nil {
				t.Fatal(err)
			}
			defer node.kill()
			span := shortSpan
			if name == "control" {
				span = 3 * time.Second
			}
			failed, back, alive := exhaust(t, node, found, span)
			figure(t, "%s: no descriptors for %v: alive %t, %d callers had no answer meanwhile, served again after %v", name, span, alive, failed, back)
			if failed == 0 {
				t.Error("nobody was shut out: there was no shortage")
			}
			if good := alive && back <= shortAfter; good != (name == "node") {
				t.Errorf("alive %t, served again after %v", alive, back)
			}
		})
	}
}

// exhaust takes all descriptors from a node for a while: how many callers had no answer, how long after the end one has it, and whether
// the node lives.
func exhaust(t *testing.T, node *nodeContender, found *target, span time.Duration) (failed int, back time.Duration, alive bool) {
	t.Helper()
	pid := found.processes[0]
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: before.Max}, nil); err != nil {
		t.Fatal(err)
	}
	pause := time.NewTicker(250 * time.Millisecond)
	defer pause.Stop()
	var conns []net.Conn
	for began := time.Now(); time.Since(began) < span && node.process.alive() == nil; <-pause.C {
		if conn, err := net.Dial("tcp", found.address); err == nil {
			conns = append(conns, conn) // it waits in the backlog
		}
		if _, status, _ := askFresh(found.address, "/v1/currencies"); status != http.StatusOK {
			failed++
		}
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil) // it may have ended
	for began := time.Now(); ; <-pause.C {
		if _, status, _ := askFresh(found.address, "/v1/currencies"); status == http.StatusOK {
			return failed, time.Since(began).Round(time.Millisecond), node.process.alive() == nil
		}
		if time.Since(began) > 4*shortAfter {
			return failed, time.Since(began).Round(time.Millisecond), node.process.alive() == nil
		}
	}
}
