package httpapi

import (
	"crypto/sha256"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

// The Authorization header (interface §5.1). Keys and sessions are read from this header only, never from the URL, a
// cookie or a body.

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

// caller returns the key or the client address of a data request. The result holds no memory of the request.
func (s *Server) caller(ctx *fasthttp.RequestCtx, f *conn.HeadInfo) account.Caller {
	c := account.Caller{Address: s.clientAddress(ctx)}
	if !f.HasAuthorization {
		return c
	}
	if token, ok := bearerText(f.Authorization); ok {
		c.Key, c.HasKey = account.ParseKey(token)
	}
	c.HasMalformedKey = !c.HasKey
	return c
}

// credential is what an account operation was sent: the digest of a session or of a key, or something that is neither.
type credential struct {
	digest     account.Digest
	isKey      bool
	present    bool // there is an Authorization header
	wellFormed bool // it has the form of a session or of a key
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

// challenge puts WWW-Authenticate on a 401. A login code is not a token: where it is refused, none was.
func (s *Server) challenge(ctx *fasthttp.RequestCtx, code engine.Code) {
	value := `Bearer realm="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s.config.Realm) + `"`
	if code != engine.CodeInvalidCode && ctx.Request.Header.Peek(fasthttp.HeaderAuthorization) != nil {
		value += `, error="invalid_token"`
	}
	ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, value)
}

// forwardedFor is the one header that may name a client, and only when a trusted proxy sends it. Forwarded and
// X-Real-IP never do: a proxy that is not told to overwrite them passes on what the client made up.
const forwardedFor = "X-Forwarded-For"

// clientAddress is the other end of the connection, or, when that is a trusted proxy, the client that it names. It has
// no zone, and an IPv4 address is one, however it was written. The zero address stands for a connection without one.
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
