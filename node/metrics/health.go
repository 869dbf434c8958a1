package metrics

import (
	"time"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
)

// Peers of a certificate.
const (
	ToClients = "http"
	ToNodes   = "cluster"
)

// Certificate is a certificate of the node.
type Certificate struct {
	ShownTo   string           // peers: ToClients or ToNodes
	ExpiresAt func() time.Time // of the current one
}

// certificates emits the expiry of certificates.
func (of *Config) certificates(s *emitter) {
	for _, one := range of.Certificates {
		s.timestamp("certificate_ends_timestamp_seconds",
			"Until when a certificate of the node is good, by whom it is shown to: http (clients), cluster (other nodes).", one.ExpiresAt(), "to", one.ShownTo)
	}
}

// conditions emits the conditions of the node.
func (of *Config) conditions(s *emitter) {
	all := of.Health()
	for i := range all {
		gauge(s, "condition", "1 for the state that a condition of the node is in, as /readyz tells it.", 1, "name", all[i].Name, "state", all[i].State)
	}
	gauge(s, "readiness", "1 for how the node is as a whole: ready, degraded or unavailable.", 1, "status", string(engine.ReadinessOf(all)))
}

// sources emits the health of sources. One that was never collected has no numbers.
func (of *Config) sources(s *emitter) {
	health := of.Sources()
	for i := range health {
		h := &health[i]
		if h.Runs == 0 {
			continue
		}
		up := h.State == collectors.OK || h.State == collectors.Partial
		gauge(s, "source_up", "1 when something of the source's last answer was taken in, else 0.", boolValue(up), "source", h.SourceID)
		s.timestamp("source_last_success_timestamp_seconds", "When something of the source was taken in last.", h.LastSuccess, "source", h.SourceID)
		gauge(s, "source_consecutive_failures", "Slots in a row of which nothing was taken in.", h.ConsecutiveFailures, "source", h.SourceID)
		for kind, count := range h.Failures {
			counter(s, "source_failures_total", "Failures since the start.", count, "source", h.SourceID, "kind", string(kind))
		}
		for outcome, count := range map[string]int{"accepted": h.Accepted, "held": h.Quarantined, "repeated": h.Repeated} {
			gauge(s, "source_observations", "Observations of the source's newest slot, by what became of them.", count, "source", h.SourceID, "outcome", outcome)
		}
	}
}

// mail emits the outcome of login codes.
func (of *Config) mail(s *emitter) {
	stats := of.Mail()
	for outcome, count := range map[string]uint64{
		"sent": stats.Sent, "refused": stats.Refused, "exhausted": stats.Exhausted, "expired": stats.Expired, "replaced": stats.Replaced,
		"abandoned": stats.Abandoned, "overflown": stats.Dropped,
	} {
		counter(s, "mail_letters_total", "Letters with login codes, by what became of them.", count, "outcome", outcome)
	}
	gauge(s, "mail_waiting", "Letters that wait for the mail server.", stats.Waiting)
	counter(s, "mail_failures_total", "Tries to hand a letter over that failed; each letter is tried more than once.", stats.Failures)
}

// cluster emits the nodes of a cluster as this one sees them.
func (of *Config) cluster(s *emitter) {
	status := of.Cluster()
	gauge(s, "cluster_majority", "1 when enough nodes are there to make a change durable, else 0.", boolValue(status.Health.Majority))
	for i := range status.Nodes {
		n := &status.Nodes[i]
		heard := n.Reachable || n.Self
		gauge(s, "cluster_node_up", "1 when this node has heard of a node lately, else 0.", boolValue(heard), "node", n.Name)
		gauge(s, "cluster_node_leads", "1 when changes go through a node, else 0.", boolValue(n.Leader), "node", n.Name)
		if heard {
			gauge(s, "cluster_node_lag_records", "Records that another node has and a node has not.", n.Lag, "node", n.Name)
		}
		if n.Member && heard {
			gauge(s, "cluster_node_current", "1 when a member's part of the log is whole and up to date, else 0.", boolValue(n.Current), "node", n.Name)
		}
	}
}
