package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	requestTimeout = 30 * time.Second
	waitsMax       = 3       // for one request
	bodyMax        = 8 << 20 // bytes
	accountPath    = "/v1/account/"
)

// caller asks the server, and remembers every answer for the rules that hold for all.
type caller struct {
	ctx     context.Context
	base    string
	options Options
	seen    []*answer
	serial  int // of addresses
}

func newCaller(ctx context.Context, base string, options Options) *caller {
	if options.Client == nil {
		options.Client = &http.Client{
			Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{DisableCompression: true},
		}
	}
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
	return &caller{ctx: ctx, base: base, options: options}
}

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
	asked.Header.Set("Accept-Encoding", "identity")
	if k.options.Key != "" && !strings.HasPrefix(r.target, accountPath) {
		asked.Header.Set("Authorization", "Bearer "+k.options.Key)
	}
	for i := 0; i+1 < len(r.header); i += 2 {
		asked.Header.Set(r.header[i], r.header[i+1])
	}
	res, err := k.options.Client.Do(asked)
	if err != nil {
		k.fatalf("%s %s: no answer: %v", r.method, r.target, err)
	}
	defer func() { _ = res.Body.Close() }() // it was read
	read, err := io.ReadAll(io.LimitReader(res.Body, bodyMax))
	if err != nil {
		k.fatalf("%s %s: %d: the body breaks off: %v", r.method, r.target, res.StatusCode, err)
	}
	a := &answer{r.method, r.target, res.StatusCode, res.Header, read}
	k.seen = append(k.seen, a)
	return a
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

// list is the body of an answer with many items.
type list[T any] struct {
	Data []T
	Meta struct {
		Total       int
		NextCursor  *int
		GeneratedAt string
	}
	Operation string
}

// rate is what the kit looks at in a rate.
type rate struct {
	ID, InstitutionID, Currency, Channel, Kind, SourceID string
	Buy, Sell                                            *string
	CollectedAt, LastCheckedAt, ExpiresAt                time.Time
	Priority                                             int64
	Stale                                                bool
}

// side is what an operation applies (S1).
func (r *rate) side(operation string) *string {
	if operation == buying {
		return r.Sell
	}
	return r.Buy
}

// row is a row of history.
type row struct{ Date, InstitutionID, Currency, Channel, Kind, SourceID string }

// The two operations.
const (
	buying  = "buy"
	selling = "sell"
)

func operations() []string { return []string{buying, selling} }

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

// walk reads a whole list, page by page.
func walk[T any](k *trial, target string, limit int) []T {
	separator := "?"
	if strings.Contains(target, "?") {
		separator = "&"
	}
	var all []T
	for cursor, pages := 0, 0; ; pages++ {
		page := listOf[T](k, fmt.Sprintf("%s%slimit=%d&cursor=%d", target, separator, limit, cursor))
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

// rates are all published rates.
func (k *trial) rates(filter string) []rate {
	target := "/v1/rates"
	if filter != "" {
		target += "?" + filter
	}
	return walk[rate](k, target, 200)
}

// currencies are the codes for which something is published, at least one.
func (k *trial) currencies() []string {
	var codes []string
	last := ""
	for _, r := range k.rates("") { // they come by currency (P4)
		if r.Currency != last {
			codes, last = append(codes, r.Currency), r.Currency
		}
	}
	if len(codes) == 0 {
		k.fatalf("the server publishes no rates; the contract can't be seen without any")
	}
	return codes
}

// fault is the body of an error.
type fault struct {
	Error struct {
		Code      string
		Message   string
		RequestID string
		Details   []struct {
			Path    []any
			Message string
		}
	}
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
	for _, d := range f.Error.Details {
		if len(d.Path) > 0 && d.Path[0] == name {
			return
		}
	}
	k.errorf("GET %s: no detail with the path %q: %+v", target, name, f.Error.Details)
}
