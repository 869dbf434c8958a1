package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func codeOfError(err error) Code {
	var refusal *Error
	if !errors.As(err, &refusal) {
		return ""
	}
	return refusal.Code
}

// session is one of those opened, by chance; the zero Digest when there is none.
func (w *loginWorld) session() (Digest, openedSession) {
	tokens := make([]Digest, 0, len(w.sessions))
	for token := range w.sessions {
		tokens = append(tokens, token)
	}
	if len(tokens) == 0 {
		return Digest{}, openedSession{closed: true}
	}
	slices.SortFunc(tokens, func(a, b Digest) int { return slices.Compare(a[:], b[:]) })
	token := tokens[w.pick(len(tokens))]
	return token, w.sessions[token]
}

// enter is the account of a session by chance, nil when the session has ended.
func (w *loginWorld) enter() *Account {
	token, truth := w.session()
	id, err := w.registry.Session(token, w.now())
	switch {
	case err == nil && (truth.closed || id != truth.account):
		w.fail("session of account %d: %+v", id, truth)
	case err == nil && w.real-truth.real >= SessionLifetime && w.now().Steady-w.origin >= SessionLifetime:
		w.fail("a session of %s lives", w.real-truth.real)
	case err != nil && !truth.closed && w.real-truth.real < SessionLifetime && !w.clockWasBack() && !w.mayHaveEnded(token, truth):
		w.fail("%+v has ended", truth)
	}
	if err != nil {
		return nil
	}
	return w.accounts[id]
}

// mayHaveEnded reports that eight later sessions took a session's place, or that a sign-out became durable in a crash, before anybody
// was told.
func (w *loginWorld) mayHaveEnded(token Digest, truth openedSession) bool {
	later := 0
	for _, event := range w.log {
		switch e := event.(type) {
		case *SessionClosed:
			if e.Token == token {
				return true
			}
		case *SessionOpened:
			if e.Token == token {
				later = 0
			} else if e.Email == idOf(truth.email) {
				later++
			}
		}
	}
	return later >= sessionsPerEmailMax
}

func (w *loginWorld) signOut() {
	token, truth := w.session()
	if event, err := w.registry.CloseSession(token, w.now()); err == nil {
		w.propose(event, func() { truth.closed = true; w.sessions[token] = truth })
	}
}

func (w *loginWorld) createKey() {
	account := w.enter()
	if account == nil {
		return
	}
	secret, _ := NewKey(w.random, KeyPrefixTest)
	id := fmt.Sprint("key", len(w.log), len(w.flight))
	event, err := account.CreateKey(KeyRecord{ID: id, Hint: secret.Hint(), Digest: secret.Digest(), CreatedAt: w.now().Wall})
	if err != nil {
		return
	}
	w.propose(event, func() {
		w.created++
		w.keys[secret.Reveal()] = keyTruth{event.AccountID(), id, false}
		active := 0
		for _, key := range w.keys {
			if key.account == event.AccountID() && !key.revoked && !w.revoking(key) {
				active++
			}
		}
		if active > KeysActiveMax {
			w.fail("%d active keys", active)
		}
	})
}

func (w *loginWorld) revokeKey() {
	for _, text := range w.keyTexts() {
		truth := w.keys[text]
		if truth.revoked || w.pick(2) == 0 {
			continue
		}
		event, err := w.accounts[truth.account].RevokeKey(truth.id, "owner", w.now().Wall)
		if err != nil {
			w.fail("revoke: %v", err)
		} else if event != nil {
			w.propose(event, func() { truth.revoked = true; w.keys[text] = truth })
		}
		return
	}
}

