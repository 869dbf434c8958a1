package apitest

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tasard/tasard/actors"
)

// TestKeys_Bulk checks that each of many keys has an account of its own, next to keys that were created one by one.
func TestKeys_Bulk(t *testing.T) {
	srv := Start(t, Rates(standardRate), Quota(2, 1), KeysRequired())
	keys := append([]string{srv.Key()}, srv.Keys(40)...)
	keys = append(append(keys, srv.Key()), srv.Keys(3)...)
	for _, key := range keys {
		mustAnswer(t, srv, srv.Client, key, http.StatusOK, "")
		mustAnswer(t, srv, srv.Client, key, http.StatusTooManyRequests, "")
	}
}

// TestKeys_Many creates more accounts than the limit of login codes an hour, and than one batch of the log, while the
// clock stands still.
func TestKeys_Many(t *testing.T) {
	const count = 5100
	srv := Start(t, Rates(standardRate), Limits())
	keys := srv.Keys(count)
	if len(keys) != count || !srv.Clock.Now().Equal(Epoch()) {
		t.Errorf("%d keys at %s", len(keys), srv.Clock.Now())
	}
	mustAnswer(t, srv, srv.Client, keys[count-1], http.StatusOK, "")
}

// TestWrite writes states as data directories: of a new node, and of one with a snapshot and records after it. A system
// on the directory has the state of the node, and nothing is overwritten.
func TestWrite(t *testing.T) {
	srv := Start(t, Rates(standardRate), Limits())
	for _, add := range []func(){func() {}, func() { srv.Keys(5) }, func() { srv.Key() }} {
		add()
		state, dir := srv.Snapshot(), filepath.Join(t.TempDir(), "data", "node")
		if err := state.Write(dir); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) == 0 {
			t.Fatal(entries, err)
		}
		for _, entry := range entries {
			if info, err := entry.Info(); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %v %v", entry.Name(), info.Mode(), err)
			}
		}
		checkDirectory(t, srv, dir)
		err = state.Write(dir)
		if err == nil || !strings.Contains(err.Error(), "empty directory") {
			t.Errorf("over a data directory: %v", err)
		}
		if err := state.Write(filepath.Join(dir, "mark")); err == nil {
			t.Error("into a file")
		}
		if err := state.Write(t.TempDir()); err != nil {
			t.Errorf("into an empty directory: %v", err)
		}
	}
}

// checkDirectory checks that a system on a data directory has the state of the node.
func checkDirectory(t *testing.T, srv *Server, dir string) {
	t.Helper()
	config := srv.systemConfig(nil)
	config.Journal, config.Dir, config.Log.ReserveBytes = nil, dir, -1
	system, err := actors.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := awaitReady(system); err != nil {
		t.Fatal(err)
	}
	var states, accounts [2]any
	for i, s := range []*actors.System{srv.instance.system, system} {
		rates, ratesErr := s.States()
		list, listErr := s.ListAccounts()
		states[i], accounts[i], err = fmt.Sprintf("%+v", rates), fmt.Sprintf("%+v", list), errors.Join(err, ratesErr, listErr)
	}
	if err = errors.Join(err, system.Close()); err != nil || states[0] != states[1] || accounts[0] != accounts[1] {
		t.Errorf("%v; the node has %s %s, the directory %s %s", err, states[0], accounts[0], states[1], accounts[1])
	}
}
