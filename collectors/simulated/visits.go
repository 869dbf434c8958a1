package simulated

import (
	"maps"
	"net/http"
	"slices"
	"sync"
)

const requestsKept = 10_000 // the newest ones

// Visit is what a host saw of its visitors.
type Visit struct {
	Host       string
	Requests   int
	Together   int      // requests at the same time, at most
	UserAgents []string // each once
}

// Seen is one request.
type Seen struct {
	Host, Method, Path string
	Header             http.Header // shared; not to be changed
}

// visits is the log of requests.
type visits struct {
	mu    sync.Mutex
	hosts map[string]*host
	all   []Seen
}

type host struct {
	requests, now, together int
	agents                  map[string]bool
}

// enter notes a request; what it returns notes its end.
func (v *visits) enter(name string, r *http.Request) (leave func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	h, ok := v.hosts[name]
	if !ok {
		h = &host{agents: map[string]bool{}}
		v.hosts[name] = h
	}
	h.requests++
	h.now++
	h.together = max(h.together, h.now)
	h.agents[r.UserAgent()] = true
	if len(v.all) == requestsKept {
		v.all = slices.Delete(v.all, 0, requestsKept/2)
	}
	v.all = append(v.all, Seen{Host: name, Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header})
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		h.now--
	}
}

// Visits is what each host saw, by name.
func (s *Site) Visits() []Visit {
	s.visits.mu.Lock()
	defer s.visits.mu.Unlock()
	var all []Visit
	for _, name := range slices.Sorted(maps.Keys(s.visits.hosts)) {
		h := s.visits.hosts[name]
		all = append(all, Visit{name, h.requests, h.together, slices.Sorted(maps.Keys(h.agents))})
	}
	return all
}

// Requests are the requests so far, oldest first; of very many only the newest.
func (s *Site) Requests() []Seen {
	s.visits.mu.Lock()
	defer s.visits.mu.Unlock()
	return slices.Clone(s.visits.all)
}
