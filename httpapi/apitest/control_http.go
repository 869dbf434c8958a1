package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ControlHandler is the node's buttons over HTTP, for tests that are not written in Go: serve it on a listener of its own, for
// whoever reaches it can do everything. Bodies are JSON; what a button can't do is 400 with {"error": "..."}.
//
//	GET    /_mock/clock                            {"now": "2026-03-02T16:00:00Z"}
//	POST   /_mock/clock     {"advance": "26h"} or {"set": "2026-03-02T16:00:00Z"}
//	POST   /_mock/rates     [{"institution": "ambar", "currency": "USD", "buy": "58.20", "sell": "59.20"}]
//	                        and channel, kind, source, effectiveDate, publishedAt, expiresAt, as in an observations file
//	POST   /_mock/refresh   every source says again what it said last
//	POST   /_mock/expire    {"institution": "ambar", "currency": "USD"}, each may be left out
//	POST   /_mock/faults    {"route": "/v1/rates/best", "status": 503, "times": 3}; see Fault: code, retryAfter "2s", delay "1s",
//	                        drop, truncate, share "0.01", seed
//	DELETE /_mock/faults    ends all
//	GET    /_mock/codes?email=ana@example.com      {"code": "..."}, the newest login code
//	POST   /_mock/keys      {"email": "ana@example.com"}, which may be left out: {"key": "..."}
//	POST   /_mock/quota     {"who": a key or an address, "day": 100, "minute": 10}
//	GET    /_mock/requests                         those that /v1 was sent
//	DELETE /_mock/requests  forgets them
//	POST   /_mock/restart, /_mock/crash, /_mock/reset: reset goes back to when ControlHandler was called
func (n *Node) ControlHandler() (http.Handler, error) {
	var first *State
	if err := n.Do(func(s *Server) { first = s.Snapshot() }); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for pattern, do := range map[string]controlFunc{
		"GET /_mock/clock": func(s *Server, _ *http.Request) any { return s.Clock.reading() },
		"POST /_mock/clock": withBody(func(s *Server, move *clockMove) any {
			s.must(move.apply(s.Clock))
			return s.Clock.reading()
		}),
		"POST /_mock/rates": withBody(func(s *Server, rates *[]Rate) any {
			s.Publish(*rates...)
			return nil
		}),
		"POST /_mock/refresh": withoutBody((*Server).Refresh),
		"POST /_mock/expire": withBody(func(s *Server, of *struct{ Institution, Currency string }) any {
			s.Expire(of.Institution, of.Currency)
			return nil
		}),
		"POST /_mock/faults": withBody(func(s *Server, f *faultRequest) any {
			s.must(f.parse())
			s.Fault(f.Fault)
			return nil
		}),
		"DELETE /_mock/faults": withoutBody(func(s *Server) { s.ClearFaults() }),
		"GET /_mock/codes": func(s *Server, r *http.Request) any {
			return map[string]string{"code": s.Code(r.URL.Query().Get("email"))}
		},
		"POST /_mock/keys": withBody(func(s *Server, who *struct{ Email string }) any {
			key := s.Key
			if who.Email != "" {
				key = func() string { return s.KeyOf(who.Email) }
			}
			return map[string]string{"key": key()}
		}),
		"POST /_mock/quota": withBody(func(s *Server, q *quotaRequest) any {
			s.SetQuota(q.Who, q.Day, q.Minute)
			return nil
		}),
		"GET /_mock/requests": func(s *Server, _ *http.Request) any {
			seen := []recordedRequest{}
			for _, r := range s.Requests() {
				seen = append(seen, recordedRequest{r, string(r.Body)})
			}
			return map[string][]recordedRequest{"requests": seen}
		},
		"DELETE /_mock/requests": withoutBody(func(s *Server) { s.ClearRequests() }),
		"POST /_mock/restart":    withoutBody((*Server).Restart),
		"POST /_mock/crash":      withoutBody((*Server).Crash),
		"POST /_mock/reset": withoutBody(func(s *Server) {
			s.ClearFaults()
			s.ClearRequests()
			s.Restore(first)
		}),
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { n.serveControl(w, r, do) })
	}
	return mux, nil
}

// controlFunc is what one path does; what it returns is answered as JSON, nil as {}.
type controlFunc func(*Server, *http.Request) any

