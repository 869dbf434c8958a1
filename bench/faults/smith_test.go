//go:build faults

package faults

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// realRounds is how often a smith makes a key and revokes it.
	realRounds = 10
	// endless is more rounds than a node on a full disk lives.
	endless = 100_000
	// exitFailStop is the program's exit code after a failed write.
	exitFailStop = 70
	// failStopMax is how long the program may be there after its first failed write.
	failStopMax = time.Second
)

// smith is a caller that makes and revokes keys of one account, one after the other, with a ledger of its own.
type smith struct {
	l  *ledger
	at *member
	a  *account
	c  *caller

	failed time.Time // when a change was first not carried out, or its answer did not come
	later  int       // good answers after that
}

// newSmith is signed in with a session, or has none yet.
func newSmith(t *testing.T, session string) *smith {
	t.Helper()
	s := &smith{l: newLedger(terms{day: 1000, minute: 60, lease: 16}), at: &member{number: 1}, c: newCaller("")}
	s.a = s.l.newAccount("ana@example.com", 1000, 60)
	s.a.session = session
	t.Cleanup(s.c.close)
	return s
}

// signIn gives it a session at a node.
func (s *smith) signIn(t *testing.T, office *postOffice, n *node) {
	t.Helper()
	s.at.url = n.url
	if err := s.l.signIn(office, s.c, s.at, s.a); err != nil {
		t.Fatal(err)
	}
}

// turn makes a key and revokes it; it returns the first answer that is not good.
func (s *smith) turn() answer {
	k, got := s.l.newKey(s.c, s.at, s.a)
	if got.good() {
		got = s.l.endKey(s.c, s.at, s.a, k)
	}
	return got
}

// work takes turns until one fails, and then tries again until the process is gone or the rounds are over.
func (s *smith) work(n *node, rounds int) {
	s.at.url = n.url
	s.l.end()
	for round := 0; round < rounds && !n.over(); round++ {
		if !s.failed.IsZero() {
			if _, got := s.l.newKey(s.c, s.at, s.a); got.good() {
				s.later++
			}
		} else if got := s.turn(); !got.good() {
			s.failed = time.Now()
		}
	}
	if s.failed.IsZero() {
		n.send(syscall.SIGTERM)
	}
}

// made is how many keys were acknowledged.
func (s *smith) made() int { return s.l.count("keys", acknowledged) }

// check holds what a node lists against what was acknowledged.
func (s *smith) check(n *node) error {
	s.at.url = n.url
	s.l.checkKeys(s.c, s.at, s.a)
	if s.l.broken() > 0 {
		return errors.New(strings.Join(s.l.words, "; "))
	}
	return nil
}

// lasted is how long the process was there after the first failure.
func (s *smith) lasted(n *node) time.Duration {
	if s.failed.IsZero() {
		return 0
	}
	return n.ended.Sub(s.failed) // the caller may have waited longer than the process for a connection
}
