package account

import (
	"crypto/sha256"
	"errors"
	"regexp"
	"strings"
	"sync"
	"unique"
)

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
