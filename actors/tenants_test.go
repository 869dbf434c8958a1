package actors

import (
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// The whole way of a new user, with a restart after each step: nothing acknowledged is lost.
func TestK1_FromAnAddressToARevokedKey(t *testing.T) {
	n := startNode(t, Config{})
	email := mustEmail(t, "Ana.Perez@Example.com")
	if err := n.RequestCode(email, client(1)); err != nil {
		t.Fatal(err)
	}
	code := n.mail.code(email)
	if len(code) != engine.CodeDigits {
		t.Fatalf("a code of %d digits", len(code))
	}
	if _, _, err := n.OpenSession(email, "00000000", client(1)); code != "00000000" && !isCode(err, engine.CodeInvalidCode) {
		t.Errorf("a wrong code: %v", err)
	}
	token, expires, err := n.OpenSession(email, code, client(1))
	if err != nil || !expires.Equal(noon.Add(engine.SessionLifetime)) {
		t.Fatalf("session until %s, %v", expires, err)
	}
	n.crash()
	key, secret, err := n.CreateKey(token.Digest(), "first")
	if err != nil || key.Hint != secret.Hint() || key.Name != "first" || key.ID == "" || !key.CreatedAt.Equal(noon) {
		t.Fatalf("%+v, %v", key, err)
	}
	n.crash()
	digest, ok := engine.ReadKey([]byte(secret.Reveal()))
	if !ok {
		t.Fatal("the key does not read")
	}
	if grant := n.admit(digest); !grant.Admitted || grant.Account != 1 || grant.Day.Remaining != 999 || grant.Minute.Remaining != 59 {
		t.Errorf("%+v", grant)
	}
	n.restart()
	keys, err := n.Keys(token.Digest())
	if err != nil || len(keys) != 1 || keys[0].ID != key.ID || !keys[0].LastUsed.Equal(noon) {
		t.Errorf("%+v, %v", keys, err)
	}
	if err := n.RevokeKey(token.Digest(), key.ID); err != nil {
		t.Fatal(err)
	}
	if grant := n.admit(digest); grant.Account != 0 || !grant.Admitted {
		t.Errorf("a revoked key is no stranger: %+v", grant)
	}
	n.crash()
	if _, err := n.KeyUsage(digest); !isCode(err, engine.CodeRevokedKey) {
		t.Errorf("after a crash: %v", err)
	}
	if err := n.RevokeKey(token.Digest(), key.ID); err != nil {
		t.Errorf("revoking again: %v", err)
	}
	if err := n.CloseSession(token.Digest()); err != nil {
		t.Fatal(err)
	}
	n.crash()
	if _, err := n.Keys(token.Digest()); !isCode(err, engine.CodeInvalidSession) {
		t.Errorf("after signing out: %v", err)
	}
}

func TestL1_CleanStopCostsNothing(t *testing.T) {
	n := startNode(t, Config{Terms: engine.Terms{Allowance: engine.Allowance{Minute: 1000}}})
	busy, aside := n.join(1, 1), n.join(2, 1)
	if got := n.admitted(busy.keys[0], 5) + n.admitted(aside.keys[0], 7); got != 12 {
		t.Fatalf("%d of 12 admitted", got)
	}
	n.pass(2 * time.Minute)
	n.sweepAll()
	n.admitted(busy.keys[0], 1)
	if live := n.tenants.living.Load(); live != 1 {
		t.Fatalf("%d accounts live, want 1", live)
	}
	n.restart()
	if a, b := n.spent(busy.token), n.spent(aside.token); a != 6 || b != 7 {
		t.Errorf("after a clean stop %d and %d are spent, want 6 and 7", a, b)
	}
	n.admitted(busy.keys[0], 1)
	n.crash()
	if a, b := n.spent(busy.token), n.spent(aside.token); a != 6+engine.LeaseDefault || b != 7 {
		t.Errorf("after a crash %d and %d are spent, want %d and 7", a, b, 6+engine.LeaseDefault)
	}
}
