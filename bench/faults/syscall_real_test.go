//go:build faults

package faults

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// realRounds is how often the caller of a real life makes a key and revokes it.
const realRounds = 10

// realKey is what a caller knows of a key that it was given.
type realKey struct {
	id      string
	revoked bool // acknowledged
	asked   bool // to be revoked, perhaps in vain
}

// realLife lets a caller make and revoke keys until the node is gone or the rounds are over. It returns the keys that were
// acknowledged, and whether one more may have been made.
func realLife(c *caller, url, session string) (keys []realKey, maybe bool) {
	for round := range realRounds {
		made, got, err := createKey(c, url, session, fmt.Sprintf("round %d", round))
		if err != nil || !got.good() {
			return keys, true
		}
		keys = append(keys, realKey{id: made.ID, asked: true})
		got, err = revokeKey(c, url, session, made.ID)
		if err != nil || !got.good() {
			return keys, false
		}
		keys[len(keys)-1].revoked = true
	}
	return keys, false
}

// compareKeys holds what a node knows against what was acknowledged.
func compareKeys(c *caller, url, session string, keys []realKey, maybe bool) error {
	got, err := c.do(http.MethodGet, url+"/v1/account/keys", session, nil)
	if err != nil {
		return err
	}
	var listed struct{ Data []struct{ ID, Status string } }
	if err := got.into(&listed); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, key := range keys {
		known[key.id] = true
	}
	for _, key := range keys[max(0, len(keys)-keysListed):] {
		at := slices.IndexFunc(listed.Data, func(found struct{ ID, Status string }) bool { return found.ID == key.id })
		switch {
		case at < 0:
			return fmt.Errorf("key %s was acknowledged and is gone", key.id)
		case key.revoked && listed.Data[at].Status != "revoked", !key.asked && listed.Data[at].Status != "active":
			return fmt.Errorf("key %s is %s; revoked: %v", key.id, listed.Data[at].Status, key.revoked)
		}
	}
	unknown := 0
	for _, found := range listed.Data {
		if !known[found.ID] {
			unknown++
		}
	}
	if unknown > 1 || unknown > 0 && !maybe {
		return fmt.Errorf("%d keys that were not acknowledged, one more possible: %v", unknown, maybe)
	}
	return nil
}

// keysListed is how many revoked keys an account lists at least; older ones leave the list.
const keysListed = 45

// realTemplate is a directory with an account that has a session, as a kill leaves it.
func realTemplate(t *testing.T) (all map[string][]byte, session string) {
	t.Helper()
	dir, office := filepath.Join(memoryDir(t), "data"), newPostOffice(t)
	n := start(t, dir, office.args()...)
	c := newCaller("")
	defer c.close()
	session, err := office.session(c, n.url, "ana@example.com")
	if err != nil {
		t.Fatal(err)
	}
	n.kill()
	return readDir(t, dir), session
}

// realSweep crashes the program itself.
type realSweep struct {
	t       *testing.T
	dir     string
	from    map[string][]byte
	session string
	office  *postOffice
	calls   calls
}

// newRealSweep lives once, untouched, and counts.
func newRealSweep(t *testing.T) *realSweep {
	t.Helper()
	w := &realSweep{t: t, dir: filepath.Join(memoryDir(t), "data"), office: newPostOffice(t)}
	w.from, w.session = realTemplate(t)
	trail := filepath.Join(filepath.Dir(w.dir), "trace")
	keys, _, _, err := w.live("-y", "-s", "0", "-o", trail, "-e", "trace="+writePath, "-e", "signal=none")
	if err != nil || len(keys) != realRounds {
		t.Fatalf("the untouched life: %d keys, %v", len(keys), err)
	}
	if w.calls, err = readTrace(trail, w.dir); err != nil {
		t.Fatal(err)
	}
	return w
}

// at are the options that plant a fault at the n-th of a call on the files of the directory.
func (w *realSweep) at(call string, n int, fault string) []string {
	options := []string{"-o", "/dev/null", "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", call, fault, n)}
	for _, path := range w.calls.paths {
		options = append(options, "-P", path)
	}
	return options
}

// put makes the directory what it is before each life.
func (w *realSweep) put() error {
	err := errors.Join(os.RemoveAll(w.dir), os.MkdirAll(w.dir, 0o700))
	for name, data := range w.from {
		err = errors.Join(err, os.WriteFile(filepath.Join(w.dir, name), data, 0o600))
	}
	return err
}

// live starts the program under strace and lets the caller work; SIGTERM ends what is still there.
func (w *realSweep) live(options ...string) (keys []realKey, maybe, fired bool, err error) {
	if err := w.put(); err != nil {
		return nil, false, false, err
	}
	n := launch(w.t, command{
		prefix: append([]string{"strace", "-D", "-f", "-qq"}, options...),
		args:   serveArgs(w.dir, w.office.args()...),
		env:    []string{"GOMAXPROCS=1"}, // the log changes its thread less often
	})
	c := newCaller("")
	defer c.close()
	if n.answers() {
		keys, maybe = realLife(c, n.url, w.session)
		n.send(syscall.SIGTERM)
	}
	code := n.end()
	status, _ := n.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if fired = status.Signaled() && status.Signal() == syscall.SIGKILL; !fired && code != 0 {
		err = fmt.Errorf("exit code %d: %s", code, n.tail(3))
	}
	return keys, maybe, fired, err
}

// crash is one point; false when it did not fire.
func (w *realSweep) crash(call string, n int) (bool, error) {
	keys, maybe, fired, err := w.live(w.at(call, n, "signal=KILL")...)
	if err != nil {
		return fired, err
	}
	after := start(w.t, w.dir, w.office.args()...)
	c := newCaller("")
	defer c.close()
	err = compareKeys(c, after.url, w.session, keys, maybe)
	after.kill()
	return fired, err
}

// TestFaultsW3_RealProgram crashes the program as users build it at the system calls of its write path, under callers over
// HTTP, up to its clean end. strace counts for each thread, and the log's goroutine changes its thread, so that a number
// is not the same moment in each run; every one that fires counts.
func TestFaultsW3_RealProgram(t *testing.T) {
	need(t, "strace", "strace")
	w := newRealSweep(t)
	fired, points, kinds := 0, 0, map[string]int{}
	for _, call := range strings.Split(writePath, ",") {
		for n := 1; n <= w.calls.counts[call]; n++ {
			hit, err := w.crash(call, n)
			if points++; hit {
				fired++
				kinds[call]++
			}
			if err != nil {
				t.Errorf("%s %d: %v", call, n, err)
			}
		}
	}
	figure(t, "the real program crashed at %d of %d system calls tried, 0 keys or revocations lost; %v of %v", fired, points, kinds, w.calls.counts)
	if fired < 40 {
		t.Errorf("%d of %d crashes fired", fired, points)
	}
}
