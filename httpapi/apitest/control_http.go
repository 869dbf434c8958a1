package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// control is a control that ControlHandler serves.
type control struct {
	method, path string
	example      string // an example of the body or the query string; "" = none
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
		{
			post, "faults", `{"route":"/v1/rates/best","status":503,"times":3}`,
			`makes requests fail: code, retryAfter "2s", delay "1s", drop`,
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
			return map[string]string{"key": s.Key(body.Email)}
		})},
		{post, "restart", "", "stops the node and starts it again", withoutBody((*Server).Restart)},
		{post, "crash", "", "kills the node as SIGKILL does, and starts it again", withoutBody((*Server).Crash)},
		{post, "reset", "", "restores the state at the start, without faults", withoutBody(func(s *Server) {
			s.ClearFaults()
			s.Restore(initial)
		})},
	}
}

const controlPath = "/_mock/"

// ControlHandler serves the controls of a node (the methods of Server that change time, data or failures) over HTTP,
// for tests in other languages than Go. GET /_mock/ lists them. Bodies are JSON. A failed control has the response 400
// with {"error": "..."}. Danger: every client of the handler controls the node. Serve it on a listener of its own.
func (n *Node) ControlHandler() (http.Handler, error) {
	var initial *State
	if err := n.Do(func(s *Server) { initial = s.Snapshot() }); err != nil {
		return nil, err
	}
	mux, table := http.NewServeMux(), controls(initial)
	for _, c := range table {
		mux.HandleFunc(c.method+" "+controlPath+c.path, func(w http.ResponseWriter, r *http.Request) { n.serveControl(w, r, c.run) })
	}
	mux.HandleFunc("GET "+controlPath+"{$}", func(w http.ResponseWriter, _ *http.Request) { writeControls(w, table) })
	return mux, nil
}

func writeControls(w http.ResponseWriter, table []control) {
	var list []map[string]string
	for _, c := range table {
		list = append(list, map[string]string{"method": c.method, "path": controlPath + c.path, "example": c.example, "description": c.description})
	}
	w.Header().Set("Content-Type", controlBodyType)
	_ = json.NewEncoder(w).Encode(map[string]any{"controls": list}) // fails only if the client has disconnected
}

// controlFunc runs a control for a request. The result is sent as JSON; nil becomes {}.
type controlFunc func(*Server, *http.Request) any

const (
	controlBodyMax  = 1 << 20 // bytes
	controlBodyType = "application/json"
)

// serveControl runs a control. It rejects requests that a web page of another site may have sent: a body needs a JSON
// content type, which such a page cannot send, and a request without a body must not have Sec-Fetch-Site: cross-site.
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

// faultRequest is the body of POST /_mock/faults: a Fault with durations as strings.
type faultRequest struct {
	Fault
	RetryAfter, Delay string
}

func (f *faultRequest) parse() error {
	var errs [2]error
	f.Fault.RetryAfter, errs[0] = parseOptionalDuration("retryAfter", f.RetryAfter)
	f.Fault.Delay, errs[1] = parseOptionalDuration("delay", f.Delay)
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
