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

// Email is an address in a form that is safe in a mail header: a dot-atom, an at sign and a host name of letters,
// digits and hyphens with at least one dot. Quoted names, comments, literals and other alphabets are refused. Addresses
// that differ only in case are equal.
type Email struct{ lower string }

// emailForm is compiled at the first login.
var emailForm = sync.OnceValue(func() *regexp.Regexp {
	// Four characters of RFC 5322 are missing: '!' and '%' have routed mail through third parties, '|' and '`' have
	// started programs.
	const atom, label = "[0-9A-Za-z#$&'*+/=?^_{}~-]+", "[0-9A-Za-z]([0-9A-Za-z-]{0,61}[0-9A-Za-z])?"
	return regexp.MustCompile("^" + atom + "([.]" + atom + ")*@(" + label + "[.])+" + label + "$")
})

// ParseEmail reads an address. The error is ErrEmail.
func ParseEmail(text string) (Email, error) {
	if len(text) > emailBytesMax || strings.IndexByte(text, '@') > emailLocalBytesMax || !emailForm().MatchString(text) {
		return Email{}, ErrEmail
	}
	top := text[strings.LastIndexByte(text, '.')+1:]
	if len(top) < 2 || !strings.ContainsFunc(top, func(r rune) bool { return r > '9' }) { // IP addresses have only digits there
		return Email{}, ErrEmail
	}
	return Email{strings.ToLower(text)}, nil
}

// String returns the address in lower case. Danger: it is personal data; logs and files get the ID.
func (e Email) String() string { return e.lower }

// IsZero reports that there is no address.
func (e Email) IsZero() bool { return e.lower == "" }

// ID returns the address as it is stored and compared.
func (e Email) ID() EmailID {
	if e.lower == "" {
		return EmailID{}
	}
	return NewEmailID(sha256.Sum256([]byte(e.lower)), e.lower[:1]+"…@…"+e.lower[strings.LastIndexByte(e.lower, '.'):])
}

// EmailID is an address as it is stored: a digest to compare, and a mask to show in lists and logs. The address itself
// is never stored; mail is sent when the address is given. Danger: a reader of the log can test whether it has a given
// address.
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

// IsZero reports that there is no address.
func (e EmailID) IsZero() bool { return e == EmailID{} }
