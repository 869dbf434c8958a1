package actors

import (
	"testing"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// contractChange is a change of account 1, which has one key, and whether the change has taken effect.
type contractChange struct {
	make func(n *node, m *testMember) error
	done func(n *node, m *testMember, record account.Record, usage account.QuotaResult) bool
}

func contractChanges() map[string]contractChange {
	type (
		record = account.Record
		usage  = account.QuotaResult
	)
	rejected := func(n *node, m *testMember, _ record, _ usage) bool { return n.admit(m.keys[0]).Account == 0 }
	return map[string]contractChange{
		"a key is created": {
			func(n *node, m *testMember) error { _, _, err := n.CreateKey(m.token, ""); return err },
			func(_ *node, _ *testMember, r record, _ usage) bool { return len(r.Keys) == 2 },
		},
		"a key is revoked":        {func(n *node, m *testMember) error { return n.RevokeKey(m.token, m.ids[0]) }, rejected},
		"an account is suspended": {func(n *node, _ *testMember) error { return n.SuspendAccount(1, "abuse", "luis") }, rejected},
		"a quota is set": {
			func(n *node, _ *testMember) error {
				return n.SetAccountQuota(1, account.Quota{Day: 7, Minute: 5}, "luis")
			},
			func(_ *node, _ *testMember, _ record, u usage) bool { return u.Day.Limit == 7 },
		},
	}
}

// TestQ6_EachChangeIsDurable plays one short sequence for each kind of change that TestQ6_AccountsFollowTheContract
// makes at random: a change has no effect before it is durable, and an acknowledged one survives a crash.
func TestQ6_EachChangeIsDurable(t *testing.T) {
	for name, change := range contractChanges() {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, Config{})
			m := n.join(1, 1)
			n.admit(m.keys[0]) // it has a lease, and needs no other one below
			want := func(what string, want bool) {
				t.Helper()
				record, usage, err := n.ShowAccount(1)
				if err != nil {
					t.Fatal(err)
				}
				if change.done(n, m, record, usage) != want {
					t.Errorf("%s: it has taken effect: %v", what, !want)
				}
			}
			n.fault(wal.ErrNoSpace)
			if err := change.make(n, m); !isCode(err, engine.CodeReadOnly) {
				t.Errorf("on a full disk: %v", err)
			}
			want("refused by a full disk", false)
			n.fault(errPlanted)
			if err := change.make(n, m); err == nil || n.Err() == nil {
				t.Errorf("on a failing disk: %v, and the node stops for %v", err, n.Err())
			}
			n.fault(nil)
			n.crash()
			want("after the write has failed", false)
			n.pass(2 * account.MinuteSpan) // an address gets one code a minute
			m.token = login(t, n.System, n.mail, m.email, client(2))
			if err := change.make(n, m); err != nil {
				t.Fatal(err)
			}
			want("acknowledged", true)
			n.crash()
			want("after a crash", true)
		})
		t.Run(name+", control", func(t *testing.T) {
			n := startNode(t, Config{})
			m := n.join(1, 1)
			n.journal.setLazy(true)
			if err := change.make(n, m); err != nil {
				t.Fatal(err)
			}
			n.crash()
			if record, usage, err := n.ShowAccount(1); err != nil || change.done(n, m, record, usage) {
				t.Errorf("a journal that acknowledges before it keeps is not caught: %v", err)
			}
		})
	}
}
