package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	goruntime "github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
)

// metrics turns the health of the sources into numbers at the moment at which they are asked for: there is no second
// bookkeeping that could say something else than tasard sources list.
type metrics struct {
	sources *collection
	node    quarantine

	up, lastSuccess, failures, observations, consecutive, held *prometheus.Desc
}

// quarantine is what metrics ask a node for.
type quarantine interface {
	Held(currency string) ([]engine.Held, error)
}

// metricsOf answers with the text that Prometheus reads, from a registry of its own: of libraries' metrics only those of the Go
// runtime get in (memory, garbage, goroutines), with which the bench counts allocations.
func metricsOf(sources *collection, node quarantine, health watched) http.Handler {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("tasard_"+name, help, labels, nil)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(goruntime.NewGoCollector())
	if health != nil {
		registry.MustRegister(newConditionMetrics(health))
	}
	registry.MustRegister(&metrics{
		sources: sources, node: node,
		up:          describe("source_up", "1 when something of the source's last answer was taken in, else 0.", "source"),
		lastSuccess: describe("source_last_success_timestamp_seconds", "When something of the source was taken in last.", "source"),
		failures:    describe("source_failures_total", "Failures since the start.", "source", "kind"),
		observations: describe("source_observations", "Observations of the source's newest slot, by what became of them.",
			"source", "outcome"),
		consecutive: describe("source_consecutive_failures", "Slots in a row of which nothing was taken in.", "source"),
		held:        describe("quarantine_held", "Values that are held back and wait for an operator.", "currency"),
	})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// Describe names what Collect gives.
func (m *metrics) Describe(all chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{m.up, m.lastSuccess, m.failures, m.observations, m.consecutive, m.held} {
		all <- one
	}
}

// Collect gives the numbers of the moment. A source that was never tried has none, and disabled ones neither.
func (m *metrics) Collect(all chan<- prometheus.Metric) {
	health := m.sources.health()
	for i := range health {
		if h := &health[i]; h.Runs > 0 {
			m.source(h, all)
		}
	}
	held, err := m.node.Held("")
	if err != nil { // the node is not ready: no number is better than 0
		return
	}
	counts := map[string]int{}
	for i := range held {
		counts[held[i].Observation.Currency]++
	}
	for currency, count := range counts {
		all <- gauge(m.held, count, currency)
	}
}

func (m *metrics) source(h *collectors.Health, all chan<- prometheus.Metric) {
	up := 0
	if h.State == collectors.OK || h.State == collectors.Partial {
		up = 1
	}
	all <- gauge(m.up, up, h.SourceID)
	if !h.LastSuccess.IsZero() {
		all <- gauge(m.lastSuccess, int(h.LastSuccess.Unix()), h.SourceID)
	}
	all <- gauge(m.consecutive, h.ConsecutiveFailures, h.SourceID)
	for kind, count := range h.Failures {
		all <- prometheus.MustNewConstMetric(m.failures, prometheus.CounterValue, float64(count), h.SourceID, string(kind))
	}
	for _, part := range []struct {
		outcome string
		count   int
	}{{"accepted", h.Accepted}, {"held", h.Held}, {"repeated", h.Repeated}} {
		all <- gauge(m.observations, part.count, h.SourceID, part.outcome)
	}
}

func gauge(desc *prometheus.Desc, value int, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
}
