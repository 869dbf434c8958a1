package engine

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Limits of the way from an address to a session (interface §5.5, K2, K3).
const (
	CodeLifetime        = 10 * time.Minute
	CodeTriesMax        = 5
	CodeResendAfter     = time.Minute
	SessionLifetime     = 15 * time.Minute
	wrongTriesDayMax    = 25   // over all codes of an address
	wrongTriesHourMax   = 1000 // over all addresses
	mailsDayMax         = 10   // letters to one address; more requests are answered alike and send none
	mailsHourMax        = 5000 // letters in all; the same
	clientCodesHourMax  = 30   // code requests of one client
	clientTriesHourMax  = 60   // codes tried by one client
	clientsMax          = 1 << 16
	sessionsPerEmailMax = 8
)

// Registry is who may log in: addresses and their accounts, pending codes, sessions, and the counters against guessing. It has one
// owner. Codes live in memory only and are void after a restart; everything else is in the log.
type Registry struct {
	key       [32]byte // seals codes; of this process alone
	addresses map[Email]*address
	sessions  map[Digest]session
	wrong     rolling // wrong tries of the last hour over all addresses
	trying    int     // wrong tries on their way into the log
	mails     rolling // letters of the last hour
	swept     Date    // when addresses without an account were last forgotten
	clients   map[netip.Prefix]*client
	lastID    uint64
}

type address struct {
	account uint64 // 0 before the first login
	known   bool   // the account is in the log
	issued  time.Time
	mails   tally
	wrong   tally

	asked  time.Time // a code is on its way into the log since then
	trying int       // wrong tries on their way into the log
	code   *pendingCode
}

// tally counts within one Dominican day; it never goes back to an earlier one.
type tally struct {
	day   Date
	count int
}

func (t *tally) on(day Date) int {
	if day > t.day {
		t.day, t.count = day, 0
	}
	return t.count
}

type pendingCode struct {
	seal    CodeSeal
	issued  time.Time
	expires time.Time
	tries   int
}

type session struct {
	account uint64
	email   Email
	expires time.Time
}

// rolling counts events of the last hour in minutes; what it forgets is always more than an hour old.
type rolling struct {
	minutes [61]int
	newest  int64 // minute since 1970
}

func (r *rolling) advance(now time.Time) {
	minute := now.Unix() / 60
	if minute < r.newest-1 { // the clock went back: what is counted leaves an hour from now
		sum := 0
		for _, n := range r.minutes {
			sum += n
		}
		r.minutes, r.newest = [61]int{}, minute
		r.minutes[minute%int64(len(r.minutes))] = sum
	}
	for r.newest < minute {
		if minute-r.newest >= int64(len(r.minutes)) {
			r.minutes, r.newest = [61]int{}, minute
			return
		}
		r.newest++
		r.minutes[r.newest%int64(len(r.minutes))] = 0
	}
}

func (r *rolling) add(now time.Time) {
	r.advance(now)
	r.minutes[r.newest%int64(len(r.minutes))]++
}

func (r *rolling) total(now time.Time) int {
	r.advance(now)
	sum := 0
	for _, n := range r.minutes {
		sum += n
	}
	return sum
}

type client struct{ codes, tries rolling }

// RegistryEvent is a fact about logins.
type RegistryEvent interface{ registryEvent() }

// The facts of logins.
type (
	// CodeIssued says that a code was asked for; Mailed, that a letter goes out. The code itself is not in it.
	CodeIssued struct {
		Email  Email
		At     time.Time
		Mailed bool
	}
	// CodeFailed counts a wrong try.
	CodeFailed struct {
		Email Email
		At    time.Time
	}
	// SessionOpened begins a session; the code that opened it is used up. New begins the account as well.
	SessionOpened struct {
		Account uint64
		New     bool
		Email   Email
		Token   Digest
		Expires time.Time
		At      time.Time
	}
	// SessionClosed signs out.
	SessionClosed struct{ Token Digest }
)

func (*CodeIssued) registryEvent()    {}
func (*CodeFailed) registryEvent()    {}
func (*SessionOpened) registryEvent() {}
func (*SessionClosed) registryEvent() {}