func (w *loginWorld) keyTexts() []string {
	var texts []string
	for text := range w.keys {
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return texts
}

// useKeys asks with every key: what was acknowledged works, what was revoked does not.
func (w *loginWorld) useKeys() {
	for _, text := range w.keyTexts() {
		truth := w.keys[text]
		digest, ok := ReadKey([]byte(text))
		account := w.accounts[truth.account]
		if !ok || account == nil {
			w.fail("key of account %d is lost", truth.account)
			return
		}
		verdict, need := account.Admit(digest, w.now(), plainTerms)
		refused := verdict.Violated == CodeRevokedKey || verdict.Violated == CodeInvalidKey
		if refused != truth.revoked && (!refused || !w.revoking(truth)) {
			w.fail("key of %+v is used: %s", truth, verdict.Violated)
		}
		if lease := account.NextLease(digest, w.now(), plainTerms, int(need)); lease != nil {
			w.propose(lease, func() {})
		}
	}
}

// revoking reports that a revocation may have become durable in a crash, before anybody was told.
func (w *loginWorld) revoking(truth keyTruth) bool {
	for _, event := range w.log {
		if e, is := event.(*KeyRevoked); is && e.KeyID == truth.id {
			return true
		}
	}
	return false
}

// crash loses the process, and of what is on its way all but the oldest part.
func (w *loginWorld) crash() {
	for range w.pick(len(w.flight) + 1) { // durable, and nobody was told
		event := w.flight[0]
		w.flight = w.flight[1:]
		w.keep(event)
	}
	for _, event := range w.flight {
		if e, failed := event.(*CodeFailed); failed { // its caller never got an answer
			w.wrong[worldText(e.Email)] = w.wrong[worldText(e.Email)][:len(w.wrong[worldText(e.Email)])-1]
		}
	}
	w.pass()
	w.restart()
}

func (w *loginWorld) pass() {
	spans := []time.Duration{0, time.Second, 30 * time.Second, time.Minute, time.Minute, 5 * time.Minute, 10 * time.Minute, 16 * time.Minute, 3 * time.Hour, 49 * time.Hour}
	w.real += spans[w.pick(len(spans))]
}

func (w *loginWorld) step() {
	switch kind := w.pick(30); {
	case kind < 5:
		w.requestCode()
	case kind < 12:
		for range 1 + w.pick(6) {
			w.tryCode()
		}
	case kind < 19:
		w.settle(1 + w.pick(10))
	case kind < 22:
		w.pass()
	case kind < 24:
		w.createKey()
	case kind == 24:
		w.revokeKey()
	case kind == 25:
		w.signOut()
	case kind == 26:
		w.useKeys()
	case kind == 27:
		w.enter()
	case kind == 28 && w.pick(3) == 0:
		steps := []time.Duration{time.Second, 61 * time.Second, time.Hour, 25 * time.Hour, 40 * 24 * time.Hour}
		w.offset += steps[w.pick(len(steps))] * time.Duration(1-2*w.pick(2))
		w.stepped = w.real
	case kind == 29:
		w.crash()
	}
}

func (w *loginWorld) live(steps int) string {
	for range steps {
		if w.sabotage != nil {
			w.sabotage()
		}
		if w.step(); w.fault != "" {
			return w.fault
		}
	}
	w.settle(len(w.flight))
	w.sameState("live is not replayed", &loginState{w.registry, w.accounts}, w.replay(-1))
	w.useKeys()
	return w.fault
}

// Whatever logins, crashes and steps of the clock come together: a code opens one session, of its address, in its time and its five
// tries; wrong tries stay within a day's limit; at most two keys are active; what was acknowledged outlives every crash, what was
// revoked is refused; and a replay is the live state.
func TestK2_K5_S1_LoginsAndKeys(t *testing.T) {
	sequences, logins, created := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newLoginWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") })
		if fault := w.live(rapid.IntRange(1, 150).Draw(t, "steps")); fault != "" {
			t.Fatal(fault)
		}
		sequences, logins, created = sequences+1, logins+w.logins, created+w.created
	})
	t.Logf("%d sequences, %d logins, %d keys", sequences, logins, created)
	if sequences == 0 || logins == 0 {
		t.Error("nothing was tried")
	}
}

func TestK2_K5_S1_LoginsAndKeysFromSeeds(t *testing.T) {
	sequences := 3_000
	if raceDetector || testing.Short() {
		sequences = 200
	}
	logins, created := 0, 0
	for seed := range sequences {
		w := newLoginWorld(rand.New(rand.NewPCG(3, uint64(seed))).IntN)
		if fault := w.live(300); fault != "" {
			t.Fatalf("seed %d: %s", seed, fault)
		}
		logins, created = logins+w.logins, created+w.created
	}
	t.Logf("%d sequences, %d logins, %d keys", sequences, logins, created)
}

// sabotages are bugs planted before each step.
func (w *loginWorld) sabotages() map[string]func() {
	seen := map[Digest]*pendingCode{}
	return map[string]func(){
		"a code works twice": func() {
			for email, entry := range w.registry.visitors {
				if entry.code == nil {
					entry.code = seen[email]
				}
				seen[email] = entry.code
			}
		},
		"tries on their way don't count": func() {
			for _, entry := range w.registry.visitors {
				entry.trying = 0
			}
		},
		"wrong tries are forgotten": func() {
			for _, at := range w.registry.addresses.index {
				w.registry.addresses.own(at).wrong = tally{}
			}
		},
		"keys on their way don't count": func() {
			for _, account := range w.accounts {
				account.creating = 0
			}
		},
		"a revocation is not in the log": func() {
			w.log = slices.DeleteFunc(w.log, func(event any) bool { _, revoked := event.(*KeyRevoked); return revoked })
		},
		"a key is not in the log": func() {
			w.log = slices.DeleteFunc(w.log, func(event any) bool { _, created := event.(*KeyCreated); return created })
		},
	}
}

func TestK2_K5_S1_ControlPlantedBugsAreCaught(t *testing.T) {
	for name, fault := range map[string]string{
		"a code works twice":             "a session for",
		"tries on their way don't count": "wrong tries for",
		"wrong tries are forgotten":      "is forgotten",
		"keys on their way don't count":  "active keys",
		"a revocation is not in the log": "key of %+v is used",
		"a key is not in the log":        "key of %+v is used",
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range 10_000 {
				w := newLoginWorld(rand.New(rand.NewPCG(4, uint64(seed))).IntN)
				w.only, w.sabotage = fault, w.sabotages()[name]
				if fault := w.live(300); fault != "" {
					t.Logf("caught by sequence %d: %.200s", seed+1, fault)
					return
				}
			}
			t.Error("not caught")
		})
	}
}
