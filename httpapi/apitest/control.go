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

	"github.com/tasard/tasard/engine"
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
	first, err := n.Snapshot()
	if err != nil {
		return nil, err
	}
	c := &control{n, first}
	mux := http.NewServeMux()
	for pattern, answer := range map[string]func(*http.Request) (any, error){
		"GET /_mock/clock":       c.clock,
		"POST /_mock/clock":      c.moveClock,
		"POST /_mock/rates":      c.publish,
		"POST /_mock/refresh":    func(*http.Request) (any, error) { return nothing{}, n.Refresh() },
		"POST /_mock/expire":     c.expire,
		"POST /_mock/faults":     c.fault,
		"DELETE /_mock/faults":   func(*http.Request) (any, error) { n.ClearFaults(); return nothing{}, nil },
		"GET /_mock/codes":       c.code,
		"POST /_mock/keys":       c.key,
		"POST /_mock/quota":      c.quota,
		"GET /_mock/requests":    c.requests,
		"DELETE /_mock/requests": func(*http.Request) (any, error) { n.ClearRequests(); return nothing{}, nil },
		"POST /_mock/restart":    func(*http.Request) (any, error) { return nothing{}, n.Restart() },
		"POST /_mock/crash":      func(*http.Request) (any, error) { return nothing{}, n.Crash() },
		"POST /_mock/reset":      c.reset,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { reply(w, r, answer) })
	}
	return mux, nil
}

// control is the node, and what it was at first.
type control struct {
	node  *Node
	first *State
}

// nothing is the answer of a button that has none.
type nothing struct{}

const (
	controlBodyMax  = 1 << 20 // bytes
	controlBodyType = "application/json"
)

// reply answers a call. A body must say that it is JSON: a page of another site can't make a browser say that.
func reply(w http.ResponseWriter, r *http.Request, answer func(*http.Request) (any, error)) {
	w.Header().Set("Content-Type", controlBodyType)
	status := http.StatusOK
	var said any
	err := error(nil)
	if r.Method == http.MethodPost && !strings.HasPrefix(r.Header.Get("Content-Type"), controlBodyType) {
		err = errors.New("the header Content-Type: application/json is missing")
	} else {
		said, err = answer(r)
	}
	if err != nil {
		status, said = http.StatusBadRequest, struct {
			Error string `json:"error"`
		}{err.Error()}
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(said) // a caller who has gone needs no answer
}

// readBody reads a JSON body; an empty one changes nothing.
func readBody(r *http.Request, into any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(nil, r.Body, controlBodyMax))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the body: %w", err)
	}
	return nil
}

func (c *control) clock(*http.Request) (any, error) {
	return struct {
		Now time.Time `json:"now"`
	}{c.node.Clock.Now()}, nil
}

func (c *control) moveClock(r *http.Request) (any, error) {
	var move struct {
		Set     *time.Time `json:"set"`
		Advance string     `json:"advance"`
	}
	if err := readBody(r, &move); err != nil {
		return nil, err
	}
	switch {
	case (move.Set == nil) == (move.Advance == ""):
		return nil, errors.New(`want either {"advance": "26h"} or {"set": "2026-03-02T16:00:00Z"}`)
	case move.Set != nil:
		c.node.Clock.Set(*move.Set)
	default:
		by, err := time.ParseDuration(move.Advance)
		if err != nil {
			return nil, fmt.Errorf("advance: %w", err)
		}
		c.node.Clock.Advance(by)
	}
	return c.clock(r)
}

func (c *control) publish(r *http.Request) (any, error) {
	var list []struct {
		Source string `json:"source"`
		rateFile
	}
	if err := readBody(r, &list); err != nil {
		return nil, err
	}
	var rates []Rate
	for i := range list {
		rates = append(rates, list[i].rate(list[i].Source))
	}
	return nothing{}, c.node.Publish(rates...)
}

func (c *control) expire(r *http.Request) (any, error) {
	var what struct {
		Institution string `json:"institution"`
		Currency    string `json:"currency"`
	}
	if err := readBody(r, &what); err != nil {
		return nil, err
	}
	return nothing{}, c.node.Expire(what.Institution, what.Currency)
}

func (c *control) fault(r *http.Request) (any, error) {
	var f struct {
		Route      string      `json:"route"`
		Status     int         `json:"status"`
		Code       engine.Code `json:"code"`
		RetryAfter string      `json:"retryAfter"`
		Delay      string      `json:"delay"`
		Drop       bool        `json:"drop"`
		Truncate   int         `json:"truncate"`
		Times      int         `json:"times"`
		Share      string      `json:"share"`
		Seed       uint64      `json:"seed"`
	}
	if err := readBody(r, &f); err != nil {
		return nil, err
	}
	fault := Fault{Route: f.Route, Status: f.Status, Code: f.Code, Drop: f.Drop, Truncate: f.Truncate, Times: f.Times, Seed: f.Seed}
	var errs [3]error
	fault.RetryAfter, errs[0] = span("retryAfter", f.RetryAfter)
	fault.Delay, errs[1] = span("delay", f.Delay)
	if f.Share != "" {
		fault.PerMillion, errs[2] = readShare(f.Share)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return nothing{}, c.node.Fault(fault)
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

func (c *control) code(r *http.Request) (any, error) {
	code, err := c.node.Code(r.URL.Query().Get("email"))
	return struct {
		Code string `json:"code"`
	}{code}, err
}

func (c *control) key(r *http.Request) (any, error) {
	var who struct {
		Email string `json:"email"`
	}
	if err := readBody(r, &who); err != nil {
		return nil, err
	}
	var key string
	var err error
	if who.Email == "" {
		key, err = c.node.Key()
	} else {
		key, err = c.node.KeyOf(who.Email)
	}
	return struct {
		Key string `json:"key"`
	}{key}, err
}

func (c *control) quota(r *http.Request) (any, error) {
	var q struct {
		Who    string `json:"who"`
		Day    int    `json:"day"`
		Minute int    `json:"minute"`
	}
	if err := readBody(r, &q); err != nil {
		return nil, err
	}
	return nothing{}, c.node.SetQuota(q.Who, q.Day, q.Minute)
}

// requestSeen is a Request as JSON.
type requestSeen struct {
	At     time.Time   `json:"at"`
	Method string      `json:"method"`
	Path   string      `json:"path"`
	Query  string      `json:"query"`
	Header http.Header `json:"header"`
	Body   string      `json:"body"`
	Status int         `json:"status"`
}

func (c *control) requests(*http.Request) (any, error) {
	seen := []requestSeen{}
	for _, r := range c.node.Requests() {
		seen = append(seen, requestSeen{r.At, r.Method, r.Path, r.Query, r.Header, string(r.Body), r.Status})
	}
	return struct {
		Requests []requestSeen `json:"requests"`
	}{seen}, nil
}

func (c *control) reset(*http.Request) (any, error) {
	c.node.ClearFaults()
	c.node.ClearRequests()
	return nothing{}, c.node.Restore(c.first)
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