const (
	controlBodyMax  = 1 << 20 // bytes
	controlBodyType = "application/json"
)

// serveControl answers a call. A body must say that it is JSON: a page of another site can't make a browser say that.
func (n *Node) serveControl(w http.ResponseWriter, r *http.Request, do controlFunc) {
	var said any
	err := errors.New("the header Content-Type: application/json is missing")
	if r.Method != http.MethodPost || strings.HasPrefix(r.Header.Get("Content-Type"), controlBodyType) {
		err = n.Do(func(s *Server) { said = do(s, r) })
	}
	w.Header().Set("Content-Type", controlBodyType)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
		said = map[string]string{"error": err.Error()}
	case said == nil:
		said = struct{}{}
	}
	_ = json.NewEncoder(w).Encode(said) // a caller who has gone needs no answer
}

// withoutBody is a control that reads nothing and has nothing to say.
func withoutBody(do func(*Server)) controlFunc {
	return func(s *Server, _ *http.Request) any {
		do(s)
		return nil
	}
}

// withBody reads a JSON body, whose names are those of T in any case; an empty one changes nothing.
func withBody[T any](do func(*Server, *T) any) controlFunc {
	return func(s *Server, r *http.Request) any {
		body := new(T)
		decoder := json.NewDecoder(http.MaxBytesReader(nil, r.Body, controlBodyMax))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(body); err != nil && !errors.Is(err, io.EOF) {
			s.must(fmt.Errorf("read the body: %w", err))
		}
		return do(s, body)
	}
}

func (c *Clock) reading() any { return map[string]time.Time{"now": c.Now()} }

// clockMove moves a clock one way or the other.
type clockMove struct {
	Set     *time.Time
	Advance string
}

func (m *clockMove) apply(c *Clock) error {
	if (m.Set == nil) == (m.Advance == "") {
		return errors.New(`want either {"advance": "26h"} or {"set": "2026-03-02T16:00:00Z"}`)
	}
	by, err := parseOptionalDuration("advance", m.Advance)
	if err == nil && m.Set != nil {
		c.Set(*m.Set)
	}
	c.Advance(by)
	return err
}

type quotaRequest struct {
	Who         string
	Day, Minute int
}

// faultRequest is a Fault with spans and its share as texts.
type faultRequest struct {
	Fault
	RetryAfter, Delay, Share string
}

func (f *faultRequest) parse() error {
	var errs [3]error
	f.Fault.RetryAfter, errs[0] = parseOptionalDuration("retryAfter", f.RetryAfter)
	f.Fault.Delay, errs[1] = parseOptionalDuration("delay", f.Delay)
	if f.Share != "" {
		f.PerMillion, errs[2] = parseShare(f.Share)
	}
	return errors.Join(errs[:]...)
}

// parseOptionalDuration reads a duration that may be left out.
func parseOptionalDuration(name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

// recordedRequest is a Request whose body is a text.
type recordedRequest struct {
	Request
	Body string `json:"body"`
}

// ParseFault reads a fault from a text: STATUS, or STATUS:SHARE of the requests, or the same for one route, STATUS:SHARE@ROUTE.
// "503:0.01" is one request in a hundred.
func ParseFault(text string) (Fault, error) {
	rest, route, _ := strings.Cut(text, "@")
	status, share, shared := strings.Cut(rest, ":")
	number, err := strconv.Atoi(status)
	if err != nil {
		return Fault{}, fmt.Errorf("%q: %q is no status; want STATUS, STATUS:SHARE or STATUS:SHARE@ROUTE, such as 503:0.01", text, status)
	}
	fault := Fault{Route: route, Status: number}
	if shared {
		if fault.PerMillion, err = parseShare(share); err != nil {
			return Fault{}, fmt.Errorf("%q: %w", text, err)
		}
	}
	return fault, fault.check()
}

// shareDecimals is how exactly a share can be said.
const shareDecimals = 6

// parseShare reads a share above 0 and up to 1 as millionths.
func parseShare(text string) (int, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction + strings.Repeat("0", max(0, shareDecimals-len(fraction)))
	share, err := strconv.Atoi(digits)
	if err != nil || whole == "" || len(fraction) > shareDecimals || share < 1 || share > million || strings.ContainsAny(text, "+-_") {
		return 0, fmt.Errorf("%q is no share of the requests from 0.000001 to 1", text)
	}
	return share, nil
}
