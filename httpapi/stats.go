package httpapi

import (
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
)

// Stats is what a server has answered since it was made, for whoever watches it. All that is in it comes from closed lists: no request
// can make it longer.
type Stats struct {
	// Requests are the answers, where there were any.
	Requests []RequestCount
	// Times are how long answers took, of all routes.
	Times []RouteTimes
	// Errors are those that were answered, by code: all codes.
	Errors []CodeCount
	// Admissions are what the gate said, all that it can say. What was charged and given back later is counted as well.
	Admissions []AdmissionCount
	// Shed are the requests that were refused for load, by whose turn they were.
	Shed []ShedCount
	// Connections are those of all listeners.
	Connections ConnectionCounts
}

// RequestCount is how many requests got the same answer.
type RequestCount struct {
	// Route is the pattern of an operation, or "site" for pages and documents, "none" where nothing is at the path, "*" for OPTIONS *, and
	// "refused" for what was refused before anybody looked for its route: it was no HTTP, or there was too much load.
	Route  string
	Method string // GET, HEAD, POST, DELETE, OPTIONS or "other"
	Status int    // 0: one that is not told apart
	Count  uint64
}

// RouteTimes is how long answers of a route took: from when the request was there as a whole until its answer was ready to be sent,
// waiting for its turn under load included. It is known of connections of TCP alone.
type RouteTimes struct {
	Route  string
	Counts [timeBounds + 1]uint64 // those up to each of TimeBounds, and last those beyond all
	Sum    time.Duration
}

// CodeCount is how many errors were answered with a code.
type CodeCount struct {
	Code  engine.Code
	Count uint64
}

// AdmissionCount is how often the gate said the same.
type AdmissionCount struct {
	Caller  string // "key" or "anonymous"
	Outcome string // "admitted", the code of a refusal, or "unavailable": the gate could not tell
	Count   uint64
}

// ShedCount is how many requests of a lane were refused for load.
type ShedCount struct {
	Lane   string // "key", "anonymous", "key_costly" or "anonymous_costly": history and conversions are costly
	Reason string // "late": it had waited too long for its turn; "full": its connection was one beyond the cap
	Count  uint64
}

// ConnectionCounts are the connections of a server.
type ConnectionCounts struct {
	Open     int64  // now
	Most     int    // that may be open at once, Limits.ConnsMax
	Accepted uint64 // all, those that were closed at once included
	Crowded  uint64 // closed at once: their address had as many as it may
	Spare    uint64 // beyond the cap: let in to be answered 503, or for the health of the node
	Short    uint64 // times that none could be accepted for want of descriptors or memory
}

// callerNames and laneNames are as in AdmissionCount and ShedCount.
func callerNames() [callerKinds]string { return [callerKinds]string{"anonymous", "key"} }
func laneNames() [conn.Lanes]string {
	return [conn.Lanes]string{"health", "key", "anonymous", "key_costly", "anonymous_costly"}
}
func shedNames() [shedReasons]string { return [shedReasons]string{"late", "full"} }

// Stats adds up what was counted. It holds nobody up: it reads counters while others count on.
func (s *Server) Stats() Stats {
	t := s.tally
	stats := Stats{
		Requests: t.requests(), Times: t.times(), Admissions: t.admissions(),
		Connections: ConnectionCounts{
			Open: t.conns.Open.Load(), Most: s.limits.ConnsMax, Accepted: t.conns.Accepted.Load(), Crowded: t.conns.Crowded.Load(),
			Spare: t.conns.Spare.Load(), Short: t.conns.Short.Load(),
		},
	}
	for i, code := range countedCodes() {
		stats.Errors = append(stats.Errors, CodeCount{code, t.codes[i].Load()})
	}
	for l, lane := range laneNames() {
		for r, reason := range shedNames() {
			if l != int(conn.Health) {
				stats.Shed = append(stats.Shed, ShedCount{lane, reason, t.shed[l][r].Load()})
			}
		}
	}
	return stats
}

func (t *tally) requests() []RequestCount {
	var counts []RequestCount
	for r, name := range t.names {
		for m, method := range countedMethods() {
			for i, status := range countedStatuses() {
				if count := t.sum(r*t.cells + m*t.width + i); count > 0 {
					counts = append(counts, RequestCount{name, method, status, count})
				}
			}
		}
	}
	return counts
}

// sum is a cell of all shards.
func (t *tally) sum(cell int) uint64 {
	total := uint64(0)
	for i := range t.shards {
		total += t.shards[i].requests[cell].Load()
	}
	return total
}

func (t *tally) times() []RouteTimes {
	var all []RouteTimes
	for r, name := range t.names {
		times := RouteTimes{Route: name}
		for i := range t.shards {
			d := &t.shards[i].times[r]
			times.Sum += time.Duration(d.sum.Load())
			for at := range times.Counts {
				times.Counts[at] += d.counts[at].Load()
			}
		}
		all = append(all, times)
	}
	return all
}

func (t *tally) admissions() []AdmissionCount {
	var all []AdmissionCount
	for caller, name := range callerNames() {
		for at, outcome := range admissionOutcomes() {
			count := AdmissionCount{Caller: name, Outcome: outcome}
			for i := range t.shards {
				count.Count += t.shards[i].admissions[caller][at].Load()
			}
			all = append(all, count)
		}
	}
	return all
}
