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
	// formLifetime is the lifetime of a form token. It is longer than that of a session. If the token of a form has
	// expired, the form is shown again with a new token.
	formLifetime = time.Hour
	// spentTokensMax is the largest number of owners (see tokenOwner) in the table of spent tokens. Only
	// forms of a session spend tokens. To begin a session one needs an e-mail, and package mail sends fewer e-mails than
	// this in formLifetime, so the table does not fill up.
	spentTokensMax = 1 << 13

	formSerialBytes = 8
	formTimeBytes   = 8
	formMACBytes    = 16
	formBytes       = formSerialBytes + formTimeBytes + formMACBytes
)

// tokenOwner identifies the browser to which a form token was issued. It is the digest of the session token. Without a
// session, it is the digest of loginState.browserID.
type tokenOwner [sha256.Size]byte

// formTokens issues and verifies the tokens in forms. A token is valid for one purpose and one owner, for formLifetime,
// and only in this process. It is the base64url of
//
//	serial (8) · Unix seconds (8) · first 16 bytes of HMAC-SHA256(key, serial · seconds · owner · purpose)
//
// A form that works only once spends its token. From then on, spend rejects that token and all older tokens of its
// owner. So reloading a page does not create a second API key.
type formTokens struct {
	key   [32]byte // random in each process
	clock func() time.Time

	mu     sync.Mutex
	serial uint64 // serial number of the newest token
	spent  map[tokenOwner]lastSpent
}

// lastSpent is the newest spent token of an owner.
type lastSpent struct {
	serial uint64
	until  time.Time // when all tokens up to serial have expired
}

func newFormTokens(key [32]byte, clock func() time.Time) *formTokens {
	return &formTokens{key: key, clock: clock, spent: map[tokenOwner]lastSpent{}}
}

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

// sign writes the MAC of a token to the end of the token.
func (f *formTokens) sign(token []byte, purpose string, owner tokenOwner) {
	payload := token[:formSerialBytes+formTimeBytes]
	mac := hmac.New(sha256.New, f.key[:])
	mac.Write(payload)
	mac.Write(owner[:])
	mac.Write([]byte(purpose))
	copy(token[len(payload):], mac.Sum(nil)[:formMACBytes])
}

// verify returns the serial number of a token and whether the token is valid. A spent token is valid here too.
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
	age := f.clock().Unix() - int64(binary.BigEndian.Uint64(token[formSerialBytes:])) //nolint:gosec // G115: issue wrote these seconds since 1970
	return binary.BigEndian.Uint64(token), age < int64(formLifetime/time.Second)
}

func (f *formTokens) isValid(text, purpose string, owner tokenOwner) bool {
	_, ok := f.verify(text, purpose, owner)
	return ok
}

type spendResult uint8

const (
	tokenSpent spendResult = iota
	tokenSpentBefore
	tokenInvalid
	tokenTableFull
)

// spend accepts a valid token if neither it nor a newer token of its owner was spent, and stores that it is spent now.
func (f *formTokens) spend(text, purpose string, owner tokenOwner) spendResult {
	serial, ok := f.verify(text, purpose, owner)
	if !ok {
		return tokenInvalid
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock()
	last, ok := f.spent[owner]
	if ok && serial <= last.serial {
		return tokenSpentBefore
	}
	if !ok && len(f.spent) >= spentTokensMax && !f.evictExpired(now) {
		return tokenTableFull
	}
	f.spent[owner] = lastSpent{serial, now.Add(formLifetime)}
	return tokenSpent
}

// evictExpired removes the entries whose tokens have all expired. It reports whether the table is no longer full.
func (f *formTokens) evictExpired(now time.Time) bool {
	for owner, last := range f.spent {
		if !now.Before(last.until) {
			delete(f.spent, owner)
		}
	}
	return len(f.spent) < spentTokensMax
}
