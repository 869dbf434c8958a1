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

// The tally counts every request. What is counted must be cheap, because every request pays for it, and bounded, because callers choose
// paths, methods and codings: so it is a table of fixed size, and nothing of a request gets into it. Each connection counts in one of a few
// shards, so that processors do not wait for each other's cells.
//
//	of each row: methods × statuses, time bounds and those beyond, sum of times in ns | callers × outcomes | codes | lanes × reasons

// row is where a request is counted: its route, or why it has none.
type row uint8

// The rows that are no operation. The first is that of a request about which nothing is known yet.
const (
	rowRefused  row = iota // refused before its route was looked for: it is no HTTP, or there is more load than can be served
	rowNone                // nothing is at the path
	rowAsterisk            // OPTIONS *
	rowSite                // pages and documents
)

// rowNames are the routes as they are shown: never the path of a request.
func rowNames() []string {
	names := []string{"refused", "none", "*", "site"}
	for _, r := range routes() {
		names = append(names, r.pattern)
	}
	for _, op := range accountOperations() {
		if !slices.Contains(names, op.pattern) {
			names = append(names, op.pattern)
		}
	}
	return append(names, livePath, liveOtherPath, readyPath)
}

// countedMethods are those that are told apart; all others are the last.
func countedMethods() [methodKinds]string {
	return [...]string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost, fasthttp.MethodDelete, fasthttp.MethodOptions, "other"}
}

// methodAt is the place of a method in countedMethods. It runs on every request.
func methodAt(method []byte) int {
	if string(method) == fasthttp.MethodGet {
		return 0
	}
	methods := countedMethods()
	if at := slices.Index(methods[:], string(method)); at >= 0 {
		return at
	}
	return methodKinds - 1
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
	tallyShardsMax = 16 // of some 50 KiB
	methodKinds    = 6
	callerKinds    = 2
	outcomeKinds   = 8
)

// shard is one of the tables that are added up.
type shard []atomic.Uint64

// tally is everything that a server counts. It is safe for concurrent use.
type tally struct {
	names    []string // of rows
	rows     map[string]row
	statuses [statusMax]uint8 // place of each in countedStatuses
	width    int              // statuses
	answers  int              // cells of a row for answers
	shards   []shard          // a power of two
	next     atomic.Uint32    // shard of the next connection

	admissionsAt, codesAt, shedAt int // where in a shard

	writeTimeout time.Duration // the server's
	conns        conn.Counts
}

func newTally(writeTimeout time.Duration) *tally {
	statuses := countedStatuses()
	t := &tally{writeTimeout: writeTimeout, names: rowNames(), rows: map[string]row{}, width: len(statuses)}
	for i, name := range t.names {
		t.rows[name] = row(i)
	}
	for i, status := range statuses {
		t.statuses[status] = uint8(i)
	}
	t.answers = methodKinds * t.width
	t.admissionsAt = len(t.names) * t.rowCells()
	t.codesAt = t.admissionsAt + callerKinds*outcomeKinds
	t.shedAt = t.codesAt + codesMax
	size, shards := t.shedAt+int(conn.Lanes)*int(shedReasons), 1
	for shards < min(runtime.GOMAXPROCS(0), tallyShardsMax) {
		shards *= 2
	}
	for range shards {
		t.shards = append(t.shards, make(shard, size))
	}
	return t
}

func (t *tally) rowCells() int { return t.answers + len(durations{}) }

// shard is where a connection counts.
func (t *tally) shard() shard { return t.shards[int(t.next.Add(1))&(len(t.shards)-1)] }

// shardOf is where a request counts: in the shard of its connection.
func (t *tally) shardOf(a *asked) shard {
	if a.on == nil {
		return t.shards[0]
	}
	return a.on.shard
}

// cell is where a request of a row is counted.
func (t *tally) cell(r row, method, status int) int {
	at := 0
	if uint(status) < statusMax {
		at = int(t.statuses[status])
	}
	return int(r)*t.rowCells() + method*t.width + at
}

// count counts an answer, and lets its connection measure it.
func (t *tally) count(ctx *fasthttp.RequestCtx, a *asked) {
	shard := t.shardOf(a)
	if a.conn != nil {
		a.conn.Time(ctx.Time().Add(t.writeTimeout), (*durations)(shard[int(a.row)*t.rowCells()+t.answers:]))
	}
	shard[t.cell(a.row, methodAt(ctx.Method()), ctx.Response.StatusCode())].Add(1)
}

// countCode counts an error that was answered.
func (t *tally) countCode(code engine.Code) {
	if at := codeAt(code); at >= 0 {
		t.shards[0][t.codesAt+at].Add(1)
	}
}

// admissionOutcomes are all that the gate may say: an admission, that it could not tell (it is overloaded, starts, stops, or can't write),
// and the codes of refusals.
func admissionOutcomes() [outcomeKinds]string {
	return [...]string{
		"admitted", "unavailable", string(engine.CodeRateLimited), string(engine.CodeQuotaExceeded), string(engine.CodeMissingKey),
		string(engine.CodeInvalidKey), string(engine.CodeRevokedKey), string(engine.CodeAccountSuspended),
	}
}

// countAdmission counts what the gate said. code is "" for an admission.
func (t *tally) countAdmission(a *asked, keyed bool, code engine.Code) {
	at := t.admissionsAt
	outcomes := admissionOutcomes()
	if keyed {
		at += len(outcomes)
	}
	if code != "" {
		at += max(1, slices.Index(outcomes[:], string(code)))
	}
	t.shardOf(a)[at].Add(1)
}

// shedReason is why a request was refused for load, in the order of shedNames.
type shedReason int

const (
	shedLate shedReason = iota // it had waited too long for its turn
	shedFull                   // its connection had a spare place, beyond the cap
	shedReasons
)

// countShed counts a request that was refused for load.
func (t *tally) countShed(lane conn.Lane, reason shedReason) {
	t.shards[0][t.shedAt+int(lane)*int(shedReasons)+int(reason)].Add(1)
}

// durations counts how long something took: up to each bound, beyond all, and the sum in ns. Reading and adding go on at once, so that sum
// and counts may be of different moments.
type durations [timeBounds + 2]atomic.Uint64

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
		if bound *= 2; at%3 == 2 { // TimeBounds()[at] by the one before it: 1, 2, 5, 10, …
			bound += bound / 4
		}
	}
	d[at].Add(1)
	d[timeBounds+1].Add(uint64(took))
}
