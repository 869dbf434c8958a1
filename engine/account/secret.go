package account

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
	"unique"
)

// Formats of secrets. A key consists of a prefix, random characters and a checksum of both. With the checksum a
// mistyped key is refused without a lookup, and secret scanners recognize a leaked key.
const (
	KeyPrefixLive     = "tasard_live_"
	KeyPrefixTest     = "tasard_test_"
	SessionPrefix     = "tasard_session_"
	keyRandomLength   = 30 // characters, with 178 random bits
	keyChecksumLength = 6
	// KeyLength is the length of a whole key.
	KeyLength = len(KeyPrefixLive) + keyRandomLength + keyChecksumLength
	// CodeDigits is the length of a login code.
	CodeDigits = 8
	hintLength = 4
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Digest is the SHA-256 of a secret. It is stored in place of the secret.
type Digest [sha256.Size]byte

// equal compares two digests in constant time. It takes a tenth of the time of subtle.ConstantTimeCompare.
func (d *Digest) equal(other *Digest) bool {
	var difference uint64
	for i := 0; i < len(d); i += 8 {
		difference |= binary.LittleEndian.Uint64(d[i:]) ^ binary.LittleEndian.Uint64(other[i:])
	}
	return difference == 0
}

// Secret is a text that must not appear in logs. It prints as [redacted]; Reveal returns the text. The text is behind a
// pointer, because fmt can't call Format for unexported fields and would print their text.
type Secret struct{ text *string }

const redacted = "[redacted]"

// SecretOf returns a text as a secret, for example the password of a mail server.
func SecretOf(text string) Secret { return Secret{&text} }

// Reveal returns the text, for the response or mail that must contain it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Digest returns the SHA-256 of the secret.
func (s Secret) Digest() Digest { return sha256.Sum256([]byte(s.Reveal())) }

// Hint returns the last four characters, by which an owner can distinguish keys.
func (s Secret) Hint() string {
	text := s.Reveal()
	return text[max(0, len(text)-hintLength):]
}

// Format writes [redacted] for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText returns [redacted], for JSON and logs.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// NewKey returns a new key with the prefix KeyPrefixLive or KeyPrefixTest.
func NewKey(random io.Reader, prefix string) (Secret, error) {
	body, err := randomText(random, base62, keyRandomLength)
	if err != nil {
		return Secret{}, fmt.Errorf("make key: %w", err)
	}
	checksum := keyChecksum([]byte(prefix + body))
	return SecretOf(prefix + body + string(checksum[:])), nil
}

// NewSessionToken returns a new session token.
func NewSessionToken(random io.Reader) (Secret, error) {
	body, err := randomText(random, base62, keyRandomLength)
	if err != nil {
		return Secret{}, fmt.Errorf("make session: %w", err)
	}
	return SecretOf(SessionPrefix + body), nil
}

// NewCode returns a new login code of eight digits.
func NewCode(random io.Reader) (Secret, error) {
	digits, err := randomText(random, base62[:10], CodeDigits)
	if err != nil {
		return Secret{}, fmt.Errorf("make code: %w", err)
	}
	return SecretOf(digits), nil
}

// randomText returns random characters of an alphabet. It discards bytes above the largest multiple of the alphabet's
// length; otherwise some characters would be more likely than others.
func randomText(random io.Reader, alphabet string, length int) (string, error) {
	limit := byte(256 - 256%len(alphabet) - 1)
	text := make([]byte, 0, length)
	var b [1]byte
	for len(text) < length {
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return "", err
		}
		if b[0] <= limit {
			text = append(text, alphabet[int(b[0])%len(alphabet)])
		}
	}
	return string(text), nil
}

func keyChecksum(signed []byte) (checksum [keyChecksumLength]byte) {
	sum := crc32.ChecksumIEEE(signed)
	for i := range checksum {
		checksum[len(checksum)-1-i] = base62[sum%62]
		sum /= 62
	}
	return checksum
}

