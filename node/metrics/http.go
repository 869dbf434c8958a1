package metrics

import (
	"strconv"

	"github.com/tasard/tasard/httpapi"
)

func (c *Config) http(s *emitter) {
	stats, bounds := c.Server.Stats(), httpapi.DurationBounds()
	for _, r := range stats.Requests {
		counter(s, "http_requests_total",
			"Answers by route, method and status. Routes besides operations: site (pages), none (no route), * (OPTIONS *), refused (malformed).",
			r.Count, "route", r.Route, "method", r.Method, "status", statusLabel(r.Status))
	}
	for _, t := range stats.Durations {
		s.histogram("http_request_duration_seconds", "From the complete request until its answer is ready to be sent.",
			bounds[:], t.Counts[:], t.Sum, "route", t.Route)
	}
	for _, e := range stats.Errors {
		counter(s, "http_errors_total", "Error answers by the code in their body.", e.Count, "code", string(e.Code))
	}
	for _, a := range stats.Admissions {
		counter(s, "admissions_total", "Admissions of data requests by outcome, while quotas or keys are enforced.", a.Count, "caller", a.Caller, "outcome", a.Outcome)
	}
	conns := &stats.Connections
	gauge(s, "http_connections", "Open connections.", conns.Open)
	gauge(s, "http_connections_max", "Maximum of open connections.", conns.Max)
	counter(s, "http_connections_accepted_total", "Accepted connections, including those refused afterwards.", conns.Accepted)
	counter(s, "http_connections_refused_total", "Refused connections: their address had reached its limit.", conns.OverClientLimit, "reason", "address")
	counter(s, "http_connections_idle_closed_total", "Idle connections that were closed at the maximum for new ones.", conns.IdleClosed)
	counter(s, "http_accept_failures_total", "Failures to accept a connection for lack of descriptors or memory.", conns.Shortages)
}

func statusLabel(status int) string {
	if status == 0 {
		return "other"
	}
	return strconv.Itoa(status)
}
