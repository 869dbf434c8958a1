package actors

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// TestShared_K2_OneCodeOneSession tries the code that one node has sent on three nodes at once, several times on
// each: one session is opened, and one account begun, whatever node was first.
func TestShared_K2_OneCodeOneSession(t *testing.T) {
	for seed := range uint64(cases(8, 20)) {
		f := startCluster(t, 3, seed, Config{})
		email := mustEmail(t, "one@example.com")
		if err := f.nodes[seed%3].RequestCode(email, requester(1)); err != nil {
			t.Fatal(err)
		}
		f.settled()
		code := f.mail.code(email)
		var opened atomic.Int64
		f.allAccounts(3, func(s *clusterNode, time int) {
			_, _, err := s.OpenSession(email, code, requester(int(s.node.id)*10+time))
			switch {
			case err == nil:
				opened.Add(1)
			case accounts.AsEngineError(err).Code != engine.CodeInvalidCode:
				t.Errorf("node %d: %v", s.node.id, err)
			}
		})
		if n := opened.Load(); n != 1 {
			t.Errorf("seed %d: one code opened %d sessions", seed, n)
		}
		f.spread()
		if n := len(f.nodes[0].records()); n != 1 {
			t.Errorf("seed %d: %d accounts were begun", seed, n)
		}
		f.stop()
	}
}

// TestShared_K2_FiveTriesInAll tries wrong codes on three nodes at once. Behind four of them the right one opens a
// session on any node, behind five it does on none.
func TestShared_K2_FiveTriesInAll(t *testing.T) {
	for seed := range uint64(cases(8, 20)) {
		for _, wrong := range []int{account.CodeTriesMax - 1, account.CodeTriesMax} {
			f := startCluster(t, 3, seed, Config{})
			email := mustEmail(t, "one@example.com")
			if err := f.nodes[0].RequestCode(email, requester(1)); err != nil {
				t.Fatal(err)
			}
			f.settled()
			code := f.mail.code(email)
			var next atomic.Int64
			f.allAccounts(wrong, func(s *clusterNode, _ int) {
				if next.Add(1) > int64(wrong) {
					return
				}
				if _, _, err := s.OpenSession(email, notCode(code), requester(2)); accounts.AsEngineError(err).Code != engine.CodeInvalidCode {
					t.Errorf("node %d: a wrong code: %v", s.node.id, err)
				}
			})
			f.settled()
			_, _, err := f.nodes[seed%3].OpenSession(email, code, requester(3))
			if opens := wrong < account.CodeTriesMax; opens != (err == nil) {
				t.Errorf("seed %d: behind %d wrong tries the right code: %v", seed, wrong, err)
			}
			f.spread()
			f.stop()
		}
	}
}

func notCode(code string) string {
	if code[0] == '0' {
		return "1" + code[1:]
	}
	return "0" + code[1:]
}

// TestShared_NewAccountsAtOnce has three nodes begin accounts at once: no two have the same number, and all nodes
// know them all.
func TestShared_NewAccountsAtOnce(t *testing.T) {
	f := startCluster(t, 3, 1, Config{})
	defer f.stop()
	f.allAccounts(4, func(s *clusterNode, time int) {
		email := mustEmail(t, fmt.Sprintf("user%d-%d@example.com", s.node.id, time))
		from := client(int(s.node.id)*10 + time)
		if err := s.RequestCode(email, account.Requester{Address: from}); err != nil {
			t.Errorf("node %d: request a code: %v", s.node.id, err)
			return
		}
		if _, _, err := s.OpenSession(email, f.mail.code(email), account.Requester{Address: from}); err != nil {
			t.Errorf("node %d: open a session: %v", s.node.id, err)
		}
	})
	f.spread()
	if n := len(f.nodes[2].records()); n != 12 {
		t.Errorf("%d accounts, want 12", n)
	}
}
