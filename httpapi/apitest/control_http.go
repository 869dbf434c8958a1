package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// control is one row of the table of controls.
type control struct {
	method, path string
	example      string // a body or a query string, "" = none
	description  string
	run          controlFunc
}

// controls returns the table of controls. initial is the state that reset restores.
func controls(initial *State) []control {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	return []control{
		{get, "clock", "", "the time of the node", func(s *Server, _ *http.Request) any { return s.Clock.reading() }},
		{post, "clock", `{"advance":"26h"}`, `moves the clock; or {"set":"2026-03-02T16:00:00Z"}`, withBody(func(s *Server, body *clockMove) any {
			s.must(body.apply(s.Clock))
			return s.Clock.reading()
		})},
		{
			post, "rates", `[{"institution":"ambar","currency":"USD","buy":"58.20","sell":"59.20"}]`,
			"publishes rates; optional: channel, kind, source, effectiveDate, publishedAt, expiresAt",
			withBody(func(s *Server, rates *[]Rate) any {
				s.Publish(*rates...)
				return nil
			}),
		},
		{post, "refresh", "", "every source publishes its newest rates again", withoutBody((*Server).Refresh)},
		{
			post, "expire", `{"institution":"ambar","currency":"USD"}`, "makes rates expire; without a body all",
			withBody(func(s *Server, body *struct{ Institution, Currency string }) any {
				s.Expire(body.Institution, body.Currency)
				return nil
			}),
		},
		{
			post, "faults", `{"route":"/v1/rates/best","status":503,"times":3}`,
			`makes requests fail: code, retryAfter "2s", delay "1s", drop, truncate, share "0.01", seed`,
			withBody(func(s *Server, f *faultRequest) any {
				s.must(f.parse())
				s.Fault(f.Fault)
				return nil
			}),
		},
		{del, "faults", "", "removes all faults", withoutBody(func(s *Server) { s.ClearFaults() })},
		{get, "codes", "?email=ana@example.com", "the newest login code of an address", func(s *Server, r *http.Request) any {
			return map[string]string{"code": s.Code(r.URL.Query().Get("email"))}
		}},
		{post, "keys", `{"email":"ana@example.com"}`, "returns a new API key; without a body of a new account", withBody(func(s *Server, body *struct{ Email string }) any {
			return map[string]string{"key": s.KeyOf(body.Email)}
		})},
		{post, "quota", `{"account":"ana@example.com","day":100,"minute":10}`, "sets the quota of an account, named by e-mail address or key", withBody(func(s *Server, q *quotaRequest) any {
			s.SetQuota(q.Account, q.Day, q.Minute)
			return nil
		})},
		{get, "requests", "", "the requests that the node received", func(s *Server, _ *http.Request) any {
			received := []recordedRequest{}
			for _, r := range s.Requests() {
				received = append(received, recordedRequest{r, string(r.Body)})
			}
			return map[string][]recordedRequest{"requests": received}
		}},
		{del, "requests", "", "empties the list of requests", withoutBody(func(s *Server) { s.ClearRequests() })},
		{post, "restart", "", "stops the node and starts it again", withoutBody((*Server).Restart)},
		{post, "crash", "", "kills the node as SIGKILL does, and starts it again", withoutBody((*Server).Crash)},
		{post, "reset", "", "restores the state at the start, without faults and requests", withoutBody(func(s *Server) {
			s.ClearFaults()
			s.ClearRequests()
			s.Restore(initial)
		})},
	}
}

const controlPath = "/_mock/"

// ControlHandler serves the controls of a node (those methods of Server that change its time, data or failures) over
// HTTP, for tests that are not written in Go. GET /_mock/ lists them, as a page or as JSON. Bodies are JSON. If a
// control fails, the response is 400 with {"error": "..."}. Danger: every client that can reach the handler controls
// the node. Serve it on a listener of its own.
func (n *Node) ControlHandler() (http.Handler, error) {
	var initial *State
	if err := n.Do(func(s *Server) { initial = s.Snapshot() }); err != nil {
		return nil, err
	}
	mux, table := http.NewServeMux(), controls(initial)
	for _, c := range table {
		mux.HandleFunc(c.method+" "+controlPath+c.path, func(w http.ResponseWriter, r *http.Request) { n.serveControl(w, r, c.run) })
	}
	mux.HandleFunc("GET "+controlPath+"{$}", func(w http.ResponseWriter, r *http.Request) { writeControls(w, r, table) })
	return mux, nil
}

// writeControls lists the controls, as a page for browsers and as JSON for programs.
func writeControls(w http.ResponseWriter, r *http.Request, table []control) {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		var list []map[string]string
		for _, c := range table {
			list = append(list, map[string]string{"method": c.method, "path": controlPath + c.path, "example": c.example, "description": c.description})
		}
		w.Header().Set("Content-Type", controlBodyType)
		_ = json.NewEncoder(w).Encode(map[string]any{"controls": list}) // fails only if the client has disconnected
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"+
		"<title>Controls of tasard mock</title><style>body{font:1rem/1.5 system-ui;margin:2rem;max-width:60rem}code{overflow-wrap:anywhere}</style>"+
		"<h1>Controls of tasard mock</h1><dl>")
	for _, c := range table {
		_, _ = fmt.Fprintf(w, "<dt><code>%s %s%s %s</code><dd>%s", c.method, controlPath, c.path, html.EscapeString(c.example), html.EscapeString(c.description))
	}
	_, _ = io.WriteString(w, "</dl>")
}

// controlFunc runs the control at one path of ControlHandler. Its result is sent as JSON. The result nil is sent as {}.
type controlFunc func(*Server, *http.Request) any

const (
	controlBodyMax  = 1 << 20 // bytes
	controlBodyType = "application/json"
)

// serveControl runs a control. A body must have a JSON content type, which web pages of other sites cannot send. A
// request without a body must not come from such a page: browsers say so in Sec-Fetch-Site.
func (n *Node) serveControl(w http.ResponseWriter, r *http.Request, control controlFunc) {
	var result any
	err := errors.New("a body needs the header Content-Type: application/json, and a page of another site may not send requests")
	isJSON := strings.HasPrefix(r.Header.Get("Content-Type"), controlBodyType)
	if r.Method == http.MethodGet || isJSON || r.ContentLength == 0 && r.Header.Get("Sec-Fetch-Site") != "cross-site" {
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
