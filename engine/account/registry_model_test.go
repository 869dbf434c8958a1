package account

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// loginModel is a registry, and on a node alone the accounts behind it, with true time, clocks that differ, one log in which an event that
// was decided without the one before it has no place and is decided again, and chance. What stands in the log, and what callers are told, is
// held against the rules by themselves: the model knows each code, session and key as it was handed out.
type loginModel struct {
	pick   func(n int) int
	bug    loginBug
	alone  bool
	random seededReader
	start  time.Time
	real   time.Duration
	log    []loginRecord
	nodes  []*loginNode
	runs   int
	drawn  int
	fault  string

	texts    map[string]string // code sent last to an address
	codes    map[string]*sentCode
	wrong    map[string]*wrongTries
	accounts map[string]uint64 // by address
	sessions map[Digest]*openedSession
	keys     map[string]*keyTruth // by text
	stepped  bool                 // the wall clock of a node alone
	opened   int
	created  int
	void     int
	failed   int
}

// loginBug is planted; nil functions plant nothing.
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
	older bool   // tried while another code was on its way from the same node
	then  func() // when its process hears of it
}

// sentCode is a code as the log tells it.
type sentCode struct {
	loginRecord
	tries int
}

// wrongTries are those of an address on the latest day that it has seen.
type wrongTries struct {
	day   engine.Date
	count int
	last  time.Duration
}

type openedSession struct {
	account uint64
	email   string
	real    time.Duration
	closed  bool
}

type keyTruth struct {
	account uint64
	id      string
	revoked bool
}

// loginDecision is on its way into the log. again decides it anew; false when it is refused.
type loginDecision struct {
	record loginRecord
	again  func() (loginRecord, bool)
}

type loginNode struct {
	loginState
	model  *loginModel
	run    int
	wall   time.Duration
	began  time.Duration
	origin time.Duration
	heard  int // events of the log
	cut    bool
	dying  bool // it hears, and tells no caller
	flight []loginDecision
	knew   int // events that the flight was decided with
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
		if s.accounts[e.AccountID()] == nil {
			s.accounts[e.AccountID()] = New(e.AccountID())
		}
		s.accounts[e.AccountID()].Apply(e)
	}
}

func (s *loginState) snapshot() (RegistryState, map[uint64]State) {
	accounts := map[uint64]State{}
	for id, account := range s.accounts {
		accounts[id] = account.State()
	}
	return s.registry.Snapshot().State(), accounts
}

// restored is another process with what a snapshot keeps.
func (s *loginState) restored(key [32]byte, changed func(*RegistryState)) loginState {
	registry, accounts := s.snapshot()
	if changed != nil {
		changed(&registry)
	}
	again := loginState{RestoreRegistry(registry, key), map[uint64]*Account{}}
	for id, state := range accounts {
		again.accounts[id] = Restore(state)
	}
	return again
}

// newLoginModel is a node alone, or a cluster of three.
func newLoginModel(pick func(int) int, alone bool, bug loginBug) *loginModel {
	m := &loginModel{
		pick: pick, bug: bug, alone: alone, random: newSeededReader(6), start: at("2026-06-18T03:30:00Z"), texts: map[string]string{},
		codes: map[string]*sentCode{}, wrong: map[string]*wrongTries{}, accounts: map[string]uint64{}, sessions: map[Digest]*openedSession{},
		keys: map[string]*keyTruth{},
	}
	count := 3
	if alone {
		count = 1
	}
	for i := range count {
		n := &loginNode{model: m}
		if m.nodes = append(m.nodes, n); !alone {
			n.wall = time.Duration(i-1) * time.Second
		}
		n.begin(nil, 0, time.Duration(pick(4)*i)*17*time.Minute)
	}
	return m
}

func (m *loginModel) fail(format string, args ...any) {
	if m.fault == "" && strings.Contains(format, m.bug.only) {
		m.fault = fmt.Sprintf("at %s: ", m.real) + fmt.Sprintf(format, args...)
	}
}

// key seals codes: one for all processes of a cluster, else one for each.
func (m *loginModel) key() [32]byte {
	if m.alone {
		return [32]byte{1, byte(m.runs)}
	}
	return [32]byte{1}
}

// begin is a new process: from what another one keeps after so many events, and the events behind them.
func (n *loginNode) begin(kept *loginState, from int, origin time.Duration) {
	m := n.model
	m.runs++
	n.run, n.began, n.flight, n.dying, n.heard = m.runs, m.real, nil, false, max(n.heard, from)
	n.loginState = loginState{NewRegistry(m.key()), map[uint64]*Account{}}
	if kept != nil {
		n.loginState = kept.restored(m.key(), m.bug.joined)
	}
	if !m.alone && !m.bug.keyless {
		n.registry.ShareCodes()
	}
	for i := range m.log[from:n.heard] {
		n.apply(m.log[from+i].event)
	}
	if n.origin = max(origin, n.registry.newest); !m.alone {
		n.registry.Resume(n.now())
	}
	for _, account := range n.accounts {
		account.Resume(n.now())
	}
}

