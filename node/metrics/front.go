package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tasard/tasard/httpapi"
)

// frontMetrics are what callers asked and got.
type frontMetrics struct {
	front interface{ Stats() httpapi.Stats }

	requests, duration, errors, admissions, shed, open, most, accepted, refused, shortages family
}

func newFrontMetrics(front interface{ Stats() httpapi.Stats }) *frontMetrics {
	return &frontMetrics{
		front: front,
		requests: counterFamily("http_requests_total",
			"Answers by route, method and status. Beside operations: site (pages), none (no route), * (OPTIONS *), refused (no HTTP, or overload).", "route", "method", "status"),
		duration: gaugeFamily("http_request_duration_seconds",
			"From the whole request until its answer is ready to be sent, waiting for its turn included.", "route"),
		errors:     counterFamily("http_errors_total", "Errors that were answered, by the code in their body.", "code"),
		admissions: counterFamily("admissions_total", "Data requests by what keys and limits said to them, while those are enforced.", "caller", "outcome"),
		shed: counterFamily("http_shed_requests_total",
			"Requests refused for load: late had waited too long for their turn, full came over a connection beyond the cap.", "lane", "reason"),
		open:     gaugeFamily("http_connections", "Open connections."),
		most:     gaugeFamily("http_connections_max", "Connections that may be open at once."),
		accepted: counterFamily("http_connections_accepted_total", "Connections that were accepted, those that were turned away included."),
		refused: counterFamily("http_connections_refused_total",
			"Connections that were turned away: their address had its share, or the cap was reached, where they get 503.", "reason"),
		shortages: counterFamily("http_accept_shortages_total", "Times that no connection could be accepted for want of descriptors or memory."),
	}
}

// Describe is prometheus.Collector.
func (m *frontMetrics) Describe(all chan<- *prometheus.Desc) {
	describe(all, m.requests, m.duration, m.errors, m.admissions, m.shed, m.open, m.most, m.accepted, m.refused, m.shortages)
}

// Collect is prometheus.Collector.
func (m *frontMetrics) Collect(all chan<- prometheus.Metric) {
	stats := m.front.Stats()
	for _, r := range stats.Requests {
		give(all, m.requests, r.Count, r.Route, r.Method, shownStatus(r.Status))
	}
	bounds := httpapi.TimeBounds()
	for _, t := range stats.Times {
		giveTimes(all, m.duration, bounds[:], t.Counts[:], t.Sum, t.Route)
	}
	for _, e := range stats.Errors {
		give(all, m.errors, e.Count, string(e.Code))
	}
	for _, a := range stats.Admissions {
		give(all, m.admissions, a.Count, a.Caller, a.Outcome)
	}
	for _, s := range stats.Shed {
		give(all, m.shed, s.Count, s.Lane, s.Reason)
	}
	give(all, m.open, stats.Connections.Open)
	give(all, m.most, stats.Connections.Most)
	give(all, m.accepted, stats.Connections.Accepted)
	give(all, m.refused, stats.Connections.Crowded, "address")
	give(all, m.refused, stats.Connections.Spare, "cap")
	give(all, m.shortages, stats.Connections.Short)
}

// shownStatus is a status as a label.
func shownStatus(status int) string {
	if status == 0 {
		return "other"
	}
	return strconv.Itoa(status)
}

// giveTimes hands over a histogram: counts are those up to each bound, and last those beyond all.
func giveTimes(all chan<- prometheus.Metric, of family, bounds []time.Duration, counts []uint64, sum time.Duration, labels ...string) {
	below, total := make(map[float64]uint64, len(bounds)), uint64(0)
	for i, bound := range bounds {
		total += counts[i]
		below[bound.Seconds()] = total
	}
	total += counts[len(bounds)]
	all <- prometheus.MustNewConstHistogram(of.desc, total, sum.Seconds(), below, labels...)
}
