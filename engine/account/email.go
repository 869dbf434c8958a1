package account

import (
	"crypto/sha256"
	"errors"
	"strings"
	"unique"
)

// Limits of an e-mail address (RFC 5321).
const (
	emailBytesMax      = 254
	emailLocalBytesMax = 64
	domainLabelMax     = 63
)

// ErrEmail is the error of ParseEmail. It does not repeat the address.
var ErrEmail = errors.New("not an e-mail address of the form name@example.com")

// Email is an address in a form that is safe in a mail header: a dot-atom, an at sign and a host name of letters, digits and
// hyphens with at least one dot. Quoted names, comments, literals and other alphabets are refused. Addresses that differ
// only in case are equal.
type Email struct{ lower string }

// ParseEmail reads an address. The error is ErrEmail.
func ParseEmail(text string) (Email, error) {
	local, domain, found := strings.Cut(text, "@")
	if !found || len(text) > emailBytesMax || len(local) > emailLocalBytesMax || !dotAtom(local) || !hostName(domain) {
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

// EmailID is an address as it is stored: a digest to compare, and a mask to show in lists and logs. The address itself is
// never stored; mail is sent when the address is given. Danger: a reader of the log can test whether it has a given address.
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

func dotAtom(text string) bool {
	for atom := range strings.SplitSeq(text, ".") {
		if atom == "" || strings.ContainsFunc(atom, func(r rune) bool { return !atomRune(r) }) {
			return false
		}
	}
	return true
}

// atomRune leaves out four characters of RFC 5322: '!' and '%' have routed mail through third parties, '|' and '`' have
// started programs.
func atomRune(r rune) bool {
	return letterOrDigit(r) || strings.ContainsRune("#$&'*+-/=?^_{}~", r)
}

func letterOrDigit(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// hostName requires at least two labels, the last one with a letter, which IP addresses do not have.
func hostName(text string) bool {
	labels := strings.Split(text, ".")
	for _, label := range labels {
		if label == "" || len(label) > domainLabelMax || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.ContainsFunc(label, func(r rune) bool { return !letterOrDigit(r) && r != '-' }) {
			return false
		}
	}
	top := labels[len(labels)-1]
	return len(labels) >= 2 && len(top) >= 2 && strings.ContainsFunc(top, func(r rune) bool { return r > '9' })
}
