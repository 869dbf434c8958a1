package engine

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"
)

// issuedCode is a code as its owner got it.
type issuedCode struct {
	text string
	at   Moment
	real time.Duration
	run  int
	void bool // used, tried out or replaced
	bad  int  // wrong tries
}

// loginWorld is a registry and the accounts behind it over many processes, with true time, a wrong wall clock, a log whose newest facts
// are on their way, and chance. It knows every code and key, and holds what callers are told against that.
type loginWorld struct {
	pick     func(n int) int
	random   dice
	start    time.Time
	real     time.Duration
	offset   time.Duration
	began    time.Duration
	origin   time.Duration
	newest   time.Duration
	run      int
	stepped  time.Duration // when the wall clock was last wrong by more, in true time
	log      []any         // RegistryEvent, AccountEvent
	flight   []any
	told     []func() // what is acknowledged when the flight has landed
	registry *Registry
	accounts map[uint64]*Account
	codes    map[string]*issuedCode
	wrong    map[string][]wrongTry // answered or to be answered
	sessions map[Digest]openedSession
	keys     map[string]keyTruth // by text
	drawn    int
	logins   int
	created  int
	sabotage func() // planted: runs before each step
	only     string // faults of a control
	fault    string
}

type openedSession struct {
	account uint64
	email   string
	real    time.Duration
	closed  bool
}

type wrongTry struct {
	day  Date
	real time.Duration
}

type keyTruth struct {
	account uint64
	id      string
	revoked bool
}

func newLoginWorld(pick func(int) int) *loginWorld {
	w := &loginWorld{
		pick: pick, random: newDice(5), start: at("2026-06-18T03:30:00Z"), stepped: -time.Hour, codes: map[string]*issuedCode{},
		wrong: map[string][]wrongTry{}, sessions: map[Digest]openedSession{}, keys: map[string]keyTruth{},
	}
	w.restart()
	return w
}

func (w *loginWorld) now() Moment {
	return Moment{Wall: w.start.Add(w.real + w.offset), Steady: w.origin + w.real - w.began}
}

func (w *loginWorld) fail(format string, args ...any) {
	if w.fault == "" && strings.Contains(format, w.only) {
		w.fault = fmt.Sprintf("at %s: ", w.real) + fmt.Sprintf(format, args...)
	}
}

// worldText is the address of an id: the first character tells those of the world apart.
func worldText(id EmailID) string { return id.String()[:1] + "@b.do" }

func (w *loginWorld) email() string { return fmt.Sprintf("%d@b.do", w.pick(3)) }

func (w *loginWorld) client() netip.Addr {
	w.drawn++
	return netip.AddrFrom4([4]byte{10, byte(w.drawn >> 16), byte(w.drawn >> 8), byte(w.drawn)})
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
	case AccountEvent:
		if s.accounts[e.AccountID()] == nil {
			s.accounts[e.AccountID()] = NewAccount(e.AccountID())
		}
		s.accounts[e.AccountID()].Apply(e)
	}
}

func (s *loginState) snapshot() (RegistryState, map[uint64]AccountState) {
	accounts := map[uint64]AccountState{}
	for id, account := range s.accounts {
		accounts[id] = account.State()
	}
	return s.registry.State(), accounts
}

// replay is what the log tells, by way of a snapshot after so many events.
func (w *loginWorld) replay(cut int) *loginState {
	s := &loginState{NewRegistry([32]byte{byte(w.run)}), map[uint64]*Account{}}
	for i, event := range w.log {
		if i == cut {
			registry, accounts := s.snapshot()
			s.registry = RestoreRegistry(registry, [32]byte{byte(w.run)})
			for id, state := range accounts {
				s.accounts[id] = RestoreAccount(state)
			}
		}
		s.apply(event)
	}
	return s
}

func (w *loginWorld) sameState(what string, a, b *loginState) {
	registryA, accountsA := a.snapshot()
	registryB, accountsB := b.snapshot()
	if !reflect.DeepEqual(registryA, registryB) || !reflect.DeepEqual(accountsA, accountsB) {
		w.fail("%s:\n%+v\n%+v\n%+v\n%+v", what, registryA, registryB, accountsA, accountsB)
	}
}

func (w *loginWorld) restart() {
	w.run++
	state := w.replay(w.pick(len(w.log) + 1))
	w.sameState("a snapshot and the events behind it are not all events", state, w.replay(-1))
	w.registry, w.accounts = state.registry, state.accounts
	w.began, w.origin, w.flight, w.told = w.real, w.newest, nil, nil
	for _, account := range w.accounts {
		account.Resume(w.now())
	}
}

// propose sends an event on its way; then is what its durability means.
func (w *loginWorld) propose(event any, then func()) {
	w.flight, w.told = append(w.flight, event), append(w.told, then)
}

// settle makes the oldest events on their way durable.
func (w *loginWorld) settle(count int) {
	for range min(count, len(w.flight)) {
		event, then := w.flight[0], w.told[0]
		w.flight, w.told = w.flight[1:], w.told[1:]
		w.keep(event)
		then()
	}
}

