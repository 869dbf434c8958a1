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

// Every request is counted. Clients choose paths and methods, so the counters are a table of fixed size that holds no
// part of a request. There are several tables (shards), so that processors do not write the same cells.
//
//	for each route: methods × statuses | durations up to each bound and beyond all | sum of durations in ns
//	callers × outcomes | codes | priorities × reasons

// routeID is the row that counts a request: its route, or the reason why it has none.
type routeID uint8

// Rows that are not operations. A request belongs to the first row until its route is known.
const (
	routeRefused   routeID = iota // refused before its route was looked up: malformed, or shed
	routeUnmatched                // no operation or page has the path
	routeAsterisk                 // OPTIONS *
	routeSite                     // pages and documents
)

// routeNames are the names of the rows in Stats: patterns, never the path of a request.
func routeNames() []string {
	names := []string{"refused", "none", "*", "site"}
	for _, r := range routes() {
		names = append(names, r.pattern)
	}
	for _, op := range accountOperations() {
		if !slices.Contains(names, op.pattern) {
			names = append(names, op.pattern)
		}
	}
	return append(names, livezPath, healthzPath, readyzPath)
}

// methodLabels are the methods that are counted separately; the last label is for all others.
func methodLabels() [methodKinds]string {
	return [...]string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost, fasthttp.MethodDelete, fasthttp.MethodOptions, "other"}
}

// methodIndex is the index of a method in methodLabels. It runs on every request.
func methodIndex(method []byte) int {
	if string(method) == fasthttp.MethodGet {
		return 0
	}
	methods := methodLabels()
	if at := slices.Index(methods[:], string(method)); at >= 0 {
		return at
	}
	return methodKinds - 1
}

// statusLabels are the statuses that are counted separately: those of operations and pages. Others are counted as 0.
func statusLabels() []int {
	return []int{
		0, 200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 410, 412, 413, 414, 415, 416, 421,
		422, 429, 431, 500, 501, 502, 503, 504,
	}
}

const (
	statusMax        = 600
	counterShardsMax = 32 // of some 50 KiB
	methodKinds      = 6
	callerKinds      = 2
	outcomeKinds     = 8
)

// counterShard is one of the tables; Stats adds them up.
type counterShard []atomic.Uint64

// counters is everything that a server counts. It is safe for concurrent use.
type counters struct {
	routeNames  []string // of the rows
	routeIDs    map[string]routeID
	statuses    [statusMax]uint8 // index of each in statusLabels
	statusCount int              // length of statusLabels
	answerCells int              // cells of a row that count answers
	shards      []counterShard   // their number is a power of two
	nextState   atomic.Uint32    // shard of the next requestState

	admissionsAt, codesAt, shedAt int // offsets in a shard

	writeTimeout time.Duration // the server's
	conns        conn.Counts
}

func newCounters(writeTimeout time.Duration) *counters {
	statuses := statusLabels()
	t := &counters{writeTimeout: writeTimeout, routeNames: routeNames(), routeIDs: map[string]routeID{}, statusCount: len(statuses)}
	for i, name := range t.routeNames {
		t.routeIDs[name] = routeID(i)
	}
	for i, status := range statuses {
		t.statuses[status] = uint8(i)
	}
	t.answerCells = methodKinds * t.statusCount
	t.admissionsAt = len(t.routeNames) * t.routeCells()
	t.codesAt = t.admissionsAt + callerKinds*outcomeKinds
	t.shedAt = t.codesAt + codesMax
	size, shards := t.shedAt+int(conn.PriorityCount)*int(shedReasons), 1
	for shards < min(2*runtime.GOMAXPROCS(0), counterShardsMax) {
		shards *= 2
	}
	for range shards {
		t.shards = append(t.shards, make(counterShard, size))
	}
	return t
}

func (t *counters) routeCells() int { return t.answerCells + len(durationHistogram{}) }

