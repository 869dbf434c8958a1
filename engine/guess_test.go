package engine

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// attacker guesses codes of many addresses from as many clients as he likes, for days, over restarts of the node, with as many tries side
// by side as he likes.
type attacker struct {
	*desk
	flight   []RegistryEvent
	victims  []int                // whose codes are in flight
	perDay   map[dayOfAccount]int // wrong codes that were let through
	lately   []time.Duration
	guesses  int
	guessed  int
	worst    int // of an address and day
	worstAll int // of any hour
	crashes  int
}

type dayOfAccount struct {
	account int
	day     Date
}

// guessedAccounts is how many accounts there are to be guessed.
const guessedAccounts = 10_000

func newAttacker(t *testing.T) *attacker {
	a := &attacker{desk: newDesk(t), perDay: map[dayOfAccount]int{}}
	for i := range guessedAccounts {
		a.registry.Apply(&SessionOpened{Account: uint64(i + 1), New: true, Email: idOf(guessedAddress(i)), Token: digestOf(fmt.Sprint(i))})
	}
	return a
}

// from is a client in a /64 of its own.
func (a *attacker) from() netip.Addr {
	a.opened++
	var sixteen [16]byte
	binary.BigEndian.PutUint64(sixteen[:8], 0x2001_0db8<<32|uint64(a.opened/50))
	return netip.AddrFrom16(sixteen)
}

func (a *attacker) guess(account int) { a.guessAt(account, idOf(guessedAddress(account))) }

// guessedAddress is the address of an account.
func guessedAddress(account int) string { return fmt.Sprintf("%d.owner@b.do", account) }

// guessAt tries a random code of an account, by whatever the node takes for its address.
func (a *attacker) guessAt(account int, email EmailID) {
	a.guesses++
	event, _ := a.registry.TryCode(email, fmt.Sprintf("%08d", a.random.IntN(100_000_000)), Digest{byte(a.guesses)}, a.from(), a.now)
	if event != nil {
		a.flight, a.victims = append(a.flight, event), append(a.victims, account)
	}
}

// land makes what is on its way durable: the attacker is answered, and has learnt something.
func (a *attacker) land() { a.landSome(len(a.flight)) }

func (a *attacker) landSome(count int) {
	for i, event := range a.flight[:count] {
		a.registry.Apply(event)
		switch e := event.(type) {
		case *SessionOpened:
			a.guessed++
		case *CodeFailed:
			a.learnt(a.victims[i], e)
		}
	}
	a.flight, a.victims = a.flight[count:], a.victims[count:]
}

// learnt counts a wrong code.
func (a *attacker) learnt(account int, e *CodeFailed) {
	key := dayOfAccount{account, DateOf(e.At)}
	a.perDay[key]++
	a.worst = max(a.worst, a.perDay[key])
	for len(a.lately) > 0 && e.Steady-a.lately[0] >= time.Hour {
		a.lately = a.lately[1:]
	}
	a.lately = append(a.lately, e.Steady)
	a.worstAll = max(a.worstAll, len(a.lately))
}

// crash loses the process, and of what is on its way all but the oldest part: nobody is answered.
func (a *attacker) crash() {
	a.landSome(a.random.IntN(len(a.flight) + 1))
	a.flight, a.victims = nil, nil
	a.restart()
	a.crashes++
}

// Thirty days against ten thousand accounts: at most 25 wrong codes for an address and day, at most 1,000 in any hour.
func TestS1_GuessBound(t *testing.T) {
	days := 30
	if raceDetector || testing.Short() {
		days = 3
	}
	a, restarts := newAttacker(t), 0
	for minute := range days * 24 * 60 {
		target := a.random.IntN(guessedAccounts)
		switch {
		case minute/1440%3 == 0: // all on one address, with codes on their way
			target = minute / 1440
			_, _ = a.request(guessedAddress(target))
			for range 40 {
				a.guess(target)
			}
		case minute/1440%3 == 1: // spread over all
			for i := range 40 {
				a.guess((target + i) % guessedAccounts)
			}
		case minute%60 < 2: // a burst side by side
			for i := range 1200 {
				a.guess((target + i%60) % guessedAccounts)
			}
		}
		if minute%2 == 0 {
			a.land()
		}
		if minute%601 == 600 {
			a.land()
			a.restart()
			restarts++
		}
		a.wait(time.Minute)
	}
	t.Logf("%d days, %d restarts, %d guesses: at most %d for an address and day, %d in an hour; %d codes guessed",
		days, restarts, a.guesses, a.worst, a.worstAll, a.guessed)
	if a.worst != wrongTriesDayMax || a.worstAll > wrongTriesHourMax || a.worstAll < wrongTriesHourMax*9/10 || restarts == 0 {
		t.Error("the bound is passed, or was never reached")
	}
}
