package metrics

import (
	"strconv"

	"github.com/tasard/tasard/httpapi"
)

// http emits requests and connections.
func (of *Config) http(s *emitter) {
	stats, bounds := of.Server.Stats(), httpapi.DurationBounds()
	for _, r := range stats.Requests {
		counter(s, "http_requests_total",
			"Answers by route, method and status. Beside operations: site (pages), none (no route), * (OPTIONS *), refused (no HTTP, or overload).",
			r.Count, "route", r.Route, "method", r.Method, "status", statusLabel(r.Status))
	}
	for _, t := range stats.Durations {
		s.histogram("http_request_duration_seconds", "From the whole request until its answer is ready to be sent, waiting for its turn included.",
			bounds[:], t.Counts[:], t.Sum, "route", t.Route)
	}
	for _, e := range stats.Errors {
		counter(s, "http_errors_total", "Errors that were answered, by the code in their body.", e.Count, "code", string(e.Code))
	}
	for _, a := range stats.Admissions {
		counter(s, "admissions_total", "Data requests by what keys and limits said to them, while those are enforced.", a.Count, "caller", a.Caller, "outcome", a.Outcome)
	}
	for _, refused := range stats.Shed {
		counter(s, "http_shed_requests_total", "Requests refused for load: late had waited too long for their turn, full came over a connection beyond the cap.",
			refused.Count, "lane", refused.Priority, "reason", refused.Reason)
	}
	conns := &stats.Connections
	const turnedAway = "Connections that were turned away: their address had its share, or the cap was reached, where they get 503."
	gauge(s, "http_connections", "Open connections.", conns.Open)
	gauge(s, "http_connections_max", "Connections that may be open at once.", conns.Max)
	counter(s, "http_connections_accepted_total", "Connections that were accepted, those that were turned away included.", conns.Accepted)
	counter(s, "http_connections_refused_total", turnedAway, conns.OverClientLimit, "reason", "address")
	counter(s, "http_connections_refused_total", turnedAway, conns.Reserve, "reason", "cap")
	counter(s, "http_accept_shortages_total", "Times that no connection could be accepted for want of descriptors or memory.", conns.Shortages)
}

// statusLabel returns the label of a status.
func statusLabel(status int) string {
	if status == 0 {
		return "other"
	}
	return strconv.Itoa(status)
}
