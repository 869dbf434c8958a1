package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	goruntime "github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// prefix begins the names of all metrics of this package.
const prefix = "tasard_"

// scrapesMax is the maximum number of concurrent scrapes.
const scrapesMax = 4

// Config names the parts of a node whose metrics are served. A nil part is left out.
type Config struct {
	Version string // of the program that runs
	System  System
	Server  []prometheus.Collector // of httpapi.Server
	Health  func() []engine.Condition
	Sources func() []collectors.Health
	Archive func() archive.Stats // of fetched documents
	Mail    func() mail.Stats
	Cluster func() engine.Cluster
	// CertificateExpiry returns when the certificate for clients expires.
	CertificateExpiry func() time.Time
	// DroppedLogLines returns how many lines of the program's log were dropped.
	DroppedLogLines func() uint64
	DiskFree        func() (int64, error) // bytes that can still be written on the disk of the data directory
	Backup          func() Outcome
	Reload          func() Outcome
}

// System is the part of actors.System used for metrics.
type System interface {
	Stats() actors.Stats
	Currencies() (*engine.Page[engine.CurrencyItem], error)
	KeyPolicy() account.KeyPolicy
	Quarantine(currency string) ([]engine.Quarantined, error)
}

// Handler returns the HTTP handler for scrapes.
func Handler(c Config) http.Handler {
	return promhttp.HandlerFor(registry(c), promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesMax})
}

// registry returns a registry with the metrics of c, of the Go runtime and of the process.
func registry(c Config) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(c.Server...)
	registry.MustRegister(goruntime.NewGoCollector(), goruntime.NewProcessCollector(goruntime.ProcessCollectorOpts{}))
	for _, part := range []struct {
		enabled bool
		collect collectFunc
	}{
		{true, c.build}, {c.Sources != nil, c.sources}, {c.Health != nil, c.conditions}, {c.Archive != nil, c.archive}, {c.Mail != nil, c.mail},
		{c.System != nil, c.quarantine}, {c.System != nil, c.state}, {c.System != nil, c.log}, {c.Cluster != nil, c.cluster}, {true, c.certificates},
		{true, c.operator},
	} {
		if part.enabled {
			registry.MustRegister(part.collect)
		}
	}
	return registry
}

// collectFunc is a prometheus.Collector that emits the current metrics of one part of the node.
type collectFunc func(*emitter)

// Describe implements prometheus.Collector. It sends no descriptions, because the set of metrics depends on the node's
// state.
func (f collectFunc) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (f collectFunc) Collect(out chan<- prometheus.Metric) { f(&emitter{out}) }

// emitter emits the metrics of one scrape.
type emitter struct{ out chan<- prometheus.Metric }

// gauge emits a gauge. labels are names and values, alternating.
func gauge[N int | int64 | uint64](s *emitter, name, help string, value N, labels ...string) {
	desc, values := describe(name, help, labels)
	s.out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), values...)
}

func counter[N int | int64 | uint64](s *emitter, name, help string, value N, labels ...string) {
	desc, values := describe(name, help, labels)
	s.out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), values...)
}

// timestamp emits a time in seconds since 1970. It emits nothing for the zero time.
func (s *emitter) timestamp(name, help string, at time.Time, labels ...string) {
	if !at.IsZero() {
		gauge(s, name, help, at.Unix(), labels...)
	}
}

func describe(name, help string, labels []string) (*prometheus.Desc, []string) {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return prometheus.NewDesc(prefix+name, help, names, nil), values
}

func boolValue(b bool) int {
	if b {
		return 1
	}
	return 0
}
