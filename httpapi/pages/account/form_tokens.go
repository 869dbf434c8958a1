package account

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync"
	"time"
)

const (
	// formLifetime is longer than any session; a form that waited longer is shown again with a fresh token.
	formLifetime = time.Hour
	// spentMax bounds the sessions whose last spent token is remembered. A session costs a letter, and the accounts give out fewer
	// codes in formLifetime.
	spentMax = 1 << 13

	formSerialBytes = 8
	formTimeBytes   = 8
	formMACBytes    = 16
	formBytes       = formSerialBytes + formTimeBytes + formMACBytes
)

// tokenOwner is whom a form belongs to: the digest of a session's token, or of the number that a browser got before it has a session.
type tokenOwner [sha256.Size]byte

// formTokens gives out the tokens that forms carry, and knows them again. A token is good for one purpose and one owner, for formLifetime, in
// this process alone:
//
//	serial (8) · seconds since 1970 (8) · first 16 bytes of HMAC-SHA256(key, serial · seconds · owner · purpose)
//
// as base64 for URLs. A form that makes something is spent: what it was and each one that its owner was given before opens nothing
// more, so a page that is loaded again makes no second key.
type formTokens struct {
	key   [32]byte // of this process
	clock func() time.Time

	mu     sync.Mutex
	serial uint64 // of the newest token
	spent  map[tokenOwner]spentMark
}

// spentMark is the newest token that an owner has spent.
type spentMark struct {
	serial uint64
	until  time.Time // no token of that time is good any more
}

func newFormTokens(key [32]byte, clock func() time.Time) *formTokens {
	return &formTokens{key: key, clock: clock, spent: map[tokenOwner]spentMark{}}
}

// issue makes a token.
func (f *formTokens) issue(purpose string, of tokenOwner) string {
	f.mu.Lock()
	f.serial++
	serial := f.serial
	f.mu.Unlock()
	var token [formBytes]byte
	binary.BigEndian.PutUint64(token[:], serial)
	binary.BigEndian.PutUint64(token[formSerialBytes:], uint64(max(0, f.clock().Unix())))
	f.sign(token[:], purpose, of)
	return base64.RawURLEncoding.EncodeToString(token[:])
}

// sign puts the code of what stands before it at the end of a token.
func (f *formTokens) sign(token []byte, purpose string, of tokenOwner) {
	head := token[:formSerialBytes+formTimeBytes]
	mac := hmac.New(sha256.New, f.key[:])
	mac.Write(head)
	mac.Write(of[:])
	mac.Write([]byte(purpose))
	copy(token[len(head):], mac.Sum(nil)[:formMACBytes])
}

// verify gives the serial number of a token, and false for one that is not good.
func (f *formTokens) verify(text, purpose string, of tokenOwner) (uint64, bool) {
	token, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(token) != formBytes {
		return 0, false
	}
	want := make([]byte, formBytes)
	copy(want, token[:formSerialBytes+formTimeBytes])
	f.sign(want, purpose, of)
	if !hmac.Equal(want, token) {
		return 0, false
	}
	age := f.clock().Unix() - int64(binary.BigEndian.Uint64(token[formSerialBytes:])) //nolint:gosec // G115: sealed here, seconds since 1970
	return binary.BigEndian.Uint64(token), age < int64(formLifetime/time.Second)
}

// isValid tells whether a token is.
func (f *formTokens) isValid(text, purpose string, of tokenOwner) bool {
	_, ok := f.verify(text, purpose, of)
	return ok
}

// spendResult is what came of spending a token.
type spendResult uint8

const (
	spentNow spendResult = iota
	spentBefore
	invalidToken // the token is not good
	tableFull    // too many are remembered
)

// spend uses a token up, once.
func (f *formTokens) spend(text, purpose string, of tokenOwner) spendResult {
	serial, ok := f.verify(text, purpose, of)
	if !ok {
		return invalidToken
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock()
	last, known := f.spent[of]
	if known && serial <= last.serial {
		return spentBefore
	}
	if !known && len(f.spent) >= spentMax && !f.evictExpired(now) {
		return tableFull
	}
	f.spent[of] = spentMark{serial, now.Add(formLifetime)}
	return spentNow
}

// evictExpired drops what is too old to matter, and tells whether there is room now.
func (f *formTokens) evictExpired(now time.Time) bool {
	for of, m := range f.spent {
		if !now.Before(m.until) {
			delete(f.spent, of)
		}
	}
	return len(f.spent) < spentMax
}
