package httpapi

import (
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

// AccessRecord describes an answered request, for an access log. It contains no path, query, header, key or full client
// address.
type AccessRecord struct {
	RequestID string
	At        time.Time // when the request was complete
	Route     string    // as in RequestCount
	Method    string    // as in RequestCount
	Status    int
	Duration  time.Duration // from At until the response was ready to be sent
	Bytes     int           // length of the response body, compressed if it is sent compressed
	Keyed     bool          // Config.Admitter found an account for the API key of the request
	Network   string        // of the client: the first 24 bits of an IPv4 address, or 48 bits of an IPv6 address
}

// logAccess passes a record of the response in ctx to Config.AccessLog.
func (s *Server) logAccess(ctx *fasthttp.RequestCtx, a *requestState) {
	status := ctx.Response.StatusCode()
	if status < s.config.AccessStatusMin {
		return
	}
	if id := s.idOf(ctx); id != nil { // otherwise appendHead has set a.id
		copy(a.id[:], id)
	}
	length := len(ctx.Response.Body())
	if ctx.IsHead() {
		length = 0
	}
	s.config.AccessLog(s.accessRecord(a, ctx.Time(), methodLabels()[methodIndex(ctx.Method())], status, length, s.clientAddress(ctx)))
}

// accessRecord returns the record of a response. began is when the request was complete, or zero if it never was.
func (s *Server) accessRecord(a *requestState, began time.Time, method string, status, length int, client netip.Addr) AccessRecord {
	now := s.config.Clock()
	if began.IsZero() {
		began = now
	}
	return AccessRecord{
		RequestID: string(a.id[:]), At: began, Route: s.counters.routeNames[a.route], Method: method, Status: status,
		Duration: max(0, now.Sub(began)), Bytes: length, Keyed: a.admission.Account != 0, Network: fields.LoggedNetwork(client),
	}
}
