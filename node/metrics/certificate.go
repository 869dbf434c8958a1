package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Who a certificate is shown to.
const (
	ToClients = "http"
	ToNodes   = "cluster"
)

// Certificate is a certificate that the node uses.
type Certificate struct {
	To   string           // whom it is shown to: ToClients or ToNodes
	Ends func() time.Time // of the one that is shown now
}

// certificateMetrics tell until when certificates are good: an ended one stops a service that is well otherwise.
type certificateMetrics struct {
	shown []Certificate

	ends family
}

func newCertificateMetrics(shown []Certificate) *certificateMetrics {
	return &certificateMetrics{
		shown: shown,
		ends:  gaugeFamily("certificate_ends_timestamp_seconds", "Until when a certificate of the node is good, by whom it is shown to: http (clients), cluster (other nodes).", "to"),
	}
}

// Describe is prometheus.Collector.
func (m *certificateMetrics) Describe(all chan<- *prometheus.Desc) { describe(all, m.ends) }

// Collect is prometheus.Collector.
func (m *certificateMetrics) Collect(all chan<- prometheus.Metric) {
	for _, one := range m.shown {
		give(all, m.ends, one.Ends().Unix(), one.To)
	}
}
