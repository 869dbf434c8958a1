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

// Control is the node's buttons over HTTP, for tests that are not written in Go: serve it on a listener of its own, for
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
//	POST   /_mock/restart, /_mock/crash, /_mock/reset: reset goes back to when Control was called
func (n *Node) Control() (http.Handler, error) {
	var first *State
	if err := n.Do(func(s *Server) { first = s.Snapshot() }); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for pattern, do := range map[string]control{
		"GET /_mock/clock": func(s *Server, _ *http.Request) any { return s.Clock.said() },
		"POST /_mock/clock": with(func(s *Server, move *clockMove) any {
			s.must(move.of(s.Clock))
			return s.Clock.said()
		}),
		"POST /_mock/rates": with(func(s *Server, rates *[]Rate) any {
			s.Publish(*rates...)
			return nil
		}),
		"POST /_mock/refresh": plain((*Server).Refresh),
		"POST /_mock/expire": with(func(s *Server, of *struct{ Institution, Currency string }) any {
			s.Expire(of.Institution, of.Currency)
			return nil
		}),
		"POST /_mock/faults": with(func(s *Server, f *faultFile) any {
			s.must(f.read())
			s.Fault(f.Fault)
			return nil
		}),
		"DELETE /_mock/faults": plain(func(s *Server) { s.ClearFaults() }),
		"GET /_mock/codes": func(s *Server, r *http.Request) any {
			return map[string]string{"code": s.Code(r.URL.Query().Get("email"))}
		},
		"POST /_mock/keys": with(func(s *Server, who *struct{ Email string }) any {
			key := s.Key
			if who.Email != "" {
				key = func() string { return s.KeyOf(who.Email) }
			}
			return map[string]string{"key": key()}
		}),
		"POST /_mock/quota": with(func(s *Server, q *quotaOf) any {
			s.SetQuota(q.Who, q.Day, q.Minute)
			return nil
		}),
		"GET /_mock/requests": func(s *Server, _ *http.Request) any {
			seen := []requestSeen{}
			for _, r := range s.Requests() {
				seen = append(seen, requestSeen{r, string(r.Body)})
			}
			return map[string][]requestSeen{"requests": seen}
		},
		"DELETE /_mock/requests": plain(func(s *Server) { s.ClearRequests() }),
		"POST /_mock/restart":    plain((*Server).Restart),
		"POST /_mock/crash":      plain((*Server).Crash),
		"POST /_mock/reset": plain(func(s *Server) {
			s.ClearFaults()
			s.ClearRequests()
			s.Restore(first)
		}),
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { n.reply(w, r, do) })
	}
	return mux, nil
}

// control is what one path does; what it returns is answered as JSON, nil as {}.
type control func(*Server, *http.Request) any

const (
	controlBodyMax  = 1 << 20 // bytes
	controlBodyType = "application/json"
)

// reply answers a call. A body must say that it is JSON: a page of another site can't make a browser say that.
func (n *Node) reply(w http.ResponseWriter, r *http.Request, do control) {
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

// plain is a control that reads nothing and has nothing to say.
func plain(do func(*Server)) control {
	return func(s *Server, _ *http.Request) any {
		do(s)
		return nil
	}
}

// with reads a JSON body, whose names are those of T in any case; an empty one changes nothing.
func with[T any](do func(*Server, *T) any) control {
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

func (c *Clock) said() any { return map[string]time.Time{"now": c.Now()} }

// clockMove moves a clock one way or the other.
type clockMove struct {
	Set     *time.Time
	Advance string
}

func (m *clockMove) of(c *Clock) error {
	if (m.Set == nil) == (m.Advance == "") {
		return errors.New(`want either {"advance": "26h"} or {"set": "2026-03-02T16:00:00Z"}`)
	}
	by, err := span("advance", m.Advance)
	if err == nil && m.Set != nil {
		c.Set(*m.Set)
	}
	c.Advance(by)
	return err
}

type quotaOf struct {
	Who         string
	Day, Minute int
}

// faultFile is a Fault with spans and its share as texts.
type faultFile struct {
	Fault
	RetryAfter, Delay, Share string
}

func (f *faultFile) read() error {
	var errs [3]error
	f.Fault.RetryAfter, errs[0] = span("retryAfter", f.RetryAfter)
	f.Fault.Delay, errs[1] = span("delay", f.Delay)
	if f.Share != "" {
		f.PerMillion, errs[2] = readShare(f.Share)
	}
	return errors.Join(errs[:]...)
}

// span reads a duration that may be left out.
func span(name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

// requestSeen is a Request whose body is a text.
type requestSeen struct {
	Request
	Body string `json:"body"`
}

// ReadFault reads a fault from a text: STATUS, or STATUS:SHARE of the requests, or the same for one route, STATUS:SHARE@ROUTE.
// "503:0.01" is one request in a hundred.
func ReadFault(text string) (Fault, error) {
	rest, route, _ := strings.Cut(text, "@")
	status, share, shared := strings.Cut(rest, ":")
	number, err := strconv.Atoi(status)
	if err != nil {
		return Fault{}, fmt.Errorf("%q: %q is no status; want STATUS, STATUS:SHARE or STATUS:SHARE@ROUTE, such as 503:0.01", text, status)
	}
	fault := Fault{Route: route, Status: number}
	if shared {
		if fault.PerMillion, err = readShare(share); err != nil {
			return Fault{}, fmt.Errorf("%q: %w", text, err)
		}
	}
	return fault, fault.check()
}

// shareDigits is how exactly a share can be said.
const shareDigits = 6

// readShare reads a share above 0 and up to 1 as millionths.
func readShare(text string) (int, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction + strings.Repeat("0", max(0, shareDigits-len(fraction)))
	share, err := strconv.Atoi(digits)
	if err != nil || whole == "" || len(fraction) > shareDigits || share < 1 || share > million || strings.ContainsAny(text, "+-_") {
		return 0, fmt.Errorf("%q is no share of the requests from 0.000001 to 1", text)
	}
	return share, nil
}
