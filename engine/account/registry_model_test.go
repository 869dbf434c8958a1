package account

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// loginModel is a registry, and on a single node the accounts behind it, with true time, clocks that differ, and a log
// that refuses an event decided without the one before it. It knows every code, session and key that was issued, and
// checks the log and the answers against the rules.
type loginModel struct {
	model
	bug    loginBug
	random seededReader
	log    []loginRecord
	nodes  []*loginNode
	drawn  int

	texts    map[string]string // code sent last to an address
	codes    map[string]*sentCode
	wrong    map[string]*wrongTries
	accounts map[string]uint64 // by address
	sessions map[Digest]*openedSession
	keys     map[string]*keyTruth // by text
}

// loginBug is a planted bug; nil functions do nothing.
type loginBug struct {
	only     string // the faults that a control looks for; "" = all
	sabotage func(*loginModel)
	learnt   func(*Registry, RegistryEvent)
	joined   func(*RegistryState)
	stale    bool
	keyless  bool
}

// loginRecord is an event, of the registry or an account, with what the model knows of it.
type loginRecord struct {
	event any
	run   int
	real  time.Duration // when it was decided
	at    ClockReading
	text  string // of the code that was sent, or tried
	then  func() // when its process hears of it
}

// sentCode is a code in the log.
type sentCode struct {
	loginRecord
	tries int
}

// wrongTries counts those of an address on the latest day.
type wrongTries struct {
	day   engine.Date
	count int
	last  time.Duration
}

type openedSession struct {
	account uint64
	email   string
	at      ClockReading
	closed  bool
}

type keyTruth struct {
	account uint64
	id      string
	revoked bool
}

type loginNode struct {
	loginState
	process
	model       *loginModel
	applied     int // events of the log
	partitioned bool
	dying       bool          // it hears, and tells no caller
	flight      []loginRecord // pending decisions, at most one of them about the registry
	knew        int           // events that the flight was decided with
}

// loginState is a registry with its accounts.
type loginState struct {
	registry *Registry
	accounts map[uint64]*Account
}

func (s *loginState) apply(event any) {
	switch e := event.(type) {
	case RegistryEvent:
		s.registry.Apply(e)
	case Event:
		if s.accounts[e.accountID()] == nil {
			s.accounts[e.accountID()] = New(e.accountID())
		}
		s.accounts[e.accountID()].Apply(e, ClockReading{})
	}
}

func (s *loginState) snapshot() (RegistryState, map[uint64]State) {
	accounts := map[uint64]State{}
	for id, account := range s.accounts {
		accounts[id] = account.State()
	}
	return sorted(s.registry.Snapshot()), accounts
}

// restored is the state that another process restores from a snapshot.
func (s *loginState) restored(key [32]byte, changed func(*RegistryState)) loginState {
	registry, accounts := s.snapshot()
	if changed != nil {
		changed(&registry)
	}
	again := loginState{RestoreRegistry(registry, key), map[uint64]*Account{}}
	again.registry.shared = s.registry.shared
	for id, state := range accounts {
		again.accounts[id] = Restore(state)
	}
	return again
}

// newLoginModel is one node, or a cluster of three.
func newLoginModel(pick func(int) int, single bool, bug loginBug) *loginModel {
	m := &loginModel{
		model: model{pick: pick, only: bug.only, single: single, start: at("2026-06-18T03:30:00Z"), counts: map[string]int{}}, bug: bug,
		random: newSeededReader(6), texts: map[string]string{}, codes: map[string]*sentCode{}, wrong: map[string]*wrongTries{},
		accounts: map[string]uint64{}, sessions: map[Digest]*openedSession{}, keys: map[string]*keyTruth{},
	}
	count := 3
	if single {
		count = 1
	}
	for i := range count {
		n := &loginNode{process: process{world: &m.model}, model: m}
		if m.nodes = append(m.nodes, n); !single {
			n.wall = time.Duration(i-1) * time.Second
		}
		n.begin(nil, 0, time.Duration(pick(4)*i)*17*time.Minute)
	}
	return m
}

// key is the key of code hashes: one for all processes of a cluster, else one for each.
func (m *loginModel) key() [32]byte {
	if m.single {
		return [32]byte{1, byte(m.runs)}
	}
	return [32]byte{1}
}

