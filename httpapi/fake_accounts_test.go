package httpapi

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/tasard/tasard/engine"
)

// goodCode is the code that the fake accounts send to everybody.
const goodCode = "00712345"

// fakeAccounts follows K1–K5 as simply as it can. Sessions and keys are numbered.
type fakeAccounts struct {
	clock func() time.Time
	fault error              // what every question gets
	work  func(account bool) // what a look-up costs, for the timing tests

	mu       sync.Mutex
	known    map[engine.Email]bool
	issued   map[engine.Email]time.Time
	sessions map[engine.Digest]engine.Email
	keys     map[engine.Email][]engine.KeyRecord
	count    int // of sessions and keys
	asked    int
	from     netip.Addr
	letters  map[engine.Email]string
}

// newFakeAccounts knows ana@example.do, with session 100, key 1 in use and key 8 revoked.
func newFakeAccounts(clock func() time.Time) *fakeAccounts {
	ana := email("ana@example.do")
	return &fakeAccounts{
		clock: clock, known: map[engine.Email]bool{ana: true}, issued: map[engine.Email]time.Time{},
		sessions: map[engine.Digest]engine.Email{digestOf(testSession(100)): ana},
		keys: map[engine.Email][]engine.KeyRecord{ana: {
			{ID: "k8", Name: "old", Hint: "abcd", Digest: digestOf(testKey(8)), CreatedAt: fakeNow().AddDate(0, -2, 0), RevokedAt: fakeNow().AddDate(0, -1, 0), LastUsed: fakeNow().AddDate(0, -1, -1)},
			{ID: "k1", Name: "servidor «A» & B", Hint: "wxyz", Digest: digestOf(testKey(1)), CreatedAt: fakeNow().AddDate(0, -1, 0)},
		}},
		letters: map[engine.Email]string{},
	}
}

func email(text string) engine.Email {
	e, err := engine.ParseEmail(text)
	if err != nil {
		panic(err)
	}
	return e
}

// begin counts a question and gives the planted fault.
func (f *fakeAccounts) begin(known bool) error {
	f.asked++
	if f.work != nil {
		f.work(known)
	}
	return f.fault
}

// RequestCode sends a code to everybody, at most once a minute.
func (f *fakeAccounts) RequestCode(to engine.Email, from netip.Addr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.from = from
	if err := f.begin(f.known[to]); err != nil {
		return err
	}
	now := f.clock()
	if last, ok := f.issued[to]; ok && now.Sub(last) < engine.CodeResendAfter {
		return &engine.Error{Code: engine.CodeRequestedTooSoon, Message: "A code was sent less than a minute ago.", RetryAfter: engine.CodeResendAfter - now.Sub(last)}
	}
	f.issued[to], f.letters[to] = now, goodCode
	return nil
}

// OpenSession wants the code of the letter, once.
func (f *fakeAccounts) OpenSession(of engine.Email, code string, from netip.Addr) (engine.Secret, time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.from = from
	if err := f.begin(f.known[of]); err != nil {
		return engine.Secret{}, time.Time{}, err
	}
	if f.letters[of] != code || code == "" {
		return engine.Secret{}, time.Time{}, &engine.Error{Code: engine.CodeInvalidCode, Message: "The code is not valid."}
	}
	delete(f.letters, of)
	f.known[of] = true
	f.count++
	token := testSession(f.count)
	f.sessions[digestOf(token)] = of
	return engine.SecretOf(token), f.clock().Add(engine.SessionLifetime), nil
}

// owner is whose session it is.
func (f *fakeAccounts) owner(token engine.Digest) (engine.Email, error) {
	of, ok := f.sessions[token]
	if err := f.begin(ok); err != nil {
		return engine.Email{}, err
	}
	if !ok {
		return engine.Email{}, &engine.Error{Code: engine.CodeInvalidSession, Message: "The session is not valid, or over."}
	}
	return of, nil
}

// CloseSession signs out.
func (f *fakeAccounts) CloseSession(token engine.Digest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.owner(token)
	delete(f.sessions, token)
	return err
}

// Keys lists.
func (f *fakeAccounts) Keys(token engine.Digest) ([]engine.KeyRecord, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of, err := f.owner(token)
	return f.keys[of], err
}

// CreateKey makes key 201, 202, …
func (f *fakeAccounts) CreateKey(token engine.Digest, name string) (engine.KeyRecord, engine.Secret, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of, err := f.owner(token)
	if err != nil {
		return engine.KeyRecord{}, engine.Secret{}, err
	}
	active := 0
	for _, key := range f.keys[of] {
		if key.Active() {
			active++
		}
	}
	if active >= engine.KeysActiveMax {
		return engine.KeyRecord{}, engine.Secret{}, &engine.Error{Code: engine.CodeKeyLimitReached, Message: "The account has two active keys; revoke one first."}
	}
	f.count++
	secret := engine.SecretOf(testKey(200 + f.count))
	key := engine.KeyRecord{
		ID: fmt.Sprintf("k%d", 200+f.count), Name: name, Hint: secret.Hint(), Digest: secret.Digest(), CreatedAt: f.clock(),
	}
	f.keys[of] = append(f.keys[of], key)
	return key, secret, nil
}

// RevokeKey is repeatable.
func (f *fakeAccounts) RevokeKey(token engine.Digest, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	of, err := f.owner(token)
	if err != nil {
		return err
	}
	for i := range f.keys[of] {
		if key := &f.keys[of][i]; key.ID == id {
			if key.Active() {
				key.RevokedAt = f.clock()
			}
			return nil
		}
	}
	return &engine.Error{Code: engine.CodeNotFound, Message: "The account has no key with this id."}
}

func (f *fakeAccounts) windows() engine.Verdict {
	now := f.clock()
	return engine.Verdict{
		Day:    engine.Window{Limit: 1000, Remaining: 991, Reset: engine.NextMidnight(now)},
		Minute: engine.Window{Limit: 60, Remaining: 58, Reset: now.Add(31500 * time.Millisecond)},
	}
}

// Usage of a session.
func (f *fakeAccounts) Usage(token engine.Digest) (engine.Verdict, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.owner(token)
	return f.windows(), err
}

// KeyUsage of a key.
func (f *fakeAccounts) KeyUsage(digest engine.Digest) (engine.Verdict, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, keys := range f.keys {
		for _, key := range keys {
			if key.Digest == digest && key.Active() {
				return f.windows(), f.begin(true)
			}
			if key.Digest == digest {
				return engine.Verdict{}, &engine.Error{Code: engine.CodeRevokedKey, Message: "The key is revoked."}
			}
		}
	}
	if err := f.begin(false); err != nil {
		return engine.Verdict{}, err
	}
	return engine.Verdict{}, &engine.Error{Code: engine.CodeInvalidKey, Message: "The key is not known."}
}
