package metrics

import (
	"net/http"

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

// Handler gives the text that Prometheus reads. Every number is asked for at that moment, from those who have it anyway: there is no second
// bookkeeping that could say something else than tasard admin or /readyz.
func Handler(of Of) http.Handler {
	return promhttp.HandlerFor(registry(of), promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesMax})
}

// registry has what there is to tell. Of libraries' metrics only those of the Go runtime and of the process get in.
func registry(of Of) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(goruntime.NewGoCollector(), goruntime.NewProcessCollector(goruntime.ProcessCollectorOpts{}), newBuildMetrics(of.Version))
	if of.Sources != nil {
		registry.MustRegister(newSourceMetrics(of.Sources))
	}
	if of.Health != nil {
		registry.MustRegister(newConditionMetrics(of.Health))
	}
	if of.Mail != nil {
		registry.MustRegister(newMailMetrics(of.Mail))
	}
	if of.Front != nil {
		registry.MustRegister(newFrontMetrics(of.Front))
	}
	if of.System != nil {
		registry.MustRegister(newQuarantineMetrics(of.System), newNodeMetrics(of.System), newLogMetrics(of.System))
	}
	if of.Cluster != nil {
		registry.MustRegister(newClusterMetrics(of.Cluster))
	}
	if len(of.Certificates) > 0 {
		registry.MustRegister(newCertificateMetrics(of.Certificates))
	}
	return registry
}

// newBuildMetrics tells which program it is.
func newBuildMetrics(version string) prometheus.Collector {
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: metricsPrefix + "build_info", Help: "1 for the version of the program that runs.",
	}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	return build
}

// conditionMetrics turns conditions into numbers: 1 for the state that each is in.
type conditionMetrics struct {
	health           func() []engine.Condition
	condition, ready family
}

func newConditionMetrics(health func() []engine.Condition) *conditionMetrics {
	return &conditionMetrics{
		health,
		gaugeFamily("condition", "1 for the state that a condition of the node is in, as /readyz tells it.", "name", "state"),
		gaugeFamily("readiness", "1 for how the node is as a whole: ready, degraded or unavailable.", "status"),
	}
}

// Describe names what Collect gives.
func (m *conditionMetrics) Describe(all chan<- *prometheus.Desc) {
	describe(all, m.condition, m.ready)
}

// Collect gives the states of the moment.
func (m *conditionMetrics) Collect(all chan<- prometheus.Metric) {
	conditions := m.health()
	for i := range conditions {
		give(all, m.condition, 1, conditions[i].Name, conditions[i].State)
	}
	give(all, m.ready, 1, string(engine.ReadinessOf(conditions)))
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

// quarantineMetrics are what is held back of what the sources gave.
type quarantineMetrics struct {
	node System
	held family
}

func newQuarantineMetrics(node System) *quarantineMetrics {
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