func (n *loginNode) now() ClockReading {
	m := n.model
	return ClockReading{Wall: m.start.Add(m.real + n.wall), Steady: n.origin + m.real - n.began}
}

// modelText is the address of an id: the first character tells those of the model apart.
func modelText(id EmailID) string { return id.String()[:1] + "@b.do" }

func (m *loginModel) next() int {
	m.drawn++
	return m.drawn
}

// loginClient is an address that was not used before.
func (m *loginModel) client() netip.Addr { return clientAddress(m.next()) }

func clientAddress(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

// record is an event decided now.
func (n *loginNode) record(event any, text string) loginRecord {
	return loginRecord{event: event, run: n.run, real: n.model.real, at: n.now(), text: text}
}

// offer decides, and sends what was decided on its way.
func (n *loginNode) offer(decide func(again bool) (loginRecord, bool)) {
	record, decided := decide(false)
	if !decided {
		return
	}
	if len(n.flight) == 0 {
		n.knew = n.heard
	}
	n.flight = append(n.flight, loginDecision{record, func() (loginRecord, bool) { return decide(true) }})
}

// propose sends an event of a node alone on its way; then is what its durability means.
func (n *loginNode) propose(event any, then func()) {
	n.offer(func(bool) (loginRecord, bool) {
		record := n.record(event, "")
		record.then = then
		return record, true
	})
}

func (n *loginNode) requestCode(email string) {
	m := n.model
	secret, _ := NewCode(m.random)
	from := m.client()
	n.offer(func(again bool) (loginRecord, bool) {
		ask := func() (*CodeIssued, error) { return n.registry.RequestCode(idOf(email), from, n.now()) }
		if again {
			ask = func() (*CodeIssued, error) { return n.registry.RetryRequestCode(idOf(email), n.now()) }
		}
		event, err := ask()
		if err != nil {
			return loginRecord{}, false
		}
		n.registry.Seal(event, secret)
		if strings.Contains(fmt.Sprint(event), secret.Reveal()) {
			m.fail("the log shows the code")
		}
		return n.record(event, secret.Reveal()), true
	})
}

// tryCode tries the code that was sent last, or a wrong one.
func (n *loginNode) tryCode(email string) {
	m := n.model
	text := m.texts[email]
	if text == "" {
		text = "00000000"
	}
	text = []string{text, text, text, not(text), "00000000"}[m.pick(5)]
	token, from := digestOf(fmt.Sprint("token", m.next())), m.client()
	n.offer(func(again bool) (loginRecord, bool) {
		try := func() (RegistryEvent, error) { return n.registry.TryCode(idOf(email), text, token, from, n.now()) }
		if again {
			try = func() (RegistryEvent, error) { return n.registry.RetryTryCode(idOf(email), text, token, n.now()) }
		}
		event, err := try()
		e, isOpened := event.(*SessionOpened)
		if isOpened != (err == nil) || err != nil && codeOf(err) != engine.CodeInvalidCode {
			m.fail("%+v with the error %v", event, err)
		}
		if !isOpened {
			m.judgeRefusal(n, email, text, event)
		}
		record := n.record(event, text)
		record.older = n.inFlight(email, "sent") > 0
		if m.alone && isOpened {
			n.tellSession(e, &record)
		}
		return record, event != nil
	})
}

// tellSession notes a session when its caller is told, and begins its account.
func (n *loginNode) tellSession(e *SessionOpened, record *loginRecord) {
	real := n.model.real
	record.then = func() {
		n.model.sessions[e.Token] = &openedSession{e.Account, modelText(e.Email), real, false}
		if e.New {
			n.propose(&Created{e.Account, e.Email, e.At}, nil)
		}
	}
}

// kindOf says what an event means for an address: a code is sent, a try failed, a session opened.
func kindOf(event any) (kind string, of EmailID) {
	switch e := event.(type) {
	case *CodeIssued:
		if e.Mailed {
			return "sent", e.Email
		}
	case *CodeFailed:
		return "failed", e.Email
	case *SessionOpened:
		return "opened", e.Email
	}
	return "", EmailID{}
}

// inFlight counts the events of a kind for an address that are on their way from this node.
func (n *loginNode) inFlight(email, kind string) int {
	count := 0
	for _, d := range n.flight {
		if is, of := kindOf(d.record.event); is == kind && of == idOf(email) {
			count++
		}
	}
	return count
}

// judgeRefusal: a node that has heard everything knows the code that was sent last, wherever it was asked for, and refuses without an event
// only after the wrong tries of a day.
func (m *loginModel) judgeRefusal(n *loginNode, email, text string, event RegistryEvent) {
	if n.heard < len(m.log) {
		return
	}
	code, tries := m.codes[email], n.inFlight(email, "failed")
	if event == nil {
		if wrong := m.wrong[email]; wrong != nil {
			tries += wrong.count
		}
		if tries < wrongTriesDayMax {
			m.fail("refused without an event after %d wrong tries", tries)
		}
		return
	}
	if code == nil || code.text != text || code.tries+tries >= CodeTriesMax || !m.alive(code, n) ||
		n.inFlight(email, "sent")+n.inFlight(email, "opened") > 0 {
		return
	}
	m.fail("a code of %s is refused", m.real-code.real)
}

// alive reports that a code must work on a node: alone to the nanosecond, on both clocks of its process.
func (m *loginModel) alive(code *sentCode, n *loginNode) bool {
	if !m.alone {
		return m.real-code.real <= CodeLifetime-5*time.Second
	}
	now := n.now()
	return code.run == n.run && now.Steady-code.at.Steady < CodeLifetime && now.Wall.Before(code.at.Wall.Add(CodeLifetime))
}

// commit gives what a node has decided its place, unless another event has it; a node alone so many of them.
func (n *loginNode) commit(count int) bool {
	m := n.model
	if len(n.flight) == 0 || n.cut || n.knew != len(m.log) && !m.alone && !m.bug.stale {
		return false
	}
	if !m.alone {
		count = len(n.flight)
	}
	count = min(count, len(n.flight))
	for _, d := range n.flight[:count] {
		m.log = append(m.log, d.record)
		m.judge(&d.record)
	}
	n.flight, n.knew = n.flight[count:], len(m.log)
	return true
}

// drain lets a node hear what it gave a place, one event after the other when it is alone.
func (n *loginNode) drain(count int) {
	for ; count > 0 && n.commit(1); count-- {
		n.deliver(len(n.model.log))
	}
}

// judge holds an event against the rules.
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
	m.failed++
	if code := m.codes[email]; code != nil && !(m.alone && record.older) {
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
	m.opened++
	slack := 5 * time.Second
	if m.alone {
		slack = -1
	}
	switch code := m.codes[email]; {
	case code == nil:
		m.fail("a session without a code")
	case code.text != record.text && !record.older:
		m.fail("a session by an older code")
	case m.alone && code.run != record.run:
		m.fail("a session by a code of another process")
	case code.tries >= CodeTriesMax && !(m.alone && record.older):
		m.fail("a session after %d tries", code.tries)
	case record.real-code.real > CodeLifetime+slack:
		m.fail("a session after %s", record.real-code.real)
	}
	if code := m.codes[email]; code != nil && (!m.alone || code.text == record.text) {
		delete(m.codes, email)
	}
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

// deliver brings a node so many events. What it has on its way was decided without those of others: it is decided again.
func (n *loginNode) deliver(count int) {
	m := n.model
	for ; count > 0 && n.heard < len(m.log) && !n.cut; count-- {
		record := m.log[n.heard]
		n.heard++
		if record.run == n.run {
			n.receive(&record)
			continue
		}
		void := n.flight
		n.flight = nil
		for _, d := range slices.Backward(void) {
			m.void++
			n.registry.Rollback(d.record.event.(RegistryEvent))
		}
		event := record.event.(RegistryEvent)
		n.registry.ApplyRemote(event, n.now())
		if m.bug.learnt != nil {
			m.bug.learnt(n.registry, event)
		}
		n.knew = n.heard
		for _, d := range void {
			if again, decided := d.again(); decided {
				n.flight = append(n.flight, loginDecision{again, d.again})
			}
		}
	}
}

// receive applies an event that this process decided.
func (n *loginNode) receive(record *loginRecord) {
	n.apply(record.event)
	if e, issued := record.event.(*CodeIssued); issued && !n.dying {
		n.registry.ActivateCode(e, SecretOf(record.text))
	}
	if record.then != nil && !n.dying {
		record.then()
	}
	if n.model.alone && n.heard == len(n.model.log) {
		n.model.forget(n.registry)
	}
}

// remove follows a registry that forgets an address, which it may do after two days.
func (m *loginModel) forget(r *Registry) {
	for email, wrong := range m.wrong {
		if r.addresses.row(idOf(email)).WrongTries.Count > 0 {
			continue
		}
		if m.real-wrong.last < forgetAfter {
			m.fail("a wrong try for %s is forgotten after %s", email, m.real-wrong.last)
		}
		delete(m.wrong, email)
	}
}
