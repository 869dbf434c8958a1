package httpapi

import (
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine/account"
)

// AccessRecord is a request that was answered, for an access log. It has no path, query, header or key, nothing that
// could be used by its reader; the client is cut to a network.
type AccessRecord struct {
	RequestID string
	At        time.Time // when the request was there as a whole
	Route     string    // as in RequestCount
	Method    string    // as in RequestCount
	Status    int
	Duration  time.Duration // until the answer was made
	Bytes     int           // of the answer's body as it is sent
	Keyed     bool          // it was admitted or refused in the name of an account
	Network   string        // of the client, as limits see it: 24 bits of an IPv4 address, 48 of an IPv6 one
}

// logAccess passes an answer to Config.AccessLog.
func (s *Server) logAccess(ctx *fasthttp.RequestCtx, a *requestState) {
	status := ctx.Response.StatusCode()
	if status < s.config.AccessStatusMin {
		return
	}
	if id := s.idOf(ctx); id != nil { // nil: the head was written in one piece, and no panic replaced it
		copy(a.id[:], id)
	}
	length := len(ctx.Response.Body())
	if ctx.IsHead() {
		length = 0
	}
	s.config.AccessLog(s.accessRecord(a, ctx.Time(), methodLabels()[methodIndex(ctx.Method())], status, length, s.clientAddress(ctx)))
}

// accessRecord is the record of an answer to a request that was there as a whole at began; zero: it never was.
func (s *Server) accessRecord(a *requestState, began time.Time, method string, status, length int, client netip.Addr) AccessRecord {
	now := s.config.Clock()
	if began.IsZero() {
		began = now
	}
	return AccessRecord{
		RequestID: string(a.id[:]), At: began, Route: s.counters.routeNames[a.route], Method: method, Status: status,
		Duration: max(0, now.Sub(began)), Bytes: length, Keyed: a.admission.Account != 0, Network: account.LoggedNetwork(client),
	}
}
