package httpapi

import (
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
)

// Stats counts the answers of a server since its creation, for monitoring. All names come from closed lists: no request
// can make it longer.
type Stats struct {
	// Requests are the answers; combinations without an answer are left out.
	Requests []RequestCount
	// Durations are the durations of answers, for every route.
	Durations []RouteDurations
	// Errors are the error answers, for every code.
	Errors []CodeCount
	// Admissions are the results of the admitter, for every possible result. They include charges that were refunded.
	Admissions []AdmissionCount
	// Shed are the shed requests, by priority and reason.
	Shed []ShedCount
	// Connections are the connections of all listeners.
	Connections ConnectionCounts
}

// RequestCount is the number of answers with the same route, method and status.
type RequestCount struct {
	// Route is the pattern of an operation, or "site" for pages and documents, "none" for unknown paths, "*" for
	// OPTIONS *, and "refused" for requests that were malformed or shed before the route was looked up.
	Route  string
	Method string // GET, HEAD, POST, DELETE, OPTIONS or "other"
	Status int    // 0: a status that is not counted separately
	Count  uint64
}

// RouteDurations are the durations of the answers of a route, from the end of reading the request until the answer was
// ready to be sent. They include the wait for a slot. Only TCP connections are measured.
type RouteDurations struct {
	Route  string
	Counts [durationBoundCount + 1]uint64 // those up to each of DurationBounds; the last counts those beyond all
	Sum    time.Duration
}

// CodeCount is the number of error answers with a code.
type CodeCount struct {
	Code  engine.Code
	Count uint64
}

// AdmissionCount is the number of times that the admitter gave a result.
type AdmissionCount struct {
	Caller  string // "key" or "anonymous"
	Outcome string // "admitted", the code of a refusal, or "unavailable": the admitter could not tell
	Count   uint64
}

// ShedCount is the number of requests of a priority that were shed for a reason.
type ShedCount struct {
	Priority string // "key", "anonymous", "key_costly" or "anonymous_costly": history and conversions are costly
	Reason   string // "late": it had waited too long; "full": its connection was one beyond the cap
	Count    uint64
}

// ConnectionCounts are the connections of a server.
type ConnectionCounts struct {
	Open            int64  // now
	Max             int    // that may be open at once, Limits.ConnsMax
	Accepted        uint64 // all, those that were closed at once included
	OverClientLimit uint64 // closed at once: their address had as many as it may
	Reserve         uint64 // beyond the cap: let in to be answered 503, or for the health of the node
	Shortages       uint64 // times that none could be accepted for want of descriptors or memory
}

// callerNames, priorityNames and shedNames are as in AdmissionCount and ShedCount.
func callerNames() [callerKinds]string { return [...]string{"anonymous", "key"} }
func priorityNames() [conn.PriorityCount]string {
	return [...]string{"health", "key", "anonymous", "key_costly", "anonymous_costly"}
}
func shedNames() [shedReasons]string { return [...]string{"late", "full"} }

// Stats adds up what was counted. It holds nothing up: it reads counters while others count on.
func (s *Server) Stats() Stats {
	t := s.counters
	cells := make([]uint64, len(t.shards[0]))
	for _, shard := range t.shards {
		for i := range shard {
			cells[i] += shard[i].Load()
		}
	}
	next := func() uint64 { // in the order of the table
		count := cells[0]
		cells = cells[1:]
		return count
	}
	var stats Stats
	for _, name := range t.routeNames {
		for _, method := range methodLabels() {
			for _, status := range statusLabels() {
				if count := next(); count > 0 {
					stats.Requests = append(stats.Requests, RequestCount{name, method, status, count})
				}
			}
		}
		times := RouteDurations{Route: name}
		for at := range times.Counts {
			times.Counts[at] = next()
		}
		times.Sum = time.Duration(next()) //nolint:gosec // G115: nanoseconds, of answers that take seconds at most
		stats.Durations = append(stats.Durations, times)
	}
	for _, caller := range callerNames() {
		for _, outcome := range admissionOutcomes() {
			stats.Admissions = append(stats.Admissions, AdmissionCount{caller, outcome, next()})
		}
	}
	for _, code := range codes() {
		stats.Errors = append(stats.Errors, CodeCount{code.code, next()})
	}
	for lane, name := range priorityNames() {
		for _, reason := range shedNames() {
			if count := next(); lane != int(conn.Health) {
				stats.Shed = append(stats.Shed, ShedCount{name, reason, count})
			}
		}
	}
	c := &t.conns
	stats.Connections = ConnectionCounts{c.Open.Load(), s.config.Limits.ConnsMax, c.Accepted.Load(), c.OverClientLimit.Load(), c.Reserve.Load(), c.Shortages.Load()}
	return stats
}