// nextShard returns the shard that a new requestState counts in. Processors mostly use different shards.
func (t *counters) nextShard() counterShard {
	return t.shards[int(t.nextState.Add(1))&(len(t.shards)-1)]
}

// cell is the index of the cell that counts an answer of a row.
func (t *counters) cell(r routeID, method, status int) int {
	at := 0
	if uint(status) < statusMax {
		at = int(t.statuses[status])
	}
	return int(r)*t.routeCells() + method*t.statusCount + at
}

// countAnswer counts an answer; its connection records the duration.
func (t *counters) countAnswer(ctx *fasthttp.RequestCtx, a *requestState) {
	t.countStatus(a, ctx.Time(), methodIndex(ctx.Method()), ctx.Response.StatusCode())
}

// countStatus counts an answer to a request that was read completely at began.
func (t *counters) countStatus(a *requestState, began time.Time, method, status int) {
	if a.conn != nil {
		a.conn.RecordDuration(began.Add(t.writeTimeout), (*durationHistogram)(a.shard[int(a.route)*t.routeCells()+t.answerCells:]))
	}
	a.shard[t.cell(a.route, method, status)].Add(1)
}

// countCode counts an error answer.
func (t *counters) countCode(code engine.Code) {
	if at := codeIndex(code); at >= 0 {
		t.shards[0][t.codesAt+at].Add(1)
	}
}

// admissionOutcomes are all results of the admitter: admitted, unavailable (it is overloaded, starting, stopping or
// can't write), and the codes of refusals.
func admissionOutcomes() [outcomeKinds]string {
	return [...]string{
		"admitted", "unavailable", string(engine.CodeRateLimited), string(engine.CodeQuotaExceeded), string(engine.CodeMissingKey),
		string(engine.CodeInvalidKey), string(engine.CodeRevokedKey), string(engine.CodeAccountSuspended),
	}
}

// countAdmission counts a result of the admitter. code is "" for an admission.
func (t *counters) countAdmission(a *requestState, keyed bool, code engine.Code) {
	at := t.admissionsAt
	outcomes := admissionOutcomes()
	if keyed {
		at += len(outcomes)
	}
	if code != "" {
		at += max(1, slices.Index(outcomes[:], string(code)))
	}
	a.shard[at].Add(1)
}

// shedReason is the reason why a request was shed, in the order of shedNames.
type shedReason int

const (
	shedLate shedReason = iota // it had waited too long
	shedFull                   // its connection was beyond the cap
	shedReasons
)

// countShed counts a shed request.
func (t *counters) countShed(lane conn.Priority, reason shedReason) {
	t.shards[0][t.shedAt+int(lane)*int(shedReasons)+int(reason)].Add(1)
}

// durationHistogram counts durations: those up to each bound, those beyond all, and their sum in ns. It is read while
// others add, so that the sum may not match the counts.
type durationHistogram [durationBoundCount + 2]atomic.Uint64

// durationBoundCount is the number of DurationBounds.
const durationBoundCount = 18

// DurationBounds are the upper bounds of RouteDurations: most answers take some ten microseconds, and none may take
// more than seconds.
func DurationBounds() [durationBoundCount]time.Duration {
	const us, ms = time.Microsecond, time.Millisecond
	return [durationBoundCount]time.Duration{
		10 * us, 20 * us, 50 * us, 100 * us, 200 * us, 500 * us, 1 * ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms, 200 * ms,
		500 * ms, time.Second, 2 * time.Second, 5 * time.Second,
	}
}

// Add counts a duration.
func (d *durationHistogram) Add(took time.Duration) {
	took = max(0, took)
	at, bound := 0, 10*time.Microsecond
	for at < durationBoundCount && took > bound {
		at++
		if bound *= 2; at%3 == 2 { // DurationBounds()[at] from its predecessor: 1, 2, 5, 10, …
			bound += bound / 4
		}
	}
	d[at].Add(1)
	d[durationBoundCount+1].Add(uint64(took))
}
