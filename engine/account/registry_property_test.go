package account

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// enter is the account of a random session, nil when the session has ended.
func (n *loginNode) enter() *Account {
	m := n.model
	tokens := sortedKeys(m.sessions, func(a, b Digest) int { return slices.Compare(a[:], b[:]) })
	token, truth := Digest{}, &openedSession{closed: true}
	if len(tokens) > 0 {
		token = tokens[m.pick(len(tokens))]
		truth = m.sessions[token]
	}
	now := n.now()
	ended := truth.closed || now.Monotonic-truth.at.Monotonic >= SessionLifetime || !now.Wall.Before(truth.at.Wall.Add(SessionLifetime))
	id, err := n.registry.Session(token, now)
	if err == nil && (ended || id != truth.account) || err != nil && !ended && !m.mayHaveEnded(token, truth) {
		m.fail("session of account %d, %v: %+v", id, err, truth)
	}
	if m.pick(4) == 0 && !n.deciding() { // signs out
		if event, err := n.registry.CloseSession(token, n.now()); err == nil {
			n.propose(event, "", func() { truth.closed = true })
		}
	}
	if err != nil {
		return nil
	}
	return n.accounts[id]
}

func sortedKeys[K comparable, V any](all map[K]V, compare func(a, b K) int) []K {
	keys := make([]K, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compare)
	return keys
}

