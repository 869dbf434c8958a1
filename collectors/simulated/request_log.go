package simulated

import (
	"maps"
	"net/http"
	"slices"
	"sync"
)

const requestsKept = 10_000 // the newest ones

// HostStats is what a host saw of its visitors.
type HostStats struct {
	Host        string
	Requests    int
	InFlightMax int      // requests at the same time, at most
	UserAgents  []string // each once
}

// LoggedRequest is one request.
type LoggedRequest struct {
	Host, Method, Path string
	Header             http.Header // shared; not to be changed
}

// requestLog is the log of requests.
type requestLog struct {
	mu    sync.Mutex
	hosts map[string]*hostRequests
	all   []LoggedRequest
}

type hostRequests struct {
	requests, inFlight, inFlightMax int
	agents                          map[string]bool
}

// begin notes a request; what it returns notes its end.
func (v *requestLog) begin(name string, r *http.Request) (leave func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	h, ok := v.hosts[name]
	if !ok {
		h = &hostRequests{agents: map[string]bool{}}
		v.hosts[name] = h
	}
	h.requests++
	h.inFlight++
	h.inFlightMax = max(h.inFlightMax, h.inFlight)
	h.agents[r.UserAgent()] = true
	if len(v.all) == requestsKept {
		v.all = slices.Delete(v.all, 0, requestsKept/2)
	}
	v.all = append(v.all, LoggedRequest{Host: name, Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header})
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		h.inFlight--
	}
}

// HostStats is what each host saw, by name.
func (s *Site) HostStats() []HostStats {
	s.requestLog.mu.Lock()
	defer s.requestLog.mu.Unlock()
	var all []HostStats
	for _, name := range slices.Sorted(maps.Keys(s.requestLog.hosts)) {
		h := s.requestLog.hosts[name]
		all = append(all, HostStats{name, h.requests, h.inFlightMax, slices.Sorted(maps.Keys(h.agents))})
	}
	return all
}

// Requests are the requests so far, oldest first; of very many only the newest.
func (s *Site) Requests() []LoggedRequest {
	s.requestLog.mu.Lock()
	defer s.requestLog.mu.Unlock()
	return slices.Clone(s.requestLog.all)
}
