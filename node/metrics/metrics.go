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

// prefix begins the name of every metric of ours.
const prefix = "tasard_"

// scrapesMax is how many answers to Prometheus are made at once.
const scrapesMax = 4

// Of is what there is to tell of. Nil parts are left out.
type Of struct {
	Version      string // of the program that runs
	System       System
	Front        interface{ Stats() httpapi.Stats }
	Health       func() []engine.Condition
	Sources      func() []collectors.Health
	Mail         func() mail.Stats
	Cluster      func() cluster.Status
	Certificates []Certificate
}

// System is a node that tells what it holds.
type System interface {
	Stats() actors.Stats
	Currencies() (*engine.Page[engine.CurrencyItem], error)
	Transition() account.Transition
	Held(currency string) ([]engine.Held, error)
}

// Handler gives the text that Prometheus reads.
func Handler(of Of) http.Handler {
	return promhttp.HandlerFor(registry(of), promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesMax})
}

// registry has what there is to tell. Of libraries' metrics only those of the Go runtime and of the process get in.
func registry(of Of) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(goruntime.NewGoCollector(), goruntime.NewProcessCollector(goruntime.ProcessCollectorOpts{}))
	for _, part := range []struct {
		there bool
		tell  part
	}{
		{true, of.build}, {of.Sources != nil, of.sources}, {of.Health != nil, of.conditions}, {of.Mail != nil, of.letters}, {of.Front != nil, of.front},
		{of.System != nil, of.quarantine}, {of.System != nil, of.node}, {of.System != nil, of.log}, {of.Cluster != nil, of.nodes}, {true, of.certificates},
	} {
		if part.there {
			registry.MustRegister(part.tell)
		}
	}
	return registry
}

// part tells the numbers of the moment.
type part func(*scrape)

// Describe is prometheus.Collector. It announces nothing: what there is depends on the moment.
func (p part) Describe(chan<- *prometheus.Desc) {}

// Collect is prometheus.Collector.
func (p part) Collect(out chan<- prometheus.Metric) { p(&scrape{out}) }

// scrape takes numbers.
type scrape struct{ out chan<- prometheus.Metric }

// gauge tells a number that rises and falls; labels are names and values by turns.
func gauge[N int | int64 | uint64](s *scrape, name, help string, value N, labels ...string) {
	desc, values := describe(name, help, labels)
	s.out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), values...)
}

// counter tells a number that only rises.
func counter[N int | int64 | uint64](s *scrape, name, help string, value N, labels ...string) {
	desc, values := describe(name, help, labels)
	s.out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), values...)
}

// instant tells a moment in seconds since 1970, nothing for the zero one.
func (s *scrape) instant(name, help string, at time.Time, labels ...string) {
	if !at.IsZero() {
		gauge(s, name, help, at.Unix(), labels...)
	}
}

// times tells a histogram: counts are those up to each bound, and last those beyond all.
func (s *scrape) times(name, help string, bounds []time.Duration, counts []uint64, sum time.Duration, labels ...string) {
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

func oneIf(so bool) int {
	if so {
		return 1
	}
	return 0
}
