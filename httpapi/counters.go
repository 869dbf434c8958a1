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

// Every request is counted. Clients choose paths and methods, so the counters form a table of fixed size that stores no
// part of a request. There are several such tables, called shards, so that processors do not write the same memory:
//
//	a row for each route: methods × statuses | durations up to each bound, and longer | sum of durations in ns
//	then, once: with or without a key × results of the check of key and quota | error codes

// routeID is the row of the table in which a request is counted.
type routeID uint8

// Rows for requests without an operation.
const (
	routeRefused   routeID = iota // malformed: rejected before the router was called
	routeUnmatched                // neither an operation nor a page has the path
	routeAsterisk                 // OPTIONS *
	routeSite                     // pages and documents
)

// routeNames returns the names of the rows in Stats.
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

// methodLabels returns the methods that are counted separately. The last label is for all other methods.
func methodLabels() [methodKinds]string {
	return [...]string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost, fasthttp.MethodDelete, fasthttp.MethodOptions, "other"}
}

// methodIndex returns the index of a method in methodLabels. It tries GET first, because almost all requests are GET.
func methodIndex(method []byte) int {
	if string(method) == fasthttp.MethodGet {
		return 0
	}
	methods := methodLabels()
	if index := slices.Index(methods[:], string(method)); index >= 0 {
		return index
	}
	return methodKinds - 1
}

// statusLabels returns the statuses that are counted separately. All other statuses are counted as 0.
func statusLabels() []int {
	return []int{
		0, 200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 410, 412, 413, 414, 415, 416, 421,
		422, 429, 431, 500, 501, 502, 503, 504,
	}
}

const (
	statusMax        = 600
	counterShardsMax = 32 // a shard has about 50 KiB
	methodKinds      = 6
	callerKinds      = 2
	outcomeKinds     = 8
)

// counterShard is one table. Stats adds up the shards.
type counterShard []atomic.Uint64

// counters are the counters of a server. They are safe for concurrent use.
type counters struct {
	routeNames  []string // by routeID
	routeIDs    map[string]routeID
	statuses    [statusMax]uint8 // by status: its index in statusLabels
	statusCount int              // length of statusLabels
	answerCells int              // number of method × status cells in a row
	shards      []counterShard   // the number of shards is a power of two
	nextState   atomic.Uint32    // for nextShard

	admissionsOffset, codesOffset int // index of the first cell of these counts in a shard

	writeTimeout time.Duration // Limits.WriteTimeout
	conns        conn.Counts
}

func newCounters(writeTimeout time.Duration, oneShard bool) *counters {
	statuses := statusLabels()
	t := &counters{writeTimeout: writeTimeout, routeNames: routeNames(), routeIDs: map[string]routeID{}, statusCount: len(statuses)}
	for i, name := range t.routeNames {
		t.routeIDs[name] = routeID(i)
	}
	for i, status := range statuses {
		t.statuses[status] = uint8(i)
	}
	t.answerCells = methodKinds * t.statusCount
	t.admissionsOffset = len(t.routeNames) * t.routeCells()
	t.codesOffset = t.admissionsOffset + callerKinds*outcomeKinds
	size, shards := t.codesOffset+codesMax, 1
	for !oneShard && shards < min(2*runtime.GOMAXPROCS(0), counterShardsMax) {
		shards *= 2
	}
	for range shards {
		t.shards = append(t.shards, make(counterShard, size))
	}
	return t
}

func (t *counters) routeCells() int { return t.answerCells + len(durationHistogram{}) }

// nextShard returns the shard for a new requestState. Processors then mostly write to different shards, because
// sync.Pool usually keeps a requestState on one processor.
func (t *counters) nextShard() counterShard {
	return t.shards[int(t.nextState.Add(1))&(len(t.shards)-1)]
}

// cell returns the index in a shard of the cell for a route, a method index and a status.
func (t *counters) cell(r routeID, method, status int) int {
	statusIndex := 0
	if uint(status) < statusMax {
		statusIndex = int(t.statuses[status])
	}
	return int(r)*t.routeCells() + method*t.statusCount + statusIndex
}

// countAnswer counts the response in ctx.
func (t *counters) countAnswer(ctx *fasthttp.RequestCtx, a *requestState) {
	t.countStatus(a, ctx.Time(), methodIndex(ctx.Method()), ctx.Response.StatusCode())
}

// countStatus counts a response. began is when the request had been read completely. method is an index in
// methodLabels. The connection adds the duration to the histogram later (conn.Conn.RecordDuration).
func (t *counters) countStatus(a *requestState, began time.Time, method, status int) {
	if a.conn != nil {
		t.durations(a).Add(time.Since(began)) //nolint:forbidigo // in real time, like the HTTP library
	}
	a.shard[t.cell(a.route, method, status)].Add(1)
}

func (t *counters) durations(a *requestState) *durationHistogram {
	return (*durationHistogram)(a.shard[int(a.route)*t.routeCells()+t.answerCells:])
}

func (t *counters) countCode(code engine.Code) {
	if index := codeIndex(code); index >= 0 {
		t.shards[0][t.codesOffset+index].Add(1)
	}
}

// admissionOutcomes returns all results of Config.Admitter: "admitted", "unavailable", and the codes of rejections. The
// admitter is unavailable while it is overloaded, starting or stopping, or cannot write.
func admissionOutcomes() [outcomeKinds]string {
	return [...]string{
		"admitted", "unavailable", string(engine.CodeRateLimited), string(engine.CodeQuotaExceeded), string(engine.CodeMissingKey),
		string(engine.CodeInvalidKey), string(engine.CodeRevokedKey), string(engine.CodeAccountSuspended),
	}
}

// countAdmission counts a result of Config.Admitter, which checks keys and quotas. code is "" if the request was
// admitted. A code that is not in admissionOutcomes counts as unavailable.
func (t *counters) countAdmission(a *requestState, keyed bool, code engine.Code) {
	index := t.admissionsOffset
	outcomes := admissionOutcomes()
	if keyed {
		index += len(outcomes)
	}
	if code != "" {
		index += max(1, slices.Index(outcomes[:], string(code)))
	}
	a.shard[index].Add(1)
}

// durationHistogram has a count for each of DurationBounds, a count of longer durations, and the sum of all durations
// in nanoseconds. While durations are added, a reader may see a sum that does not match the counts.
type durationHistogram [durationBoundCount + 2]atomic.Uint64

const durationBoundCount = 18

// DurationBounds returns the upper bounds of RouteDurations.
func DurationBounds() [durationBoundCount]time.Duration {
	const us, ms = time.Microsecond, time.Millisecond
	return [durationBoundCount]time.Duration{
		10 * us, 20 * us, 50 * us, 100 * us, 200 * us, 500 * us, 1 * ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms, 200 * ms,
		500 * ms, time.Second, 2 * time.Second, 5 * time.Second,
	}
}

// Add counts a duration and adds it to the sum.
func (d *durationHistogram) Add(elapsed time.Duration) {
	elapsed = max(0, elapsed)
	index, bound := 0, 10*time.Microsecond // bound is DurationBounds()[index]
	for index < durationBoundCount && elapsed > bound {
		index++
		if bound *= 2; index%3 == 2 { // 10, 20, 50, 100, …
			bound += bound / 4
		}
	}
	d[index].Add(1)
	d[durationBoundCount+1].Add(uint64(elapsed))
}