// NewRegistry is a registry without facts; key is fresh random bytes of this process.
func NewRegistry(key [32]byte) *Registry {
	return &Registry{
		key: key, addresses: map[Email]*address{}, sessions: map[Digest]session{}, clients: map[netip.Prefix]*client{},
	}
}

// ClientPrefix is what stands for a client in counters: an IPv4 address, or the /64 of an IPv6 one (L8).
func ClientPrefix(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	prefix, _ := addr.Prefix(bits)
	return prefix
}

// at is the entry of an address, made when it is new.
func (r *Registry) at(email Email) *address {
	a := r.addresses[email]
	if a == nil {
		a = &address{}
		r.addresses[email] = a
	}
	return a
}

func (r *Registry) client(addr netip.Addr, now time.Time) *client {
	prefix := ClientPrefix(addr)
	c := r.clients[prefix]
	if c == nil {
		r.forgetClients(now)
		c = &client{}
		r.clients[prefix] = c
	}
	return c
}

// forgetClients keeps the table bounded: those without a request in the last hour leave it; when all are active, any one does.
func (r *Registry) forgetClients(now time.Time) {
	if len(r.clients) < clientsMax {
		return
	}
	for prefix, c := range r.clients {
		if c.codes.total(now)+c.tries.total(now) == 0 {
			delete(r.clients, prefix)
		}
	}
	for prefix := range r.clients {
		if len(r.clients) < clientsMax {
			return
		}
		delete(r.clients, prefix)
	}
}

func tooMany(retry time.Duration) error {
	return &Error{Code: CodeRateLimited, Message: "too many attempts from this address; try again later", RetryAfter: retry}
}

// RequestCode decides that a code goes to an address (K1–K3). The answer is the same whether the address is known or not. The code
// becomes valid with Issue, once the event is durable; without Mailed nothing is sent and no code is valid, and the answer is still
// the same.
func (r *Registry) RequestCode(email Email, from netip.Addr, now time.Time) (*CodeIssued, error) {
	c := r.client(from, now)
	if c.codes.total(now) >= clientCodesHourMax {
		return nil, tooMany(time.Hour)
	}
	c.codes.add(now)
	entry := r.at(email)
	for _, last := range [...]time.Time{entry.issued, entry.asked} {
		if since := now.Sub(last); since < CodeResendAfter && !last.IsZero() {
			return nil, &Error{
				Code: CodeRequestedTooSoon, Message: "a code was sent less than a minute ago", RetryAfter: min(CodeResendAfter, CodeResendAfter-since),
			}
		}
	}
	entry.asked = now
	day := DateOf(now)
	mailed := entry.mails.on(day) < mailsDayMax && entry.wrong.on(day) < wrongTriesDayMax && r.mails.total(now) < mailsHourMax
	return &CodeIssued{email, universal(now), mailed}, nil
}

// Issue makes a code valid: it voids the one before (K2).
func (r *Registry) Issue(e *CodeIssued, code Secret, now time.Time) {
	r.at(e.Email).code = &pendingCode{
		seal: sealCode(r.key, e.Email, code.Reveal()), issued: now, expires: e.At.Add(CodeLifetime),
	}
}

// ErrCode is the one answer to every code that does not open a session (K2).
func errCode() error {
	return &Error{Code: CodeInvalidCode, Message: "the code is not valid; codes last ten minutes, five tries and one use"}
}