// mayHaveEnded reports that eight later sessions replaced a session, or that a sign-out may have become durable in a
// crash.
func (m *loginModel) mayHaveEnded(token Digest, truth *openedSession) bool {
	later := 0
	for _, record := range m.log {
		switch e := record.event.(type) {
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

func (n *loginNode) createKey() {
	m, account := n.model, n.enter()
	if account == nil {
		return
	}
	secret, _ := NewKey(m.random, KeyPrefixTest)
	id := fmt.Sprint("key", m.next())
	event, err := account.CreateKey(KeyRecord{ID: id, Hint: secret.Hint(), Digest: secret.Digest(), CreatedAt: n.now().Wall})
	if err != nil {
		return
	}
	n.propose(event, "", func() {
		m.counts["created"]++
		m.keys[secret.Reveal()] = &keyTruth{event.accountID(), id, false}
		active := 0
		for _, key := range m.keys {
			if key.account == event.accountID() && !key.revoked && !m.revoking(key) {
				active++
			}
		}
		if active > KeysActiveMax {
			m.fail("%d active keys", active)
		}
	})
}

func (n *loginNode) revokeKey() {
	m := n.model
	for _, text := range sortedKeys(m.keys, strings.Compare) {
		truth := m.keys[text]
		if truth.revoked || m.pick(2) == 0 {
			continue
		}
		event, err := n.accounts[truth.account].RevokeKey(truth.id, "owner", n.now().Wall)
		if err != nil {
			m.fail("revoke: %v", err)
		} else if event != nil {
			n.propose(event, "", func() { truth.revoked = true })
		}
		return
	}
}

// useKeys makes a request with every key: acknowledged keys work, revoked ones do not.
func (n *loginNode) useKeys() {
	m := n.model
	for _, text := range sortedKeys(m.keys, strings.Compare) {
		truth := m.keys[text]
		digest, ok := ParseKey([]byte(text))
		account := n.accounts[truth.account]
		if !ok || account == nil {
			m.fail("key of account %d is lost", truth.account)
			return
		}
		result, needsLease := account.Admit(digest, n.now(), defaultPolicy)
		refused := result.DenyCode == engine.CodeRevokedKey || result.DenyCode == engine.CodeInvalidKey
		if refused != truth.revoked && (!refused || !m.revoking(truth)) {
			m.fail("key of %+v is used: %s", truth, result.DenyCode)
		}
		if lease := account.NextLease(digest, n.now(), defaultPolicy, when(needsLease)); lease != nil {
			n.propose(lease, "", nil)
		}
	}
}

// revoking reports that a revocation may have become durable in a crash.
func (m *loginModel) revoking(truth *keyTruth) bool {
	return slices.ContainsFunc(m.log, func(record loginRecord) bool {
		e, is := record.event.(*KeyRevoked)
		return is && e.KeyID == truth.id
	})
}

// crash loses the process and all but the oldest pending events. The next process starts from the state of a node.
func (n *loginNode) crash() {
	m := n.model
	if m.single {
		n.dying = true
		n.drain(m.pick(len(n.flight) + 1))
		m.pass()
		at := m.pick(len(m.log) + 1)
		part := m.replay(at)
		n.begin(part, at, 0)
		m.sameState("a snapshot and the events behind it are not all events", &n.loginState)
		return
	}
	if m.pick(2) == 0 {
		n.drain(len(n.flight))
	}
	other := m.nodes[m.pick(len(m.nodes))]
	kept, from, origin := other.restored(m.key(), nil), other.applied, other.now().Monotonic
	if m.pass(); m.pick(2) == 0 {
		n.begin(nil, 0, n.origin)
	} else {
		n.begin(&kept, from, origin)
	}
}

// replay is the state after so many events.
func (m *loginModel) replay(to int) *loginState {
	s := &loginState{NewRegistry(m.key()), map[uint64]*Account{}}
	for _, record := range m.log[:to] {
		s.apply(record.event)
	}
	return s
}

// sameState compares a state with a replay.
func (m *loginModel) sameState(what string, got *loginState) {
	registry, accounts := got.snapshot()
	wantedRegistry, wantedAccounts := m.replay(len(m.log)).snapshot()
	if !reflect.DeepEqual(registry, wantedRegistry) || !reflect.DeepEqual(accounts, wantedAccounts) {
		m.fail("%s:\n%+v\n%+v\n%+v\n%+v", what, registry, accounts, wantedRegistry, wantedAccounts)
	}
}

func (m *loginModel) pass() {
	spans := []time.Duration{
		0, time.Millisecond, time.Second, time.Second, 10 * time.Second, 30 * time.Second, time.Minute, time.Minute, 61 * time.Second, 4 * time.Minute,
		10*time.Minute - 1, 10 * time.Minute, 11 * time.Minute, 15*time.Minute - 1, 15 * time.Minute, 16 * time.Minute,
		3 * time.Hour, 49 * time.Hour,
	}
	if !m.single {
		spans = spans[:13]
	}
	m.passOneOf(spans...)
}

func (m *loginModel) step() {
	n, email := m.nodes[m.pick(len(m.nodes))], fmt.Sprintf("%d@b.do", m.pick(3))
	switch kind := m.pick(60); {
	case m.single:
		m.stepSingle(n, email, kind/2)
	case kind < 8:
		n.requestCode(email)
	case kind < 20:
		for range 1 + m.pick(4) {
			n.tryCode(email)
			n.drain(m.pick(3))
		}
	case kind < 34:
		n.drain(len(n.flight))
	case kind < 48:
		n.deliver(1 + m.pick(4))
	case kind < 57:
		m.pass()
	case kind == 57:
		n.partitioned = !n.partitioned
	default:
		n.crash()
	}
}

// stepSingle does something random on a single node.
func (m *loginModel) stepSingle(n *loginNode, email string, kind int) {
	switch {
	case kind < 5:
		n.requestCode(email)
	case kind < 12:
		for range 1 + m.pick(6) {
			n.tryCode(email)
			n.drain(m.pick(3))
		}
	case kind < 19:
		n.drain(1 + m.pick(10))
	case kind < 22:
		m.pass()
	case kind < 24:
		n.createKey()
	case kind == 24:
		n.revokeKey()
	case kind < 27:
		n.enter()
	case kind == 27:
		n.useKeys()
	case kind == 28 && m.pick(3) == 0:
		n.stepClock()
	case kind == 29:
		n.crash()
	}
}

// run does so many steps, or fewer up to the first fault. At the end all nodes must have the same addresses and
// accounts, and a single node those of its log.
func (m *loginModel) run(steps int) *model {
	for range steps {
		if m.bug.sabotage != nil {
			m.bug.sabotage(m)
		}
		if m.step(); m.fault != "" {
			return &m.model
		}
	}
	if n := m.nodes[0]; m.single {
		for len(n.flight) > 0 {
			n.drain(len(n.flight))
		}
		m.sameState("live is not replayed", &n.loginState)
		n.useKeys()
		return &m.model
	}
	var first RegistryState
	for i, n := range m.nodes {
		n.partitioned = false
		n.deliver(len(m.log))
		state := sorted(n.registry.Snapshot())
		for j := range state.Addresses {
			state.Addresses[j].NextCodeAt, state.Addresses[j].LastEventAt = 0, 0
		}
		if i == 0 {
			first = state
		}
		if !reflect.DeepEqual(state.Addresses, first.Addresses) || state.LastID != first.LastID {
			m.fail("nodes know %+v and %+v", state, first)
		}
	}
	return &m.model
}

func loginSequences(t *testing.T, count, steps int, single bool, wanted ...string) {
	t.Helper()
	live := func(pick func(int) int) *model { return newLoginModel(pick, single, loginBug{}).run(steps) }
	sequences(t, 3, count, live, append(wanted, "opened", "failed")...)
}

// Under logins, crashes and clock steps a code opens one session, of its address, in its time and its five tries; wrong
// tries stay within the daily limit; at most two keys are active; what was acknowledged survives every crash; and a
// replay gives the live state.
func TestK2_K5_S1_LoginsAndKeys(t *testing.T) {
	loginSequences(t, sweep(50, 3_000), 300, true, "created")
}

// On several nodes a code opens one session, after at most four wrong tries on all nodes together, each node can check
// every code, and an address has one account.
func TestK2_LoginsInACluster(t *testing.T) {
	loginSequences(t, sweep(50, 3_000), 400, false, "void")
}

// singleLoginBugs are planted in a single node, before each step.
func singleLoginBugs() map[string]loginBug {
	seen := map[Digest]CodeState{}
	return map[string]loginBug{
		"a code works twice": {only: "a session without", sabotage: func(m *loginModel) {
			codes := m.nodes[0].registry.codes
			for email, code := range seen {
				if len(codes[email]) == 0 {
					codes[email] = loginCodes{code}
				}
			}
			for email, all := range codes {
				if code := all.of(Digest{}); code != nil {
					seen[email] = *code
				}
			}
		}},
		"wrong tries don't count": {only: "a session after %d tries", sabotage: func(m *loginModel) {
			for _, codes := range m.nodes[0].registry.codes {
				for i := range codes {
					codes[i].Tries = 0
				}
			}
		}},
		"keys on their way don't count": {only: "active keys", sabotage: func(m *loginModel) {
			for _, account := range m.nodes[0].accounts {
				account.keysPending = 0
			}
		}},
		"a revocation is not in the log": {only: "key of %+v is used", sabotage: func(m *loginModel) {
			n, before := m.nodes[0], len(m.log)
			m.log = slices.DeleteFunc(m.log, func(record loginRecord) bool { _, is := record.event.(*KeyRevoked); return is })
			n.applied -= before - len(m.log)
		}},
	}
}

// clusterLoginBugs are planted in a cluster.
func clusterLoginBugs() map[string]loginBug {
	return map[string]loginBug{
		"wrong tries elsewhere don't count": {only: "a session after %d tries", learnt: func(r *Registry, event RegistryEvent) {
			if e, failed := event.(*CodeFailed); failed {
				if codes := r.codes[e.Email.digest]; len(codes) > 0 {
					codes[0].Tries--
				}
			}
		}},
		"nothing is decided again": {only: "a session", stale: true},
		"a snapshot forgets codes": {only: "is refused", joined: func(state *RegistryState) { state.SharedCodes = nil }},
		"a snapshot forgets tries": {only: "a session after %d tries", joined: func(state *RegistryState) {
			for i := range state.SharedCodes {
				state.SharedCodes[i].Tries = 0
			}
		}},
		"each node has a key of its own": {only: "is refused", keyless: true},
	}
}

func TestK2_K5_S1_ControlPlantedBugsAreCaught(t *testing.T) {
	for _, kind := range []struct {
		single bool
		bugs   func() map[string]loginBug
	}{{true, singleLoginBugs}, {false, clusterLoginBugs}} {
		for name := range kind.bugs() {
			wantCaught(t, name, 37, 0, func(pick func(int) int) *model { return newLoginModel(pick, kind.single, kind.bugs()[name]).run(400) })
		}
	}
}

func numberedID(number int) EmailID { return idOf(fmt.Sprintf("%d@b.do", number)) }

// randomLogins are events of a few thousand addresses over some days.
func randomLogins(seed uint64, count int) []RegistryEvent {
	random := rand.New(rand.NewPCG(5, seed))
	var events []RegistryEvent
	for i := range count {
		email, monotonic := numberedID(random.IntN(3000)), time.Duration(i)*2*time.Minute
		at := noon.Add(monotonic)
		switch random.IntN(5) {
		case 0:
			events = append(events, &CodeFailed{Email: email, At: at, Monotonic: monotonic})
		case 1:
			account := uint64(1 + random.IntN(3000))
			events = append(events, &SessionOpened{account, true, email, digestOf(fmt.Sprint(i)), at.Add(SessionLifetime), at, monotonic, Digest{}})
		case 2:
			events = append(events, &SessionClosed{digestOf(fmt.Sprint(i - random.IntN(4)))})
		default:
			events = append(events, &CodeIssued{email, at, monotonic, random.IntN(2) == 0, CodeSeal{}, Digest{}})
		}
	}
	return events
}

// A snapshot does not change with the registry, and taking one changes nothing.
func TestRegistrySnapshotsStay(t *testing.T) {
	other, plain := NewRegistry([32]byte{1}), NewRegistry([32]byte{1})
	type taken struct {
		snapshot RegistryState
		want     RegistryState
	}
	var all []taken
	forgotten := 0
	for i, event := range randomLogins(1, 20_000) {
		before := len(other.addresses)
		other.Apply(event)
		plain.Apply(event)
		forgotten += max(0, before-len(other.addresses))
		if i%1777 == 0 {
			all = append(all, taken{other.Snapshot(), sorted(plain.Snapshot())})
		}
	}
	for i, one := range all {
		if !reflect.DeepEqual(sorted(one.snapshot), one.want) {
			t.Errorf("snapshot %d is not what the registry was", i)
		}
	}
	if !reflect.DeepEqual(sorted(other.Snapshot()), sorted(plain.Snapshot())) {
		t.Error("cuts have changed the registry")
	}
	if forgotten == 0 {
		t.Error("no address was forgotten")
	}
}