// begin starts a process from a state after so many events.
func (n *loginNode) begin(kept *loginState, from int, origin time.Duration) {
	m := n.model
	n.start(0)
	n.flight, n.dying, n.applied = nil, false, max(n.applied, from)
	n.loginState = loginState{NewRegistry(m.key()), map[uint64]*Account{}}
	if kept != nil {
		n.loginState = kept.restored(m.key(), m.bug.joined)
	}
	if !m.single && !m.bug.keyless {
		n.registry.ShareCodes()
	}
	for i := range m.log[from:n.applied] {
		n.apply(m.log[from+i].event)
	}
	if n.origin = max(origin, n.registry.newest); !m.single {
		n.registry.Resume(n.now())
	}
	for _, account := range n.accounts {
		account.Resume(n.now())
	}
}

// modelText is the address of an id; the first character identifies it.
func modelText(id EmailID) string { return id.String()[:1] + "@b.do" }

func (m *loginModel) next() int {
	m.drawn++
	return m.drawn
}

// client is an address that was not used before.
func (m *loginModel) client() Requester { return clientAddress(m.next()) }

// clientAddress is an address in a network of its own.
func clientAddress(i int) Requester {
	return Requester{Address: netip.AddrFrom4([4]byte{byte(i >> 16), byte(i >> 8), byte(i), 1})}
}

func requester(address string) Requester { return Requester{Address: netip.MustParseAddr(address)} }

// deciding reports whether a decision about the registry is pending.
func (n *loginNode) deciding() bool {
	return slices.ContainsFunc(n.flight, func(r loginRecord) bool { _, is := r.event.(RegistryEvent); return is })
}

// propose proposes an event that is decided now; then runs when it is durable.
func (n *loginNode) propose(event any, text string, then func()) {
	if len(n.flight) == 0 {
		n.knew = n.applied
	}
	n.flight = append(n.flight, loginRecord{event, n.run, n.model.real, n.now(), text, then})
}

func (n *loginNode) requestCode(email string) {
	if n.deciding() {
		return
	}
	m := n.model
	secret, _ := NewCode(m.random)
	event, err := n.registry.RequestCode(idOf(email), m.client(), n.now())
	if err != nil {
		return
	}
	n.registry.Seal(event, secret)
	if strings.Contains(fmt.Sprint(event), secret.Reveal()) {
		m.fail("the log shows the code")
	}
	n.propose(event, secret.Reveal(), nil)
}

// tryCode tries the code that was sent last, or a wrong one.
func (n *loginNode) tryCode(email string) {
	if n.deciding() {
		return
	}
	m := n.model
	text := m.texts[email]
	if text == "" {
		text = "00000000"
	}
	text = []string{text, text, not(text), not(text), "00000000"}[m.pick(5)]
	event, err := n.registry.TryCode(idOf(email), text, digestOf(fmt.Sprint("token", m.next())), m.client(), n.now())
	e, isOpened := event.(*SessionOpened)
	if isOpened != (err == nil) || err != nil && codeOf(err) != engine.CodeInvalidCode {
		m.fail("%+v with the error %v", event, err)
	}
	if !isOpened {
		m.judgeRefusal(n, email, text, event)
	}
	if event == nil {
		return
	}
	var then func()
	if m.single && isOpened {
		then = n.tellSession(e, n.now())
	}
	n.propose(event, text, then)
}

// tellSession notes a session when its caller has the answer, and makes its account.
func (n *loginNode) tellSession(e *SessionOpened, at ClockReading) func() {
	return func() {
		n.model.sessions[e.Token] = &openedSession{e.Account, modelText(e.Email), at, false}
		if e.New {
			n.propose(&Created{e.Account, e.Email, e.At}, "", nil)
		}
	}
}

// judgeRefusal: a node that has applied all events knows the last code of every node, and refuses without an event only
// after the wrong tries of a day, or if no code is pending.
func (m *loginModel) judgeRefusal(n *loginNode, email, text string, event RegistryEvent) {
	if n.applied < len(m.log) {
		return
	}
	code := m.codes[email]
	if wrong := m.wrong[email]; event == nil && wrong != nil && wrong.count >= wrongTriesDayMax {
		return
	}
	if code == nil || event != nil && code.text != text || code.tries >= CodeTriesMax || !m.alive(code, n) {
		return
	}
	m.fail("a code of %s is refused", m.real-code.real)
}

// alive reports that a code must be valid on a node.
func (m *loginModel) alive(code *sentCode, n *loginNode) bool {
	if !m.single {
		return m.real-code.real <= CodeLifetime-5*time.Second
	}
	return code.run == n.run && alive(code, n.now())
}

// alive reports that a code of a single node is valid, exactly and on both clocks.
func alive(code *sentCode, now ClockReading) bool {
	return now.Monotonic-code.at.Monotonic < CodeLifetime && now.Wall.Before(code.at.Wall.Add(CodeLifetime))
}

