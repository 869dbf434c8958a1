package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/httpapi/client"
)

const (
	requestTimeout = 30 * time.Second
	waitsMax       = 3              // for one request
	bodyMax        = 8 << 20        // bytes
	longestWait    = 25 * time.Hour // for the limit of a day
	accountPath    = "/v1/account/"
)

// caller asks the server, and remembers every answer for the rules that hold for all: those to requests of its own, which may be as wrong
// as they like, and those to the requests of the typed client.
type caller struct {
	ctx     context.Context
	base    string
	options Options
	http    *http.Client
	data    *client.Client // waits where a limit stands in the way
	account *client.Client // takes every answer as it is
	broken  error          // why there is nobody to ask
	seen    []*answer
	serial  int // of addresses
}

func newCaller(ctx context.Context, base string, options Options) *caller {
	if options.Wait == nil {
		options.Wait = func(wait time.Duration) {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
	}
	if options.Domain == "" {
		options.Domain = "conformance.example"
	}
	c := &caller{ctx: ctx, base: base, options: options}
	carrier := http.Client{Timeout: requestTimeout}
	if options.Client != nil {
		carrier = *options.Client
	}
	if carrier.Transport == nil {
		carrier.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true}
	}
	carrier.Transport = &recorder{carrier.Transport, c}
	carrier.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &carrier
	config := client.Config{BaseURL: base, HTTPClient: c.http, Key: client.Secret(options.Key), Retries: waitsMax, WaitMax: longestWait, BodyMax: bodyMax,
		Wait: func(ctx context.Context, wait time.Duration) error {
			options.Wait(wait)
			return ctx.Err()
		}}
	if c.data, c.broken = client.New(config); c.broken == nil {
		config.Key, config.Retries = "", client.NoRetries
		c.account, c.broken = client.New(config)
	}
	return c
}

// recorder keeps every answer as it came over the wire.
type recorder struct {
	next http.RoundTripper
	keep *caller
}

// RoundTrip is http.RoundTripper.
func (r *recorder) RoundTrip(asked *http.Request) (*http.Response, error) {
	if asked.Header.Get("Accept-Encoding") == "" {
		asked = asked.Clone(asked.Context())
		asked.Header.Set("Accept-Encoding", "identity")
	}
	res, err := r.next.RoundTrip(asked)
	if err != nil {
		return nil, err
	}
	read, err := io.ReadAll(io.LimitReader(res.Body, bodyMax))
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return nil, fmt.Errorf("%d: the body breaks off: %w", res.StatusCode, err)
	}
	res.Body = io.NopCloser(bytes.NewReader(read))
	target := strings.TrimPrefix(asked.URL.String(), r.keep.base)
	r.keep.seen = append(r.keep.seen, &answer{asked.Method, target, res.StatusCode, res.Header, read})
	return res, nil
}

// last is the newest answer.
func (c *caller) last() *answer { return c.seen[len(c.seen)-1] }

// answer is one answer, with what was asked.
type answer struct {
	method, target string
	status         int
	header         http.Header
	body           []byte
}

func (a *answer) String() string { return fmt.Sprintf("%s %s: %d", a.method, a.target, a.status) }

// isData tells an answer of an operation that is counted, from one of an account.
func (a *answer) isData() bool { return !strings.HasPrefix(a.target, accountPath) }

// request is what is asked.
type request struct {
	method, target, body string
	header               []string // names and values in turn
	patient              bool     // wait where a limit stands in the way
}

// send asks once, or until no limit stands in the way.
func (k *trial) send(r request) *answer {
	for range waitsMax {
		a := k.once(r)
		if a.status != http.StatusTooManyRequests || !r.patient {
			return a
		}
		seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
		if err != nil {
			k.fatalf("%s: Retry-After is %q (L5)", a, a.header.Get("Retry-After"))
		}
		k.options.Wait(time.Duration(seconds) * time.Second)
	}
	k.fatalf("%s %s: 429, although every Retry-After was waited for", r.method, r.target)
	return nil
}

