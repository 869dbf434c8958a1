package httpapi

import (
	"crypto/sha256"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

// The Authorization header (interface §5.1, E3). A key or a session authenticates from there alone: never from the URL, a
// cookie or a body (Q4).

const (
	bearerScheme = "bearer"
	// realmDefault names what a key opens.
	realmDefault = "tasard"
)

// bearerText is what follows the scheme and its blank, whatever it is.
func bearerText(line []byte) ([]byte, bool) {
	if len(line) <= len(bearerScheme) || line[len(bearerScheme)] != ' ' || !fields.EqualFold(line[:len(bearerScheme)], bearerScheme) {
		return nil, false
	}
	return line[len(bearerScheme)+1:], true
}

// caller tells in whose name a data operation is asked for. It keeps nothing of the request.
func (s *Server) caller(ctx *fasthttp.RequestCtx, f *conn.Framing) account.Caller {
	c := account.Caller{Address: s.clientAddress(ctx)}
	if !f.Authorized {
		return c
	}
	// What is not a token68 is no key either.
	if token, ok := bearerText(f.Authorization); ok {
		c.Key, c.HasKey = account.ReadKey(token)
	}
	c.Refused = !c.HasKey
	return c
}

// credential is what an account operation was sent: the digest of a session or of a key, or something that is neither.
type credential struct {
	digest account.Digest
	isKey  bool
	sent   bool // there is an Authorization header
	known  bool // it has the form of a session or of a key
}

func (s *Server) credential(ctx *fasthttp.RequestCtx) credential {
	lines := ctx.Request.Header.PeekAll(fasthttp.HeaderAuthorization)
	c := credential{sent: len(lines) > 0}
	if len(lines) != 1 {
		return c
	}
	token, ok := bearerText(lines[0])
	if !ok {
		return c
	}
	if c.digest, c.isKey = account.ReadKey(token); c.isKey {
		c.known = true
		return c
	}
	if len(token) > len(account.SessionPrefix) && string(token[:len(account.SessionPrefix)]) == account.SessionPrefix {
		c.digest, c.known = sha256.Sum256(token), true
	}
	return c
}

// challenge puts WWW-Authenticate on a 401 (E3). A login code is not a token: where it is refused, none was.
func (s *Server) challenge(ctx *fasthttp.RequestCtx, code engine.Code) {
	value := `Bearer realm="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s.config.Realm) + `"`
	if code != engine.CodeInvalidCode && ctx.Request.Header.Peek(fasthttp.HeaderAuthorization) != nil {
		value += `, error="invalid_token"`
	}
	ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, value)
}