// commit appends a pending event to the log, unless another event came first; on a single node so many of them.
func (n *loginNode) commit(count int) bool {
	m := n.model
	if len(n.flight) == 0 || n.partitioned || n.knew != len(m.log) && !m.single && !m.bug.stale {
		return false
	}
	if !m.single {
		count = len(n.flight)
	}
	count = min(count, len(n.flight))
	for i := range n.flight[:count] {
		m.log = append(m.log, n.flight[i])
		m.judge(&n.flight[i])
	}
	n.flight, n.knew = n.flight[count:], len(m.log)
	return true
}

// drain applies the node's own events.
func (n *loginNode) drain(count int) {
	for ; count > 0 && n.commit(1); count-- {
		n.deliver(len(n.model.log))
	}
}

// judge checks an event against the rules.
func (m *loginModel) judge(record *loginRecord) {
	switch e := record.event.(type) {
	case *CodeIssued:
		if email := modelText(e.Email); e.Mailed {
			m.texts[email], m.codes[email] = record.text, &sentCode{loginRecord: *record}
		}
	case *CodeFailed:
		m.judgeFailure(modelText(e.Email), e, record)
	case *SessionOpened:
		m.judgeSession(modelText(e.Email), e, record)
	}
}

func (m *loginModel) judgeFailure(email string, e *CodeFailed, record *loginRecord) {
	m.counts["failed"]++
	if code := m.codes[email]; code != nil {
		code.tries++
	}
	wrong := m.wrong[email]
	if wrong == nil {
		wrong = &wrongTries{}
		m.wrong[email] = wrong
	}
	if day := engine.DateOf(e.At); day > wrong.day {
		wrong.day, wrong.count = day, 0
	}
	wrong.last = record.real
	if wrong.count++; wrong.count > wrongTriesDayMax {
		m.fail("%d wrong tries for %s", wrong.count, email)
	}
}

func (m *loginModel) judgeSession(email string, e *SessionOpened, record *loginRecord) {
	m.counts["opened"]++
	switch code := m.codes[email]; {
	case code == nil:
		m.fail("a session without a code")
	case code.text != record.text:
		m.fail("a session by an older code")
	case m.single && code.run != record.run:
		m.fail("a session by a code of another process")
	case code.tries >= CodeTriesMax:
		m.fail("a session after %d tries", code.tries)
	case m.single && !alive(code, record.at), !m.single && record.real-code.real > CodeLifetime+5*time.Second:
		m.fail("a session after %s", record.real-code.real)
	}
	delete(m.codes, email)
	if known := m.accounts[email]; known != 0 && known != e.Account {
		m.fail("account of %s: %d, before %d", email, e.Account, known)
	}
	for other, account := range m.accounts {
		if account == e.Account && other != email {
			m.fail("account of %s is %d, which is that of %s", email, e.Account, other)
		}
	}
	m.accounts[email] = e.Account
}

// deliver applies so many events. Pending decisions were made without those of other nodes and are void.
func (n *loginNode) deliver(count int) {
	m := n.model
	for ; count > 0 && n.applied < len(m.log) && !n.partitioned; count-- {
		record := m.log[n.applied]
		n.applied++
		if record.run == n.run {
			n.receive(&record)
			continue
		}
		m.counts["void"] += len(n.flight)
		n.flight = nil
		event := record.event.(RegistryEvent)
		n.registry.ApplyAt(event, n.now().Monotonic)
		if m.bug.learnt != nil {
			m.bug.learnt(n.registry, event)
		}
	}
}

// receive applies an event that this process decided.
func (n *loginNode) receive(record *loginRecord) {
	n.apply(record.event)
	if e, issued := record.event.(*CodeIssued); issued && !n.dying {
		n.registry.ActivateCode(e, SecretOf(record.text), n.model.client())
	}
	if record.then != nil && !n.dying {
		record.then()
	}
	if n.model.single && n.applied == len(n.model.log) {
		n.model.forget(n.registry)
	}
}

// forget follows a registry that removes an address, as it may after two days.
func (m *loginModel) forget(r *Registry) {
	for email, wrong := range m.wrong {
		if r.addressRow(idOf(email)).WrongTries.Count > 0 {
			continue
		}
		if m.real-wrong.last < forgetAfter {
			m.fail("a wrong try for %s is forgotten after %s", email, m.real-wrong.last)
		}
		delete(m.wrong, email)
	}
}
