package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	goruntime "github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/cluster"
	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi"
)

// prefix begins the names of our metrics.
const prefix = "tasard_"

// scrapesMax is the maximum of concurrent scrapes.
const scrapesMax = 4

// Config holds what metrics are read from. Nil parts have no metrics.
type Config struct {
	Version      string // of the program that runs
	System       System
	Server       interface{ Stats() httpapi.Stats }
	Health       func() []engine.Condition
	Sources      func() []collectors.Health
	Mail         func() mail.Stats
	Cluster      func() cluster.Status
	Certificates []Certificate
}

// System is the part of a node's system that has numbers.
type System interface {
	Stats() actors.Stats
	Currencies() (*engine.Page[engine.CurrencyItem], error)
	KeyPolicy() account.KeyPolicy
	Quarantine(currency string) ([]engine.Quarantined, error)
}

// Handler returns the handler for Prometheus.
func Handler(of Config) http.Handler {
	return promhttp.HandlerFor(registry(of), promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesMax})
}

// registry returns all collectors. Of libraries it has only those of the Go runtime and the process.
func registry(of Config) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(goruntime.NewGoCollector(), goruntime.NewProcessCollector(goruntime.ProcessCollectorOpts{}))
	for _, part := range []struct {
		there bool
		tell  collectFunc
	}{
		{true, of.build}, {of.Sources != nil, of.sources}, {of.Health != nil, of.conditions}, {of.Mail != nil, of.mail}, {of.Server != nil, of.http},
		{of.System != nil, of.quarantine}, {of.System != nil, of.state}, {of.System != nil, of.log}, {of.Cluster != nil, of.cluster}, {true, of.certificates},
	} {
		if part.there {
			registry.MustRegister(part.tell)
		}
	}
	return registry
}

// collectFunc emits current numbers.
type collectFunc func(*emitter)

// Describe implements prometheus.Collector. It describes nothing, because the metrics depend on the state.
func (p collectFunc) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (p collectFunc) Collect(out chan<- prometheus.Metric) { p(&emitter{out}) }

// emitter emits metrics of one scrape.
type emitter struct{ out chan<- prometheus.Metric }

// gauge emits a gauge; labels are alternating names and values.
func gauge[N int | int64 | uint64](s *emitter, name, help string, value N, labels ...string) {
	desc, values := describe(name, help, labels)
	s.out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), values...)
}

// counter emits a counter.
func counter[N int | int64 | uint64](s *emitter, name, help string, value N, labels ...string) {
	desc, values := describe(name, help, labels)
	s.out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), values...)
}

// timestamp emits an instant in seconds since 1970, nothing for the zero time.
func (s *emitter) timestamp(name, help string, at time.Time, labels ...string) {
	if !at.IsZero() {
		gauge(s, name, help, at.Unix(), labels...)
	}
}

// histogram emits a histogram. counts are those up to each bound, and last those above all bounds.
func (s *emitter) histogram(name, help string, bounds []time.Duration, counts []uint64, sum time.Duration, labels ...string) {
	below, total := make(map[float64]uint64, len(bounds)), uint64(0)
	for i, bound := range bounds {
		total += counts[i]
		below[bound.Seconds()] = total
	}
	total += counts[len(bounds)]
	desc, values := describe(name, help, labels)
	s.out <- prometheus.MustNewConstHistogram(desc, total, sum.Seconds(), below, values...)
}

func describe(name, help string, labels []string) (*prometheus.Desc, []string) {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return prometheus.NewDesc(prefix+name, help, names, nil), values
}

func boolValue(so bool) int {
	if so {
		return 1
	}
	return 0
}
