package actors

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// TestOperations_Follower asks a node that does not lead for every change: the leader makes it, and it works at the
// node that was asked at once. Errors keep their code, message and time to wait.
func TestOperations_Follower(t *testing.T) {
	f := startCluster(t, 3, 1, Config{})
	defer f.stop()
	s, email := f.nodes[1], mustEmail(t, "one@example.com")
	token := login(t, s.System, f.mail, email, client(1))
	key, secret, err := s.CreateKey(token, "first")
	if err != nil || key.Digest != secret.Digest() || key.Name != "first" {
		t.Fatalf("a key: %+v, %v", key, err)
	}
	if grant, err := s.Admit(account.Caller{Key: secret.Digest(), HasKey: true, Address: client(0)}); err != nil || grant.Account != 1 {
		t.Errorf("with the new key: %+v, %v", grant, err)
	}
	policy, err := s.Announce(noon.Add(100*24*time.Hour), "test")
	if err != nil || s.KeyPolicy() != policy || policy.RequiredAt.IsZero() {
		t.Errorf("announced %+v, known %+v, %v", policy, s.KeyPolicy(), err)
	}
	observe(t, s.System, saying("infodolar", noon, "USD", "58", "60", "popular"))
	if got := best(t, s.System); got != "60" {
		t.Errorf("a rate: %q", got)
	}
	for name, change := range map[string]func() error{
		"quota":    func() error { return s.SetAccountQuota(1, account.Quota{Day: 7, Minute: 3}, "test") },
		"suspend":  func() error { return s.SuspendAccount(1, "why", "test") },
		"unlock":   func() error { return s.UnlockLogin(email.ID(), "test") },
		"withdraw": func() error { return s.WithdrawAnnouncement("test") },
		"reject": func() error {
			_, err := s.Execute("USD", engine.Withdraw{Key: engine.QuoteKey{Institution: "popular", Channel: engine.Unspecified, Kind: engine.Commercial}, SourceID: "infodolar", By: "test"})
			return err
		},
	} {
		if err := change(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	record, windows, err := s.ShowAccount(1)
	if err != nil || record.SuspendedAt.IsZero() || windows.Day.Limit != 7 || s.KeyPolicy() != (account.KeyPolicy{}) {
		t.Errorf("the account: %+v, %+v, %v", record, windows, err)
	}
	if err := errors.Join(s.RestoreAccount(1, "test"), s.RevokeKey(token, key.ID), s.CloseSession(token)); err != nil {
		t.Error(err)
	}
	if _, err := s.Keys(token); err == nil {
		t.Error("the session is still open")
	}
	for name, ask := range map[string]func(*System) error{
		"release": func(s *System) error {
			_, err := s.Execute("USD", engine.Release{QuarantineID: 9, By: "test"})
			return err
		},
		"remove": func(s *System) error {
			_, err := s.Execute("USD", engine.Reject{QuarantineID: 9, By: "test"})
			return err
		},
		"observe": func(s *System) error { _, err := s.Execute("USD", engine.Observe{}); return err },
		"suspend": func(s *System) error { return s.SuspendAccount(99, "why", "test") },
		"session": func(s *System) error { _, _, err := s.OpenSession(email, "12345678", requester(1)); return err },
	} {
		var here, there *engine.Error
		if !errors.As(ask(f.nodes[0].System), &there) || !errors.As(ask(s.System), &here) ||
			here.Code != there.Code || here.Message != there.Message || here.RetryAfter != there.RetryAfter {
			t.Errorf("%s: the leader answers %v, another node %v", name, there, here)
		}
	}
	f.spread()
}

// TestOperations_Index holds back the log of the node that is asked: it answers when it has the leader's change.
func TestOperations_Index(t *testing.T) { synctest.Test(t, answersWithIndex) }

func answersWithIndex(t *testing.T) {
	f := startCluster(t, 3, 1, Config{})
	defer f.stop()
	s := f.nodes[1]
	f.log.with(func() { s.node.held = true })
	var asking sync.WaitGroup
	answered := make(chan struct{})
	asking.Go(func() {
		observe(t, s.System, saying("infodolar", noon, "USD", "58", "60", "popular"))
		close(answered)
	})
	synctest.Wait()
	select {
	case <-answered:
		t.Error("answered before the node had the change")
	default:
	}
	if f.nodes[0].Sequence() == 0 {
		t.Error("the leader did nothing")
	}
	f.log.with(func() { s.node.held = false })
	asking.Wait()
	if got := best(t, s.System); got != "60" {
		t.Errorf("a read after the answer: %q", got)
	}
}

// TestOperations_NoLeader: while no node leads a change waits, and is made once when there is a leader. A request whose
// leader is lost is not repeated: its outcome is unknown.
func TestOperations_NoLeader(t *testing.T) { synctest.Test(t, waitsForLeader) }

func waitsForLeader(t *testing.T) {
	f := startCluster(t, 3, 1, Config{})
	leader := f.nodes[0]
	f.log.elect(nil)
	var asking sync.WaitGroup
	asking.Go(func() { observe(t, f.nodes[1].System, saying("infodolar", noon, "USD", "58", "60", "popular")) })
	after(5 * retryLeader)
	f.log.elect(leader.node)
	asking.Wait()
	f.log.with(func() { f.log.stuck = true })
	asking.Go(func() {
		_, err := f.nodes[1].Observe([]engine.Refresh{saying("infodolar", noon, "EUR", "63", "66", "bhd")})
		if !errors.Is(err, commitlog.ErrOutcomeUnknown) {
			t.Errorf("a request of a lost leader: %v", err)
		}
	})
	leader.offers()
	f.log.elect(f.nodes[2].node)
	asking.Wait()
	f.log.with(func() { f.log.stuck = false })
	f.spread()
	f.stop()
}
