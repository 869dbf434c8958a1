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
	perDay   map[string]int // wrong codes that were let through, by address and day
	lately   []time.Duration
	guesses  int
	guessed  int
	worst    int // of an address and day
	worstAll int // of any hour
}

// from is a client in a /64 of its own.
func (a *attacker) from() netip.Addr {
	a.opened++
	var sixteen [16]byte
	binary.BigEndian.PutUint64(sixteen[:8], 0x2001_0db8<<32|uint64(a.opened/50))
	return netip.AddrFrom16(sixteen)
}

func (a *attacker) guess(account int) {
	a.guesses++
	email := fmt.Sprintf("%d@b.do", account)
	event, _ := a.registry.TryCode(idOf(email), fmt.Sprintf("%08d", a.random.IntN(100_000_000)), Digest{byte(a.guesses)}, a.from(), a.now)
	switch event.(type) {
	case nil:
		return
	case *SessionOpened:
		a.guessed++
	case *CodeFailed:
		key := email + DateOf(a.now.Wall).String()
		a.perDay[key]++
		a.worst = max(a.worst, a.perDay[key])
		for len(a.lately) > 0 && a.now.Steady-a.lately[0] >= time.Hour {
			a.lately = a.lately[1:]
		}
		a.lately = append(a.lately, a.now.Steady)
		a.worstAll = max(a.worstAll, len(a.lately))
	}
	a.flight = append(a.flight, event)
}

func (a *attacker) land() {
	for _, event := range a.flight {
		a.registry.Apply(event)
	}
	a.flight = a.flight[:0]
}

// Thirty days against ten thousand accounts: at most 25 wrong codes for an address and day, at most 1,000 in any hour.
func TestS1_GuessBound(t *testing.T) {
	const accounts = 10_000
	days := 30
	if raceDetector || testing.Short() {
		days = 3
	}
	a := &attacker{desk: newDesk(t), perDay: map[string]int{}}
	for i := range accounts {
		a.registry.Apply(&SessionOpened{Account: uint64(i + 1), New: true, Email: idOf(fmt.Sprintf("%d@b.do", i)), Token: digestOf(fmt.Sprint(i))})
	}
	restarts := 0
	for minute := range days * 24 * 60 {
		target := a.random.IntN(accounts)
		switch {
		case minute/1440%3 == 0: // all on one address, with codes on their way
			target = minute / 1440
			_, _ = a.request(fmt.Sprintf("%d@b.do", target))
			for range 40 {
				a.guess(target)
			}
		case minute/1440%3 == 1: // spread over all
			for i := range 40 {
				a.guess((target + i) % accounts)
			}
		case minute%60 < 2: // a burst side by side
			for i := range 1200 {
				a.guess((target + i%60) % accounts)
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
