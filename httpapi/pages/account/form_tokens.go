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
	// formLifetime is the lifetime of a token. It is longer than a session. A form that is older is shown again with a new
	// token.
	formLifetime = time.Hour
	// spentTokensMax is the size of the table of spent tokens, which has one entry for each session. Each session needs an
	// e-mail, and the mail limits allow fewer e-mails in formLifetime.
	spentTokensMax = 1 << 13

	formSerialBytes = 8
	formTimeBytes   = 8
	formMACBytes    = 16
	formBytes       = formSerialBytes + formTimeBytes + formMACBytes
)

// tokenOwner identifies the owner of a form token: the digest of a session, or of the id in the login cookie.
type tokenOwner [sha256.Size]byte

// formTokens issues and verifies the tokens in forms. A token is valid for one purpose and one owner, for formLifetime,
// and only in this process. It is the base64url of
//
//	serial (8) · Unix seconds (8) · first 16 bytes of HMAC-SHA256(key, serial · seconds · owner · purpose)
//
// After a token is spent, it and all older tokens of its owner are invalid for spend. So reloading a page does not
// create a second key.
type formTokens struct {
	key   [32]byte // random in each process
	clock func() time.Time

	mu     sync.Mutex
	serial uint64 // of the newest token
	spent  map[tokenOwner]spentMark
}

// spentMark has the serial of the newest spent token of an owner.
type spentMark struct {
	serial uint64
	until  time.Time // when all tokens up to serial have expired
}

func newFormTokens(key [32]byte, clock func() time.Time) *formTokens {
	return &formTokens{key: key, clock: clock, spent: map[tokenOwner]spentMark{}}
}

// issue returns a new token.
func (f *formTokens) issue(purpose string, owner tokenOwner) string {
	f.mu.Lock()
	f.serial++
	serial := f.serial
	f.mu.Unlock()
	var token [formBytes]byte
	binary.BigEndian.PutUint64(token[:], serial)
	binary.BigEndian.PutUint64(token[formSerialBytes:], uint64(max(0, f.clock().Unix())))
	f.sign(token[:], purpose, owner)
	return base64.RawURLEncoding.EncodeToString(token[:])
}

// sign writes the MAC of a token to its end.
func (f *formTokens) sign(token []byte, purpose string, owner tokenOwner) {
	payload := token[:formSerialBytes+formTimeBytes]
	mac := hmac.New(sha256.New, f.key[:])
	mac.Write(payload)
	mac.Write(owner[:])
	mac.Write([]byte(purpose))
	copy(token[len(payload):], mac.Sum(nil)[:formMACBytes])
}

// verify returns the serial number of a token, and whether it is valid.
func (f *formTokens) verify(text, purpose string, owner tokenOwner) (uint64, bool) {
	token, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(token) != formBytes {
		return 0, false
	}
	want := make([]byte, formBytes)
	copy(want, token[:formSerialBytes+formTimeBytes])
	f.sign(want, purpose, owner)
	if !hmac.Equal(want, token) {
		return 0, false
	}
	age := f.clock().Unix() - int64(binary.BigEndian.Uint64(token[formSerialBytes:])) //nolint:gosec // G115: sealed here, seconds since 1970
	return binary.BigEndian.Uint64(token), age < int64(formLifetime/time.Second)
}

// isValid reports whether a token is valid.
func (f *formTokens) isValid(text, purpose string, owner tokenOwner) bool {
	_, ok := f.verify(text, purpose, owner)
	return ok
}

// spendResult is the result of spending a token.
type spendResult uint8

const (
	tokenSpent spendResult = iota
	tokenSpentBefore
	tokenInvalid
	tokenTableFull
)

// spend spends a token.
func (f *formTokens) spend(text, purpose string, owner tokenOwner) spendResult {
	serial, ok := f.verify(text, purpose, owner)
	if !ok {
		return tokenInvalid
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock()
	mark, ok := f.spent[owner]
	if ok && serial <= mark.serial {
		return tokenSpentBefore
	}
	if !ok && len(f.spent) >= spentTokensMax && !f.evictExpired(now) {
		return tokenTableFull
	}
	f.spent[owner] = spentMark{serial, now.Add(formLifetime)}
	return tokenSpent
}

// evictExpired removes expired marks, and reports whether the table is no longer full.
func (f *formTokens) evictExpired(now time.Time) bool {
	for owner, mark := range f.spent {
		if !now.Before(mark.until) {
			delete(f.spent, owner)
		}
	}
	return len(f.spent) < spentTokensMax
}
