package account

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Shapes of secrets (K2, K4). A secret is its prefix, random characters of the alphabet, and for keys six more that are a checksum of
// all before, so that a typo is refused without a look-up and scanners recognise a leak.
const (
	KeyPrefixLive     = "tasard_live_"
	KeyPrefixTest     = "tasard_test_"
	SessionPrefix     = "tasard_session_"
	keyRandomLength   = 30 // 178 bits
	keyChecksumLength = 6
	// KeyLength is of a whole key.
	KeyLength = len(KeyPrefixLive) + keyRandomLength + keyChecksumLength
	// CodeDigits is the length of a login code.
	CodeDigits = 8
	hintLength = 4
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Digest is the SHA-256 of a secret: all that is kept of it.
type Digest [sha256.Size]byte

// Secret is a text that must reach nobody but its owner. It prints as [redacted]; Reveal gives the text. It holds the text behind
// a pointer because fmt prints the private fields of a struct without asking them: there it finds an address in memory.
type Secret struct{ text *string }

const redacted = "[redacted]"

// SecretOf hides a text that was not made here, such as the password of a mail server.
func SecretOf(text string) Secret { return Secret{&text} }

// Reveal is the secret text, for the one answer or mail that carries it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Digest is what is kept of the secret.
func (s Secret) Digest() Digest { return sha256.Sum256([]byte(s.Reveal())) }

// Hint is the last characters, which tell an owner's keys apart.
func (s Secret) Hint() string {
	text := s.Reveal()
	return text[max(0, len(text)-hintLength):]
}

// String hides the secret.
func (Secret) String() string { return redacted }

// GoString hides the secret.
func (Secret) GoString() string { return redacted }

// Format hides the secret under every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText hides the secret in JSON and in logs.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// NewKey makes a key from random bytes; the prefix is KeyPrefixLive or KeyPrefixTest.
func NewKey(random io.Reader, prefix string) (Secret, error) {
	body, err := randomText(random, base62, keyRandomLength)
	if err != nil {
		return Secret{}, fmt.Errorf("make key: %w", err)
	}
	return SecretOf(prefix + body + keyChecksum(prefix+body)), nil
}

// NewSessionToken makes a session token.
func NewSessionToken(random io.Reader) (Secret, error) {
	body, err := randomText(random, base62, keyRandomLength)
	if err != nil {
		return Secret{}, fmt.Errorf("make session: %w", err)
	}
	return SecretOf(SessionPrefix + body), nil
}

// NewCode makes a login code: eight digits, leading zeros kept.
func NewCode(random io.Reader) (Secret, error) {
	digits, err := randomText(random, base62[:10], CodeDigits)
	if err != nil {
		return Secret{}, fmt.Errorf("make code: %w", err)
	}
	return SecretOf(digits), nil
}

// ErrRandom is returned when a source of chance gives hardly anything but bytes that are passed over.
var ErrRandom = errors.New("the source of random bytes is broken")

// randomTriesMax bounds the search for unbiased bytes: one in thirty is passed over, so a healthy source needs about forty.
const randomTriesMax = 4096

// randomText draws without bias: bytes beyond the largest multiple of the alphabet are passed over.
func randomText(random io.Reader, alphabet string, length int) (string, error) {
	limit := byte(256 - 256%len(alphabet) - 1)
	text := make([]byte, 0, length)
	var one [1]byte
	for range randomTriesMax {
		if _, err := io.ReadFull(random, one[:]); err != nil {
			return "", err
		}
		if one[0] > limit {
			continue
		}
		if text = append(text, alphabet[int(one[0])%len(alphabet)]); len(text) == length {
			return string(text), nil
		}
	}
	return "", ErrRandom
}

func keyChecksum(text string) string {
	var out [keyChecksumLength]byte
	sum := crc32.ChecksumIEEE([]byte(text))
	for i := range out {
		out[len(out)-1-i] = base62[sum%62]
		sum /= 62
	}
	return string(out[:])
}

// isKeyByte are those that keys are drawn from.
var isKeyByte = func() (known [256]bool) {
	for _, c := range []byte(base62) {
		known[c] = true
	}
	return known
}()

// ParseKey gives the digest of a well-formed key and false for anything else, without a look-up. It allocates nothing and keeps
// nothing of text.
func ParseKey(text []byte) (Digest, bool) {
	if len(text) != KeyLength {
		return Digest{}, false
	}
	if prefix := text[:len(KeyPrefixLive)]; string(prefix) != KeyPrefixLive && string(prefix) != KeyPrefixTest {
		return Digest{}, false
	}
	signed := text[:KeyLength-keyChecksumLength]
	for _, c := range signed[len(KeyPrefixLive):] {
		if !isKeyByte[c] {
			return Digest{}, false
		}
	}
	sum := crc32.ChecksumIEEE(signed)
	for i := range keyChecksumLength {
		if text[KeyLength-1-i] != base62[sum%62] {
			return Digest{}, false
		}
		sum /= 62
	}
	return sha256.Sum256(text), true
}

// CodeSeal is what is kept of a pending code: a hash under a key of the process, bound to the address (K2).
type CodeSeal [sha256.Size]byte

// sealCode binds the digest of the address.
func sealCode(key [32]byte, email EmailID, code string) CodeSeal {
	seal := hmac.New(sha256.New, key[:])
	seal.Write(email.digest[:])
	seal.Write([]byte(code))
	return CodeSeal(seal.Sum(nil))
}
