package httpapi

import (
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
)

// Stats is what a server has answered since it was made, for those who watch it. All that is in it comes from
// closed lists: no request can make it longer.
type Stats struct {
	// Requests are the answers, where there were any.
	Requests []RequestCount
	// Durations are how long answers took, of all routes.
	Durations []RouteDurations
	// Errors are those that were answered, by code: all codes.
	Errors []CodeCount
	// Admissions are the results of the admitter, all that it can give. Charges that were refunded are counted as well.
	Admissions []AdmissionCount
	// Shed are the requests that were refused for load, by priority.
	Shed []ShedCount
	// Connections are those of all listeners.
	Connections ConnectionCounts
}

// RequestCount is how many requests got the same answer.
type RequestCount struct {
	// Route is the pattern of an operation, or "site" for pages and documents, "none" where nothing is at the path,
	// "*" for OPTIONS *, and "refused" for what was refused before anybody looked for its route: it was no HTTP, or
	// there was too much load.
	Route  string
	Method string // GET, HEAD, POST, DELETE, OPTIONS or "other"
	Status int    // 0: one that is not told apart
	Count  uint64
}

// RouteDurations is how long answers of a route took: from when the request was there as a whole until its answer
// was ready to be sent, waiting for its turn under load included. It is known of connections of TCP alone.
type RouteDurations struct {
	Route  string
	Counts [durationBoundCount + 1]uint64 // those up to each of TimeBounds, and last those beyond all
	Sum    time.Duration
}

// CodeCount is how many errors were answered with a code.
type CodeCount struct {
	Code  engine.Code
	Count uint64
}

// AdmissionCount is how often the admitter gave a result.
type AdmissionCount struct {
	Caller  string // "key" or "anonymous"
	Outcome string // "admitted", the code of a refusal, or "unavailable": the admitter could not tell
	Count   uint64
}

// ShedCount is how many requests of a priority were refused for load.
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
