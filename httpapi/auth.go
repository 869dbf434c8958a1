package httpapi

import (
	"bytes"

	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

// API keys and session tokens are read only from the Authorization header, never from the URL, a cookie or a body.

const (
	bearerScheme = "bearer"
	realmDefault = "tasard"
)

// bearerText returns the text after "Bearer" and blanks in an Authorization header, or false for another scheme.
func bearerText(line []byte) ([]byte, bool) {
	if len(line) <= len(bearerScheme) || line[len(bearerScheme)] != ' ' || !fields.EqualFold(line[:len(bearerScheme)], bearerScheme) {
		return nil, false
	}
	return bytes.TrimLeft(line[len(bearerScheme):], " "), true
}

// credential is the credential of an account request: a session token or an API key.
type credential struct {
	digest     account.Digest // valid if wellFormed
	isKey      bool
	present    bool // the request has an Authorization header
	wellFormed bool // the header has the form of a session token or a key
}

// forwardedFor is the only header from which a client address is read, and only if it comes from a trusted proxy.
// Forwarded and X-Real-IP are ignored: a proxy that is not configured to overwrite them passes on what a client sent.
const forwardedFor = "X-Forwarded-For"
