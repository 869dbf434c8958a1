package actors

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tasard/tasard/engine/account"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cases returns whole when SWEEP=whole asks for complete sweeps, as make check does, and sample otherwise.
func cases(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

func must(t panicStops, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type fakeMailer struct {
	mu     sync.Mutex
	mails  map[account.Email]account.LoginMail
	sent   int
	refuse error
}

func newFakeMailer() *fakeMailer { return &fakeMailer{mails: map[account.Email]account.LoginMail{}} }

func (l *fakeMailer) Send(email account.LoginMail) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse != nil {
		return l.refuse
	}
	l.mails[email.To] = email
	l.sent++
	return nil
}

func (l *fakeMailer) code(email account.Email) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mails[email].Code.Reveal()
}

func (l *fakeMailer) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// node is a system with a journal that survives crashes, with clocks and a mailer.
type node struct {
	*System
	t         panicStops
	config    Config
	journal   *memoryJournal
	clock     *testClock
	monotonic *testMonotonic
	mail      *fakeMailer

	mu      sync.Mutex
	all     [][]byte // every record, those that were dropped behind a snapshot included
	faults  error    // what the disk answers every append; nil = it is well
	refused bool     // an append has met a fault since the last call of fault
}

// fault has the disk answer every append with err from now on. It returns true if an append has met the fault that was
// there before, also one that no request waits for.
func (n *node) fault(err error) (met bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	met = n.refused
	n.faults, n.refused = err, false
	return met
}

// keep notes records before they are durable, unless the disk is ill.
func (n *node) keep(records [][]byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.faults != nil {
		n.refused = true
		return n.faults
	}
	for _, record := range records {
		n.all = append(n.all, bytes.Clone(record))
	}
	return nil
}

type testMonotonic struct {
	mu  sync.Mutex
	now time.Duration
}

func (s *testMonotonic) read() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// tick reads the clock after a moment: no two asks of a node are made at the same time.
func (s *testMonotonic) tick() time.Duration {
	s.advance(1)
	return s.read()
}

func (s *testMonotonic) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += d
}

// startNode starts a node at noon, with an empty memoryJournal or c.Journal. The test closes it, by its cleanup or
// earlier.
func startNode(t testing.TB, c Config) *node {
	t.Helper()
	n := prepareNode(t, c)
	t.Cleanup(func() { n.stop() })
	return n
}

// prepareNode is startNode for properties, which have no cleanup.
func prepareNode(t panicStops, c Config) *node {
	t.Helper()
	n := &node{t: t, clock: &testClock{Now: noon}, monotonic: &testMonotonic{}, mail: newFakeMailer(), journal: &memoryJournal{}}
	n.config = c
	if n.config.Clock == nil {
		n.config.Clock, n.config.Monotonic = n.clock.Read, n.monotonic.read
	}
	n.config.Mailer = n.mail
	if given, ok := c.Journal.(*memoryJournal); ok {
		n.journal = given
	}
	n.boot(n.journal)
	return n
}

func (n *node) boot(journal *memoryJournal) {
	n.t.Helper()
	n.journal, n.config.Journal = journal, journal
	n.all = n.all[:min(uint64(len(n.all)), journal.Last())]
	if journal.before == nil {
		journal.before = n.keep
	}
	s, err := Open(n.config)
	must(n.t, err)
	n.System = s
	awaitReady(n.t, s)
}

func awaitReady(t panicStops, s *System) {
	t.Helper()
	select {
	case <-s.Ready():
	case <-s.Done():
		t.Fatalf("the system stopped: %v", s.Err())
	}
}

func (n *node) stop() {
	n.t.Helper()
	must(n.t, n.Close())
}

func (n *node) restart() {
	n.t.Helper()
	n.boot(n.ended(false))
}

// crash goes on with what the disk held at this moment.
func (n *node) crash() {
	n.t.Helper()
	n.boot(n.ended(true))
}

// ended stops the node and gives the journal that it leaves.
func (n *node) ended(crash bool) *memoryJournal {
	n.t.Helper()
	image := n.journal.crashed()
	n.stop()
	if !crash {
		image = n.journal.crashed()
	}
	return image
}

func (n *node) pass(d time.Duration) {
	n.clock.advance(d)
	n.monotonic.advance(d)
}

func mustEmail(t panicStops, text string) account.Email {
	t.Helper()
	email, err := account.ParseEmail(text)
	must(t, err)
	return email
}

func client(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{203, byte(n >> 16), byte(n >> 8), byte(n)})
}

func requester(n int) account.Requester { return account.Requester{Address: client(n)} }

// login opens a session of an address, which gets an account if it has none.
func login(t panicStops, s *System, mail *fakeMailer, email account.Email, from netip.Addr) account.Digest {
	t.Helper()
	if err := s.RequestCode(email, account.Requester{Address: from}); err != nil {
		t.Fatalf("request a code: %v", err)
	}
	token, _, err := s.OpenSession(email, mail.code(email), account.Requester{Address: from})
	if err != nil {
		t.Fatalf("open a session: %v", err)
	}
	return token.Digest()
}

type testMember struct {
	email account.Email
	token account.Digest
	keys  []account.Digest
	ids   []string
}

func (n *node) join(number, keys int) *testMember {
	n.t.Helper()
	m := &testMember{email: mustEmail(n.t, fmt.Sprintf("user%d@example.com", number))}
	m.token = login(n.t, n.System, n.mail, m.email, client(number))
	for range keys {
		record, secret, err := n.CreateKey(m.token, "")
		if err != nil {
			n.t.Fatalf("create a key: %v", err)
		}
		m.keys, m.ids = append(m.keys, secret.Digest()), append(m.ids, record.ID)
	}
	return m
}

func (n *node) admit(key account.Digest) account.Admission {
	n.t.Helper()
	grant, err := n.Admit(account.Caller{Key: key, HasKey: true, Address: client(0)})
	if err != nil {
		n.t.Fatalf("admit: %v", err)
	}
	return grant
}

// admitted counts how many of so many requests are let in as a member.
func (n *node) admitted(key account.Digest, requests int) int {
	n.t.Helper()
	count := 0
	for range requests {
		if grant := n.admit(key); grant.Admitted && grant.Account != 0 {
			count++
		}
	}
	return count
}

func (n *node) spent(token account.Digest) int {
	n.t.Helper()
	verdict, err := n.Usage(token)
	must(n.t, err)
	return verdict.Day.Limit - verdict.Day.Remaining
}

// countAccounts waits until the shards have done what they were sent, and counts the accounts.
func countAccounts(t panicStops, s *System) int {
	t.Helper()
	list, err := s.ListAccounts()
	must(t, err)
	return len(list)
}