func (k *trial) once(r request) *answer {
	var body io.Reader = http.NoBody
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	asked, err := http.NewRequestWithContext(k.ctx, r.method, k.base+r.target, body)
	if err != nil {
		k.fatalf("%s %s: %v", r.method, r.target, err)
	}
	if r.body != "" {
		asked.Header.Set("Content-Type", "application/json")
	}
	if k.options.Key != "" && !strings.HasPrefix(r.target, accountPath) {
		asked.Header.Set("Authorization", "Bearer "+k.options.Key)
	}
	for i := 0; i+1 < len(r.header); i += 2 {
		asked.Header.Set(r.header[i], r.header[i+1])
	}
	res, err := k.http.Do(asked)
	if err != nil {
		k.fatalf("%s %s: no answer: %v", r.method, r.target, err)
	}
	defer func() { _ = res.Body.Close() }() // it was read
	return k.last()
}

// get asks for a path of /v1.
func (k *trial) get(target string, header ...string) *answer {
	return k.send(request{method: http.MethodGet, target: target, header: header, patient: true})
}

// ok is get for what must be 200.
func (k *trial) ok(target string, header ...string) *answer {
	a := k.get(target, header...)
	if a.status != http.StatusOK {
		k.fatalf("%s, want 200: %.300s", a, a.body)
	}
	return a
}

// list is what rules about pages look at in an answer with many items, as it was written.
type list[T any] struct {
	Data []T
	Meta struct {
		Total       int
		NextCursor  *int
		GeneratedAt string
	}
}

// read decodes a body.
func read[T any](k *trial, a *answer) T {
	var into T
	if err := json.Unmarshal(a.body, &into); err != nil {
		k.fatalf("%s: the body is not the JSON of the contract: %v: %.300s", a, err, a.body)
	}
	return into
}

// listOf asks for a list that must be 200.
func listOf[T any](k *trial, target string) list[T] { return read[list[T]](k, k.ok(target)) }

// and is a target with more parameters.
func and(target, format string, args ...any) string {
	separator := "?"
	if strings.Contains(target, "?") {
		separator = "&"
	}
	return target + separator + fmt.Sprintf(format, args...)
}

// walk reads a whole list, page by page.
func walk[T any](k *trial, target string, limit int) []T {
	var all []T
	for cursor, pages := 0, 0; ; pages++ {
		page := listOf[T](k, and(target, "limit=%d&cursor=%d", limit, cursor))
		all = append(all, page.Data...)
		if page.Meta.NextCursor == nil {
			return all
		}
		if *page.Meta.NextCursor != cursor+len(page.Data) || len(page.Data) == 0 || pages > 1000 {
			k.fatalf("%s: after %d items from %d nextCursor is %d (P1)", target, len(page.Data), cursor, *page.Meta.NextCursor)
		}
		cursor = *page.Meta.NextCursor
	}
}

// fault is the body of an error.
type fault struct {
	Error struct {
		Code      string
		Message   string
		RequestID string
		Details   []detail
	}
}

// detail is one problem with a request.
type detail struct {
	Path    []any
	Message string
}

// refused asks for what must be an error of a status and code.
func (k *trial) refused(target string, status int, code string) fault {
	a := k.get(target)
	return k.mustRefuse(a, status, code)
}

func (k *trial) mustRefuse(a *answer, status int, code string) fault {
	if a.status != status {
		k.errorf("%s, want %d %s: %.300s", a, status, code, a.body)
		return fault{}
	}
	f := read[fault](k, a)
	if f.Error.Code != code {
		k.errorf("%s: error.code is %q, want %q", a, f.Error.Code, code)
	}
	return f
}

// badParameter asks for what must be 400 with a detail about a parameter.
func (k *trial) badParameter(target, name string) {
	f := k.refused(target, http.StatusBadRequest, "invalid_parameters")
	if !slices.ContainsFunc(f.Error.Details, func(d detail) bool { return len(d.Path) > 0 && d.Path[0] == name }) {
		k.errorf("GET %s: no detail with the path %q: %+v", target, name, f.Error.Details)
	}
}

// unknown are paths that must be 404.
func unknown(targets ...string) func(*trial) {
	return func(k *trial) {
		for _, target := range targets {
			k.refused(target, http.StatusNotFound, "not_found")
		}
	}
}

// bad are requests each of which must be 400 for the parameter.
func bad(name string, targets ...string) func(*trial) {
	return func(k *trial) {
		for _, target := range targets {
			k.badParameter(target, name)
		}
	}
}