func (w *loginWorld) keep(event any) {
	w.log = append(w.log, event)
	(&loginState{w.registry, w.accounts}).apply(event)
	w.forgetAll()
	switch e := event.(type) {
	case *CodeIssued:
		w.newest = max(w.newest, e.Steady)
	case *CodeFailed:
		w.newest = max(w.newest, e.Steady)
	case *SessionOpened:
		w.newest = max(w.newest, e.Steady)
	}
}

func (w *loginWorld) requestCode() {
	email, now := w.email(), w.now()
	event, err := w.registry.RequestCode(idOf(email), w.client(), now)
	if err != nil {
		return
	}
	w.propose(event, func() {
		secret, _ := NewCode(w.random)
		w.registry.Issue(event, secret)
		if event.Mailed {
			w.codes[email] = &issuedCode{text: secret.Reveal(), at: now, real: w.real, run: w.run}
		}
	})
}

// tryCode tries a right code, a wrong one, another's, or a random one.
func (w *loginWorld) tryCode() {
	email, now := w.email(), w.now()
	truth := w.codes[email]
	text := "00000000"
	if truth != nil {
		text = []string{truth.text, truth.text, truth.text, not(truth.text), "00000000"}[w.pick(5)]
	}
	w.drawn++
	token := digestOf(fmt.Sprint(w.run, w.drawn))
	event, err := w.registry.TryCode(idOf(email), text, token, w.client(), now)
	valid := truth != nil && truth.text == text && !truth.void && truth.run == w.run && now.Steady-truth.at.Steady < CodeLifetime &&
		now.Wall.Before(truth.at.Wall.Add(CodeLifetime))
	switch e := event.(type) {
	case *SessionOpened:
		if err != nil || !valid {
			w.fail("a session for %+v, %v", truth, err)
			return
		}
		truth.void = true
		w.opened(e)
	case *CodeFailed:
		if codeOfError(err) != CodeInvalidCode || valid && !w.replaced(email) {
			w.fail("%+v refused: %v", truth, err)
		}
		w.failed(email, DateOf(now.Wall), truth)
		w.propose(e, func() {})
	default:
		// Tries that are on their way count with those of another day, whichever the clock shows.
		durable := w.registry.addresses.row(idOf(email)).wrong.count
		if count := max(w.wrongOfTheDay(email), durable) + w.onTheirWay(email); codeOfError(err) != CodeInvalidCode || count < wrongTriesDayMax {
			w.fail("refused without an event after %d wrong tries: %v", count, err)
		}
	}
}

// replaced reports that another code for an address is on its way.
func (w *loginWorld) replaced(email string) bool {
	for _, event := range w.flight {
		if e, issued := event.(*CodeIssued); issued && e.Email == idOf(email) {
			return true
		}
	}
	return false
}

// clockWasBack reports that a later day may count still.
func (w *loginWorld) clockWasBack() bool { return w.stepped >= 0 }

func (w *loginWorld) failed(email string, day Date, truth *issuedCode) {
	w.wrong[email] = append(w.wrong[email], wrongTry{day, w.real})
	if n := w.wrongOfTheDay(email); n > wrongTriesDayMax {
		w.fail("%d wrong tries for %s", n, email)
	}
	if truth != nil && truth.run == w.run {
		if truth.bad++; truth.bad >= CodeTriesMax {
			truth.void = true
		}
	}
}

// wrongOfTheDay counts on the latest day that an address has seen: a clock that goes back opens no earlier one.
func (w *loginWorld) wrongOfTheDay(email string) int {
	latest, count := Date(0), 0
	for _, try := range w.wrong[email] {
		if try.day > latest {
			latest, count = try.day, 0
		}
		count++
	}
	return count
}

// forget follows the registry when it forgets an address, which it may do after two days.
func (w *loginWorld) forget(email string) {
	tries := w.wrong[email]
	if w.registry.addresses.row(idOf(email)).wrong.count > 0 {
		return
	}
	gone := len(tries) - w.onTheirWay(email)
	if gone > 0 && w.real-tries[gone-1].real < forgetAfter {
		w.fail("a wrong try for %s is forgotten after %s", email, w.real-tries[gone-1].real)
	}
	w.wrong[email] = tries[gone:]
}

// onTheirWay is how many wrong tries for an address are not durable yet.
func (w *loginWorld) onTheirWay(email string) int {
	count := 0
	for _, event := range w.flight {
		if e, failed := event.(*CodeFailed); failed && e.Email == idOf(email) {
			count++
		}
	}
	return count
}

func (w *loginWorld) forgetAll() {
	for email := range w.wrong {
		w.forget(email)
	}
}

func (w *loginWorld) opened(e *SessionOpened) {
	w.logins++
	real := w.real
	then := func() { w.sessions[e.Token] = openedSession{e.Account, worldText(e.Email), real, false} }
	w.propose(e, func() {})
	if e.New {
		w.propose(&AccountCreated{e.Account, e.Email, e.At}, func() {})
	}
	w.told[len(w.told)-1] = then
	for _, s := range w.sessions {
		if (s.email == worldText(e.Email)) != (s.account == e.Account) {
			w.fail("account %d of %s was that of %s", e.Account, worldText(e.Email), s.email)
		}
	}
}
