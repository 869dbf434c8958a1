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

// ControlHandler serves the controls of a node (those methods of Server that change its time, data or failures) over
// HTTP, for tests that are not written in Go. Bodies are JSON. If a control fails, the response is 400 with {"error":
// "..."}. Danger: every client that can reach the handler controls the node. Serve it on a listener of its own.
//
//	GET    /_mock/clock                            {"now": "2026-03-02T16:00:00Z"}
//	POST   /_mock/clock     {"advance": "26h"} or {"set": "2026-03-02T16:00:00Z"}
//	POST   /_mock/rates     [{"institution": "ambar", "currency": "USD", "buy": "58.20", "sell": "59.20"}]
//	                        and optionally channel, kind, source, effectiveDate, publishedAt, expiresAt
//	POST   /_mock/refresh   every source publishes its newest rates again
//	POST   /_mock/expire    {"institution": "ambar", "currency": "USD"}, both optional
//	POST   /_mock/faults    {"route": "/v1/rates/best", "status": 503, "times": 3}; see Fault: code,
//	                        retryAfter "2s", delay "1s", drop, truncate, share "0.01", seed
//	DELETE /_mock/faults    removes all faults
//	GET    /_mock/codes?email=ana@example.com      {"code": "..."}, the newest login code
//	POST   /_mock/keys      {"email": "ana@example.com"} or no body; returns {"key": "..."}
//	POST   /_mock/quota     {"account": a key or an e-mail address, "day": 100, "minute": 10}
//	GET    /_mock/requests                         the requests that the node received
//	DELETE /_mock/requests  empties the list of requests
//	POST   /_mock/restart, /_mock/crash
//	POST   /_mock/reset     restores the state that the node had when ControlHandler was called
func (n *Node) ControlHandler() (http.Handler, error) {
	var initial *State
	if err := n.Do(func(s *Server) { initial = s.Snapshot() }); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for pattern, control := range map[string]controlFunc{
		"GET /_mock/clock": func(s *Server, _ *http.Request) any { return s.Clock.reading() },
		"POST /_mock/clock": withBody(func(s *Server, body *clockMove) any {
			s.must(body.apply(s.Clock))
			return s.Clock.reading()
		}),
		"POST /_mock/rates": withBody(func(s *Server, rates *[]Rate) any {
			s.Publish(*rates...)
			return nil
		}),
		"POST /_mock/refresh": withoutBody((*Server).Refresh),
		"POST /_mock/expire": withBody(func(s *Server, body *struct{ Institution, Currency string }) any {
			s.Expire(body.Institution, body.Currency)
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
		"POST /_mock/keys": withBody(func(s *Server, body *struct{ Email string }) any {
			return map[string]string{"key": s.KeyOf(body.Email)}
		}),
		"POST /_mock/quota": withBody(func(s *Server, q *quotaRequest) any {
			s.SetQuota(q.Account, q.Day, q.Minute)
			return nil
		}),
		"GET /_mock/requests": func(s *Server, _ *http.Request) any {
			received := []recordedRequest{}
			for _, r := range s.Requests() {
				received = append(received, recordedRequest{r, string(r.Body)})
			}
			return map[string][]recordedRequest{"requests": received}
		},
		"DELETE /_mock/requests": withoutBody(func(s *Server) { s.ClearRequests() }),
		"POST /_mock/restart":    withoutBody((*Server).Restart),
		"POST /_mock/crash":      withoutBody((*Server).Crash),
		"POST /_mock/reset": withoutBody(func(s *Server) {
			s.ClearFaults()
			s.ClearRequests()
			s.Restore(initial)
		}),
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { n.serveControl(w, r, control) })
	}
	return mux, nil
}

// controlFunc runs the control at one path of ControlHandler. Its result is sent as JSON. The result nil is sent as {}.
type controlFunc func(*Server, *http.Request) any

const (
	controlBodyMax  = 1 << 20 // bytes
	controlBodyType = "application/json"
)

// serveControl runs a control. A POST must have a JSON content type. A web page of another origin cannot send this
// content type. It therefore cannot control the node.
func (n *Node) serveControl(w http.ResponseWriter, r *http.Request, control controlFunc) {
	var result any
	err := errors.New("the header Content-Type: application/json is missing")
	if r.Method != http.MethodPost || strings.HasPrefix(r.Header.Get("Content-Type"), controlBodyType) {
		err = n.Do(func(s *Server) { result = control(s, r) })
	}
	w.Header().Set("Content-Type", controlBodyType)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
		result = map[string]string{"error": err.Error()}
	case result == nil:
		result = struct{}{}
	}
	_ = json.NewEncoder(w).Encode(result) // fails only if the client has disconnected
}

