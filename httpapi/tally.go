package httpapi

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
)

// The tally counts every request. What is counted must be cheap, because everybody pays for it, and bounded, because callers choose
// paths, methods and codings: so it is a table of fixed size, a cell for each row, method and status that there can be, and nothing of a
// request gets into it. Each connection counts in one of a few shards, so that processors do not wait for each other's cells.

// row is where a request is counted: its route, or why it has none.
type row uint8

// The rows that are no operation. The first is that of a request about which nothing is known yet.
const (
	rowRefused  row = iota // refused before anybody looked for its route: it is no HTTP, or there is more load than can be served
	rowNone                // nothing is at the path
	rowAsterisk            // OPTIONS *
	rowSite                // pages and documents
	rowsFixed
)

// rowNames are the routes as they are shown: never the path of a request.
func rowNames() []string {
	names := []string{"refused", "none", "*", "site"}
	for _, r := range routes() {
		names = append(names, r.name())
	}
	for _, op := range accountOperations() {
		if !slices.Contains(names, op.pattern) {
			names = append(names, op.pattern)
		}
	}
	return append(names, livePath, liveOtherPath, readyPath)
}

// countedMethods are those that are told apart; all others are the last.
func countedMethods() []string {
	return []string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost, fasthttp.MethodDelete, fasthttp.MethodOptions, "other"}
}

// methodAt is the place of a method in countedMethods. It runs on every request.
func methodAt(method []byte) int {
	switch string(method) {
	case fasthttp.MethodGet:
		return 0
	case fasthttp.MethodHead:
		return 1
	case fasthttp.MethodPost:
		return 2
	case fasthttp.MethodDelete:
		return 3
	case fasthttp.MethodOptions:
		return 4
	}
	return 5
}

// countedStatuses are those that are told apart: all that operations answer, and what pages may. Any other is counted as 0.
func countedStatuses() []int {
	return []int{
		0, 200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 410, 412, 413, 414, 415, 416, 421,
		422, 429, 431, 500, 501, 502, 503, 504,
	}
}

const (
	statusMax      = 600
	tallyShardsMax = 16 // of some 40 KiB
)

// tally is everything that a server counts. It is safe for concurrent use.
type tally struct {
	names    []string // of rows
	rows     map[string]row
	statuses [statusMax]uint8 // place of each in countedStatuses
	cells    int              // of a row
	width    int              // statuses
	shards   []tallyShard     // a power of two
	next     atomic.Uint32    // shard of the next connection

	writeTimeout time.Duration // the server's

	codes []atomic.Uint64 // by countedCodes
	shed  [conn.Lanes][shedReasons]atomic.Uint64
	conns conn.Counts
}

// tallyShard is one of the tables that are added up.
type tallyShard struct {
	requests   []atomic.Uint64 // by row, method and status
	times      []durations     // by row
	admissions [callerKinds][]atomic.Uint64
}

func newTally(writeTimeout time.Duration) *tally {
	names, statuses := rowNames(), countedStatuses()
	t := &tally{writeTimeout: writeTimeout, names: names, rows: map[string]row{}, width: len(statuses), cells: len(countedMethods()) * len(statuses)}
	for i, name := range names {
		t.rows[name] = row(i)
	}
	for i, status := range statuses {
		t.statuses[status] = uint8(i)
	}
	shards := 1
	for shards < min(runtime.GOMAXPROCS(0), tallyShardsMax) {
		shards *= 2
	}
	t.shards = make([]tallyShard, shards)
	for i := range t.shards {
		s := &t.shards[i]
		s.requests, s.times = make([]atomic.Uint64, len(names)*t.cells), make([]durations, len(names))
		for caller := range s.admissions {
			s.admissions[caller] = make([]atomic.Uint64, len(admissionOutcomes()))
		}
	}
	t.codes = make([]atomic.Uint64, len(countedCodes()))
	return t
}

// shard is where a connection counts.
func (t *tally) shard() *tallyShard {
	return &t.shards[int(t.next.Add(1))&(len(t.shards)-1)]
}

// cell is where a request of a row is counted.
func (t *tally) cell(r row, method, status int) int {
	at := 0
	if uint(status) < statusMax {
		at = int(t.statuses[status])
	}
	return int(r)*t.cells + method*t.width + at
}

// count counts an answer, and lets its connection measure it.
func (t *tally) count(ctx *fasthttp.RequestCtx, a *asked) {
	shard := &t.shards[0]
	if a.conn != nil {
		shard = a.on.shard
		a.conn.Time(ctx.Time().Add(t.writeTimeout), &shard.times[a.row])
	}
	shard.requests[t.cell(a.row, methodAt(ctx.Method()), ctx.Response.StatusCode())].Add(1)
}