func isBase62(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// ParseKey returns the digest of a well-formed key, and false for any other text. It does not allocate and does not
// retain text.
func ParseKey(text []byte) (Digest, bool) {
	if len(text) != KeyLength {
		return Digest{}, false
	}
	signed := text[:KeyLength-keyChecksumLength]
	if keyChecksum(signed) != [keyChecksumLength]byte(text[len(signed):]) {
		return Digest{}, false
	}
	if prefix := text[:len(KeyPrefixLive)]; string(prefix) != KeyPrefixLive && string(prefix) != KeyPrefixTest {
		return Digest{}, false
	}
	for _, c := range text[len(KeyPrefixLive):] {
		if !isBase62(c) {
			return Digest{}, false
		}
	}
	return sha256.Sum256(text), true
}

// ValidCode reports whether a text has the form of a login code.
func ValidCode(text string) bool {
	return len(text) == CodeDigits && !strings.ContainsFunc(text, func(c rune) bool { return c < '0' || c > '9' })
}

// ValidKeyName reports whether a text can be the name of a key. It has at most KeyNameMax characters, none of which
// breaks or reorders a line in a list or a log. It is not itself a key, which would then be stored and shown.
func ValidKeyName(name string) bool {
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > KeyNameMax || strings.ContainsFunc(name, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
	}) {
		return false
	}
	for start := 0; start+KeyLength <= len(name); start++ {
		if _, isKey := ParseKey([]byte(name[start : start+KeyLength])); isKey {
			return false
		}
	}
	return true
}

// CodeSeal is the stored form of a login code: a keyed hash of the code and its e-mail address.
type CodeSeal [sha256.Size]byte

func sealCode(key [32]byte, email EmailID, code string) CodeSeal {
	mac := hmac.New(sha256.New, key[:])
	mac.Write(email.digest[:])
	mac.Write([]byte(code))
	return CodeSeal(mac.Sum(nil))
}

// Limits of an e-mail address (RFC 5321).
const (
	emailBytesMax      = 254
	emailLocalBytesMax = 64
)

// ErrEmail is the error of ParseEmail. It does not repeat the address.
var ErrEmail = errors.New("not an e-mail address of the form name@example.com")

// Email is an address that is safe in a mail header: a dot-atom, an at sign and a host name of letters, digits and
// hyphens with at least one dot. Quoted local parts, comments, address literals and non-ASCII characters are errors.
// Addresses that differ only in case are equal.
type Email struct{ lower string }

// emailForm returns the expression for addresses, which is compiled at the first login.
var emailForm = sync.OnceValue(func() *regexp.Regexp {
	// Four characters of RFC 5322 are not accepted: mail servers have used '!' and '%' to route mail through third
	// parties, and '|' and '`' to start programs.
	const atom, label = "[0-9A-Za-z#$&'*+/=?^_{}~-]+", "[0-9A-Za-z]([0-9A-Za-z-]{0,61}[0-9A-Za-z])?"
	return regexp.MustCompile("^" + atom + "([.]" + atom + ")*@(" + label + "[.])+" + label + "$")
})

// ParseEmail parses an address. The error is ErrEmail.
func ParseEmail(text string) (Email, error) {
	if len(text) > emailBytesMax || strings.IndexByte(text, '@') > emailLocalBytesMax || !emailForm().MatchString(text) {
		return Email{}, ErrEmail
	}
	topLabel := text[strings.LastIndexByte(text, '.')+1:]
	isNotDigit := func(r rune) bool { return r > '9' }
	if len(topLabel) < 2 || !strings.ContainsFunc(topLabel, isNotDigit) { // an IP address ends with digits
		return Email{}, ErrEmail
	}
	return Email{strings.ToLower(text)}, nil
}

// String returns the address in lower case. Danger: the address is personal data. Logs and files must have only its
// EmailID.
func (e Email) String() string { return e.lower }

// IsZero reports whether the address is missing.
func (e Email) IsZero() bool { return e.lower == "" }

// ID returns the stored form of the address.
func (e Email) ID() EmailID {
	if e.lower == "" {
		return EmailID{}
	}
	return NewEmailID(sha256.Sum256([]byte(e.lower)), e.lower[:1]+"…@…"+e.lower[strings.LastIndexByte(e.lower, '.'):])
}

// EmailID is the stored form of an address: a digest for comparison, and a mask for lists and logs. The address itself
// is never stored. Danger: a reader of the log can test whether it contains a given address.
type EmailID struct {
	digest Digest
	mask   unique.Handle[string]
}

// NewEmailID returns the id of a stored digest and mask.
func NewEmailID(digest Digest, mask string) EmailID {
	if mask == "" {
		return EmailID{digest: digest}
	}
	return EmailID{digest, unique.Make(mask)}
}

// Digest returns the SHA-256 of the address.
func (e EmailID) Digest() Digest { return e.digest }

// String returns the mask: the first character and the last label of the domain.
func (e EmailID) String() string {
	if e.mask == (unique.Handle[string]{}) {
		return ""
	}
	return e.mask.Value()
}

// IsZero reports whether the address is missing.
func (e EmailID) IsZero() bool { return e == EmailID{} }
