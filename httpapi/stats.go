package httpapi

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// Stats has the counts of a server since its creation, for monitoring. Its size is limited, because all names in it are
// from fixed lists.
type Stats struct {
	// Requests are the requests by route, method and status, without zero counts.
	Requests []RequestCount
	// Durations are the response times of every route.
	Durations []RouteDurations
	// Errors are the error responses by code, including zero counts.
	Errors []CodeCount
	// Admissions are the results of Config.Admitter, which checks keys and quotas, including zero counts. A request
	// that was admitted and then refunded in the quota counts too.
	Admissions []AdmissionCount
	// Connections are the connections of all listeners.
	Connections ConnectionCounts
}

// RequestCount is the number of requests with the same route, method and status.
type RequestCount struct {
	// Route is the pattern of an operation or one of four other names. "site" means pages and documents, "none" unknown
	// paths, "*" OPTIONS *, and "refused" requests that were malformed.
	Route  string
	Method string // GET, HEAD, POST, DELETE, OPTIONS or "other"
	Status int    // 0: a status that is not counted separately
	Count  uint64
}

// RouteDurations are the response times of a route, from the end of the request until the response is ready to be sent.
// Only TCP connections are measured.
type RouteDurations struct {
	Route string
	// Counts has the number of responses for each of DurationBounds: those that took longer than the previous bound and
	// at most this one. The last element is the number of those that took longer than all bounds.
	Counts [durationBoundCount + 1]uint64
	Sum    time.Duration
}

// CodeCount is the number of error responses with a code.
type CodeCount struct {
	Code  engine.Code
	Count uint64
}

// AdmissionCount is the number of times that Config.Admitter gave a result.
type AdmissionCount struct {
	Caller  string // "key" or "anonymous"
	Outcome string // "admitted", the code of the rejection, or "unavailable" if the admitter could not decide
	Count   uint64
}

// ConnectionCounts are the connections of a server.
type ConnectionCounts struct {
	Open            int64  // connections that are open now
	Max             int    // Limits.ConnsMax
	Accepted        uint64 // all accepted connections, including those that were closed at once
	OverClientLimit uint64 // closed at once, because the client already had Limits.ConnsPerClient connections
	IdleClosed      uint64 // closed while idle, because a new connection came when Max was reached
	Shortages       uint64 // times that accept failed because descriptors or memory ran out
}

// callerNames returns the values of AdmissionCount.Caller in the order of their cells in counterShard, a table of
// counters.
func callerNames() [callerKinds]string { return [...]string{"anonymous", "key"} }