// countUnread counts the answer to a request that the library could not read.
func (t *tally) countUnread(ctx *fasthttp.RequestCtx) {
	t.shards[0].requests[t.cell(rowRefused, methodAt(ctx.Method()), ctx.Response.StatusCode())].Add(1)
}

// countedCodes are the codes of errors (E1), in its order.
func countedCodes() []engine.Code {
	return []engine.Code{
		engine.CodeInvalidParameters, engine.CodeMalformedRequest, engine.CodeRequestTimeout, engine.CodeHeadersTooLarge,
		engine.CodeMissingKey, engine.CodeInvalidKey, engine.CodeRevokedKey, engine.CodeAccountSuspended, engine.CodeInvalidCode,
		engine.CodeInvalidSession, engine.CodeNotFound, engine.CodeInstitutionNotFound, engine.CodeMethodNotAllowed, engine.CodeKeyLimitReached,
		engine.CodePayloadTooLarge, engine.CodeUnsupportedMediaType, engine.CodeRateLimited, engine.CodeQuotaExceeded,
		engine.CodeRequestedTooSoon, engine.CodeInternalError, engine.CodeDataUnavailable, engine.CodeOverloaded, engine.CodeReadOnly,
	}
}

// countCode counts an error that was answered.
func (t *tally) countCode(code engine.Code) {
	if at := slices.Index(countedCodes(), code); at >= 0 {
		t.codes[at].Add(1)
	}
}

// callerKind is in whose name a data request was admitted or refused.
type callerKind uint8

const (
	callerAnonymous callerKind = iota
	callerKeyed
	callerKinds
)

// Outcomes of an admission. Behind these come the codes of refusals.
const (
	outcomeAdmitted    = "admitted"
	outcomeUnavailable = "unavailable" // the gate could not tell: it is overloaded, starts, stops, or can't write
)

// admissionOutcomes are all that the gate may say.
func admissionOutcomes() []string {
	return []string{
		outcomeAdmitted, outcomeUnavailable, string(engine.CodeRateLimited), string(engine.CodeQuotaExceeded), string(engine.CodeMissingKey),
		string(engine.CodeInvalidKey), string(engine.CodeRevokedKey), string(engine.CodeAccountSuspended),
	}
}

// countAdmission counts what the gate said. code is "" for an admission.
func (t *tally) countAdmission(a *asked, keyed bool, code engine.Code) {
	shard, caller, at := &t.shards[0], callerAnonymous, 0
	if a.conn != nil {
		shard = a.on.shard
	}
	if keyed {
		caller = callerKeyed
	}
	if code != "" {
		at = max(1, slices.Index(admissionOutcomes(), string(code)))
	}
	shard.admissions[caller][at].Add(1)
}

// shedReason is why a request was refused for load.
type shedReason uint8

const (
	shedLate shedReason = iota // it had waited too long for its turn
	shedFull                   // its connection had a spare place, beyond the cap
	shedReasons
)

// durations counts how long something took. Reading and adding go on at once, so that sum and counts may be of different moments.
type durations struct {
	counts [timeBounds + 1]atomic.Uint64
	sum    atomic.Int64 // ns
}

// timeBounds is how many upper bounds there are for the time of an answer.
const timeBounds = 18

// TimeBounds are the upper bounds of RouteTimes: most answers take some ten microseconds, and none may take more than seconds.
func TimeBounds() [timeBounds]time.Duration {
	const us, ms = time.Microsecond, time.Millisecond
	return [timeBounds]time.Duration{
		10 * us, 20 * us, 50 * us, 100 * us, 200 * us, 500 * us, 1 * ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms, 200 * ms,
		500 * ms, time.Second, 2 * time.Second, 5 * time.Second,
	}
}

// Add counts one.
func (d *durations) Add(took time.Duration) {
	took = max(0, took)
	at, bound := 0, 10*time.Microsecond
	for at < timeBounds && took > bound {
		at++
		bound = nextBound(at, bound)
	}
	d.counts[at].Add(1)
	d.sum.Add(int64(took))
}

// nextBound is TimeBounds()[at] by the one before it: 1, 2, 5, 10, …
func nextBound(at int, before time.Duration) time.Duration {
	if at%3 == 2 {
		return before * 5 / 2
	}
	return 2 * before
}