// TryCode decides a code. A wrong try gives a CodeFailed event and the error: the event must be durable before the error is
// answered. A right one uses the code up at once and gives the session.
func (r *Registry) TryCode(email Email, code string, token Digest, from netip.Addr, now time.Time) (RegistryEvent, error) {
	c := r.client(from, now)
	if c.tries.total(now) >= clientTriesHourMax {
		return nil, tooMany(time.Hour)
	}
	c.tries.add(now)
	entry := r.addresses[email]
	pending := &pendingCode{}
	if entry != nil && entry.code != nil {
		pending = entry.code
	}
	seal := sealCode(r.key, email, code) // also for an unknown address: the same work (S3)
	right := hmac.Equal(seal[:], pending.seal[:])
	blocked := r.wrong.total(now)+r.trying >= wrongTriesHourMax ||
		entry != nil && entry.wrong.on(DateOf(now))+entry.trying >= wrongTriesDayMax
	if blocked {
		return nil, errCode()
	}
	pending.tries++
	if expired := !now.Before(pending.expires) || now.Sub(pending.issued) >= CodeLifetime; !right || expired || pending.tries > CodeTriesMax {
		r.failing(email, pending)
		return &CodeFailed{email, universal(now)}, errCode()
	}
	entry.code = nil
	if entry.account == 0 {
		r.lastID++
		entry.account = r.lastID
	}
	return &SessionOpened{
		Account: entry.account, New: !entry.known, Email: email, Token: token,
		Expires: universal(now).Add(SessionLifetime), At: universal(now),
	}, nil
}

// failing counts a wrong try before it is durable, so that tries side by side don't pass the limits; the last one voids the code.
func (r *Registry) failing(email Email, pending *pendingCode) {
	entry := r.at(email)
	entry.trying++
	r.trying++
	if pending.tries >= CodeTriesMax {
		entry.code = nil
	}
}

// CloseSession decides a sign-out.
func (r *Registry) CloseSession(token Digest, now time.Time) (*SessionClosed, error) {
	if _, err := r.Session(token, now); err != nil {
		return nil, err
	}
	return &SessionClosed{token}, nil
}

// Session is the account of a session.
func (r *Registry) Session(token Digest, now time.Time) (uint64, error) {
	s, known := r.sessions[token]
	if !known || !now.Before(s.expires) {
		return 0, &Error{Code: CodeInvalidSession, Message: "the session is unknown or has ended; ask for a code again"}
	}
	return s.account, nil
}

// Apply makes a durable event true.
func (r *Registry) Apply(event RegistryEvent) {
	switch e := event.(type) {
	case *CodeIssued:
		r.sweep(DateOf(e.At))
		entry := r.at(e.Email)
		entry.issued, entry.code = e.At, nil
		if e.Mailed {
			entry.mails.on(DateOf(e.At))
			entry.mails.count++
			r.mails.add(e.At)
		}
	case *CodeFailed:
		entry := r.at(e.Email)
		entry.wrong.on(DateOf(e.At))
		entry.wrong.count++
		r.wrong.add(e.At)
		entry.trying, r.trying = max(0, entry.trying-1), max(0, r.trying-1)
	case *SessionOpened:
		entry := r.at(e.Email)
		entry.account, entry.known = e.Account, true
		r.lastID = max(r.lastID, e.Account)
		r.dropSessions(e.Email, e.At)
		r.sessions[e.Token] = session{e.Account, e.Email, e.Expires}
	case *SessionClosed:
		delete(r.sessions, e.Token)
	default:
		panic(fmt.Sprintf("engine: no rule applies an event of type %T", event))
	}
}

// sweep forgets, once a day, addresses that never became an account: their counters are of another day.
func (r *Registry) sweep(today Date) {
	if today <= r.swept {
		return
	}
	r.swept = today
	for email, entry := range r.addresses {
		if !entry.known && entry.mails.day < today && entry.wrong.day < today && entry.code == nil && entry.trying == 0 {
			delete(r.addresses, email)
		}
	}
}

// dropSessions makes room for one more session of an address: ended ones go, then those that end first.
func (r *Registry) dropSessions(email Email, now time.Time) {
	var open []Digest
	for token, s := range r.sessions {
		switch {
		case !now.Before(s.expires):
			delete(r.sessions, token)
		case s.email == email:
			open = append(open, token)
		}
	}
	slices.SortFunc(open, func(a, b Digest) int {
		return cmp.Or(r.sessions[a].expires.Compare(r.sessions[b].expires), bytes.Compare(a[:], b[:]))
	})
	for _, token := range open[:max(0, len(open)-sessionsPerEmailMax+1)] {
		delete(r.sessions, token)
	}
}
