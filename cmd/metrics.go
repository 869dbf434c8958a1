package cmd

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	goruntime "github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
)

// metricsPrefix begins the name of every metric of ours.
const metricsPrefix = "tasard_"

// scrapesMax is how many answers to Prometheus are made at once.
const scrapesMax = 4

// family is all metrics of one name.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func gaugeFamily(name, help string, labels ...string) family {
	return family{prometheus.NewDesc(metricsPrefix+name, help, labels, nil), prometheus.GaugeValue}
}

func counterFamily(name, help string, labels ...string) family {
	return family{prometheus.NewDesc(metricsPrefix+name, help, labels, nil), prometheus.CounterValue}
}

// give hands over a metric of the family: a number of the moment, for the values of its labels.
func give[N int | int64 | uint64](all chan<- prometheus.Metric, of family, value N, labels ...string) {
	all <- prometheus.MustNewConstMetric(of.desc, of.kind, float64(value), labels...)
}

// describe names what a collector gives.
func describe(all chan<- *prometheus.Desc, families ...family) {
	for _, one := range families {
		all <- one.desc
	}
}

// metrics is the text that Prometheus reads. Every number is asked for at that moment, from those who have it anyway: there is no second
// bookkeeping that could say something else than tasard admin or /readyz.
func (m *management) metrics() http.Handler {
	return promhttp.HandlerFor(m.registry(), promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesMax})
}

// registry has what there is to tell of the node. Of libraries' metrics only those of the Go runtime and of the process get in.
func (m *management) registry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(goruntime.NewGoCollector(), goruntime.NewProcessCollector(goruntime.ProcessCollectorOpts{}),
		newBuildMetrics(), newSourceMetrics(m.sources.health), newQuarantineMetrics(m.node))
	if m.health != nil {
		registry.MustRegister(newConditionMetrics(m.health), newMailMetrics(m.health))
	}
	if m.front != nil {
		registry.MustRegister(newFrontMetrics(m.front))
	}
	if m.system != nil {
		registry.MustRegister(newNodeMetrics(m.system), newLogMetrics(m.system))
	}
	if m.cluster != nil {
		registry.MustRegister(newClusterMetrics(m.cluster))
	}
	if len(m.certificates) > 0 {
		registry.MustRegister(newCertificateMetrics(m.certificates))
	}
	return registry
}

// newBuildMetrics tells which program it is.
func newBuildMetrics() prometheus.Collector {
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: metricsPrefix + "build_info", Help: "1 for the version of the program that runs.",
	}, []string{"version"})
	build.WithLabelValues(buildVersion()).Set(1)
	return build
}

// sourceMetrics are the health of the sources.
type sourceMetrics struct {
	health func() []collectors.Health

	up, lastSuccess, failures, observations, consecutive family
}

func newSourceMetrics(health func() []collectors.Health) *sourceMetrics {
	return &sourceMetrics{
		health:       health,
		up:           gaugeFamily("source_up", "1 when something of the source's last answer was taken in, else 0.", "source"),
		lastSuccess:  gaugeFamily("source_last_success_timestamp_seconds", "When something of the source was taken in last.", "source"),
		failures:     counterFamily("source_failures_total", "Failures since the start.", "source", "kind"),
		observations: gaugeFamily("source_observations", "Observations of the source's newest slot, by what became of them.", "source", "outcome"),
		consecutive:  gaugeFamily("source_consecutive_failures", "Slots in a row of which nothing was taken in.", "source"),
	}
}

// Describe is prometheus.Collector.
func (m *sourceMetrics) Describe(all chan<- *prometheus.Desc) {
	describe(all, m.up, m.lastSuccess, m.failures, m.observations, m.consecutive)
}

// Collect gives the numbers of the moment. A source that was never tried has none, and disabled ones neither.
func (m *sourceMetrics) Collect(all chan<- prometheus.Metric) {
	health := m.health()
	for i := range health {
		if h := &health[i]; h.Runs > 0 {
			m.source(h, all)
		}
	}
}

func (m *sourceMetrics) source(h *collectors.Health, all chan<- prometheus.Metric) {
	up := 0
	if h.State == collectors.OK || h.State == collectors.Partial {
		up = 1
	}
	give(all, m.up, up, h.SourceID)
	if !h.LastSuccess.IsZero() {
		give(all, m.lastSuccess, h.LastSuccess.Unix(), h.SourceID)
	}
	give(all, m.consecutive, h.ConsecutiveFailures, h.SourceID)
	for kind, count := range h.Failures {
		give(all, m.failures, count, h.SourceID, string(kind))
	}
	for _, part := range []struct {
		outcome string
		count   int
	}{{"accepted", h.Accepted}, {"held", h.Held}, {"repeated", h.Repeated}} {
		give(all, m.observations, part.count, h.SourceID, part.outcome)
	}
}

// quarantine is a node that tells what it holds back.
type quarantine interface {
	Held(currency string) ([]engine.Held, error)
}

// quarantineMetrics are what is held back of what the sources gave.
type quarantineMetrics struct {
	node quarantine
	held family
}

func newQuarantineMetrics(node quarantine) *quarantineMetrics {
	return &quarantineMetrics{node, gaugeFamily("quarantine_held", "Values that are held back and wait for an operator.", "currency")}
}

// Describe is prometheus.Collector.
func (m *quarantineMetrics) Describe(all chan<- *prometheus.Desc) { describe(all, m.held) }

// Collect gives the currencies of which something is held back.
func (m *quarantineMetrics) Collect(all chan<- prometheus.Metric) {
	held, err := m.node.Held("")
	if err != nil { // the node is not ready: no number is better than 0
		return
	}
	counts := map[string]int{}
	for i := range held {
		counts[held[i].Observation.Currency]++
	}
	for currency, count := range counts {
		give(all, m.held, count, currency)
	}
}
