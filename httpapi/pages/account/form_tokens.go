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
	// formLifetime is longer than any session. An older form is shown again with a new token.
	formLifetime = time.Hour
	// spentMax bounds the table of spent tokens. A session needs an e-mail, and the limits allow fewer of them in
	// formLifetime.
	spentMax = 1 << 13

	formSerialBytes = 8
	formTimeBytes   = 8
	formMACBytes    = 16
	formBytes       = formSerialBytes + formTimeBytes + formMACBytes
)

// tokenOwner identifies the owner of a form: the digest of a session, or of the number in the login cookie.
type tokenOwner [sha256.Size]byte

// formTokens issues and verifies the tokens in forms. A token is valid for one purpose and owner, for formLifetime, in
// this process:
//
//	serial (8) · Unix seconds (8) · first 16 bytes of HMAC-SHA256(key, serial · seconds · owner · purpose)
//
// in base64url. Spending a token voids it and all older ones of its owner, so that reloading a page creates no second
// key.
type formTokens struct {
	key   [32]byte // random, of this process
	clock func() time.Time

	mu     sync.Mutex
	serial uint64 // of the newest token
	spent  map[tokenOwner]spentMark
}

// spentMark is the newest spent token of an owner.
type spentMark struct {
	serial uint64
	until  time.Time // when all tokens up to it have expired
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

// sign writes the MAC of a token to its end.
func (f *formTokens) sign(token []byte, purpose string, of tokenOwner) {
	head := token[:formSerialBytes+formTimeBytes]
	mac := hmac.New(sha256.New, f.key[:])
	mac.Write(head)
	mac.Write(of[:])
	mac.Write([]byte(purpose))
	copy(token[len(head):], mac.Sum(nil)[:formMACBytes])
}

// verify returns the serial number of a token, and whether it is valid.
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

// isValid reports whether a token is valid.
func (f *formTokens) isValid(text, purpose string, of tokenOwner) bool {
	_, ok := f.verify(text, purpose, of)
	return ok
}

// spendResult is the result of spending a token.
type spendResult uint8

const (
	spentNow spendResult = iota
	spentBefore
	invalidToken
	tableFull
)

// spend spends a token.
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

// evictExpired removes expired marks, and reports whether there is room.
func (f *formTokens) evictExpired(now time.Time) bool {
	for of, m := range f.spent {
		if !now.Before(m.until) {
			delete(f.spent, of)
		}
	}
	return len(f.spent) < spentMax
}
