package httpapi

import (
	"bytes"
	"crypto/sha256"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
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

// caller returns the API key and the client address of a request for data. The result does not point into the buffers
// of the request.
func (s *Server) caller(ctx *fasthttp.RequestCtx, f *conn.HeadInfo) account.Caller {
	return callerFrom(s.clientAddress(ctx), f.Authorization)
}

// credential is the credential of an account request: a session token or an API key.
type credential struct {
	digest     account.Digest // valid if wellFormed
	isKey      bool
	present    bool // the request has an Authorization header
	wellFormed bool // the header has the form of a session token or a key
}

func (s *Server) credential(ctx *fasthttp.RequestCtx) credential {
	lines := ctx.Request.Header.PeekAll(fasthttp.HeaderAuthorization)
	c := credential{present: len(lines) > 0}
	if len(lines) != 1 {
		return c
	}
	token, ok := bearerText(lines[0])
	if !ok {
		return c
	}
	if c.digest, c.isKey = account.ParseKey(token); c.isKey {
		c.wellFormed = true
		return c
	}
	if len(token) > len(account.SessionPrefix) && string(token[:len(account.SessionPrefix)]) == account.SessionPrefix {
		c.digest, c.wellFormed = sha256.Sum256(token), true
	}
	return c
}

// challenge adds WWW-Authenticate to a 401. If the request has an Authorization header, it adds error="invalid_token",
// but not if the error is an invalid login code.
func (s *Server) challenge(ctx *fasthttp.RequestCtx, code engine.Code) {
	value := `Bearer realm="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s.config.Realm) + `"`
	if code != engine.CodeInvalidCode && ctx.Request.Header.Peek(fasthttp.HeaderAuthorization) != nil {
		value += `, error="invalid_token"`
	}
	ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, value)
}

// forwardedFor is the only header from which a client address is read, and only if it comes from a trusted proxy.
// Forwarded and X-Real-IP are ignored: a proxy that is not configured to overwrite them passes on what a client sent.
const forwardedFor = "X-Forwarded-For"

// clientAddress returns the address of the peer, or if the peer is a trusted proxy, the client address from
// X-Forwarded-For. The address has no zone, and an IPv4-mapped IPv6 address is returned as IPv4. Without an address of
// the peer, clientAddress returns the zero Addr.
func (s *Server) clientAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	var peer netip.Addr
	if c, ok := ctx.Conn().(*conn.Conn); ok {
		peer = c.Peer()
	} else {
		peer = conn.PeerOf(ctx.RemoteAddr())
	}
	if !s.proxies.Contains(peer) {
		return peer
	}
	return s.proxies.ClientAddress(peer, ctx.Request.Header.PeekAll(forwardedFor))
}