// withoutBody returns a controlFunc that reads no body and has no result.
func withoutBody(control func(*Server)) controlFunc {
	return func(s *Server, _ *http.Request) any {
		control(s)
		return nil
	}
}

// withBody returns a controlFunc that decodes a JSON body into a T. For an empty body, control gets a zero T.
func withBody[T any](control func(*Server, *T) any) controlFunc {
	return func(s *Server, r *http.Request) any {
		body := new(T)
		decoder := json.NewDecoder(http.MaxBytesReader(nil, r.Body, controlBodyMax))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(body); err != nil && !errors.Is(err, io.EOF) {
			s.must(fmt.Errorf("read the body: %w", err))
		}
		return control(s, body)
	}
}

func (c *Clock) reading() any { return map[string]time.Time{"now": c.Now()} }

// clockMove is the body of POST /_mock/clock.
type clockMove struct {
	Set     *time.Time
	Advance string
}

func (m *clockMove) apply(c *Clock) error {
	if (m.Set == nil) == (m.Advance == "") {
		return errors.New(`want either {"advance": "26h"} or {"set": "2026-03-02T16:00:00Z"}`)
	}
	advance, err := parseOptionalDuration("advance", m.Advance)
	if err == nil && m.Set != nil {
		c.Set(*m.Set)
	}
	c.Advance(advance)
	return err
}

type quotaRequest struct {
	Account     string
	Day, Minute int
}

// faultRequest is a Fault whose durations and share are strings.
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

// parseOptionalDuration parses a duration; "" is 0.
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

// recordedRequest is a Request whose body is encoded as text in JSON. encoding/json would encode it as base64.
type recordedRequest struct {
	Request
	Body string `json:"body"`
}

// ParseFault parses a fault in one of the forms STATUS, STATUS:SHARE and STATUS:SHARE@ROUTE. With "503:0.01", about one
// request in a hundred gets status 503.
func ParseFault(text string) (Fault, error) {
	condition, route, _ := strings.Cut(text, "@")
	status, share, hasShare := strings.Cut(condition, ":")
	code, err := strconv.Atoi(status)
	if err != nil {
		return Fault{}, fmt.Errorf("%q: want STATUS, STATUS:SHARE or STATUS:SHARE@ROUTE, such as 503:0.01", text)
	}
	fault := Fault{Route: route, Status: code}
	if hasShare {
		if fault.PerMillion, err = parseShare(share); err != nil {
			return Fault{}, fmt.Errorf("%q: %w", text, err)
		}
	}
	return fault, fault.check()
}

const shareDecimals = 6 // maximum number of decimals of a share

// parseShare parses a share of the requests, above 0 and up to 1. It returns the share in millionths.
func parseShare(text string) (int, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction + strings.Repeat("0", max(0, shareDecimals-len(fraction)))
	share, err := strconv.Atoi(digits)
	if err != nil || whole == "" || len(fraction) > shareDecimals || share < 1 || share > million || strings.ContainsAny(text, "+-_") {
		return 0, fmt.Errorf("%q is not a share of the requests from 0.000001 to 1", text)
	}
	return share, nil
}
