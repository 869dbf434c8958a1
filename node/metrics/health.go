package metrics

import (
	"time"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
)

// Outcome is the result of the last backup or reload.
type Outcome struct {
	Known   bool      // there was an action
	OK      bool      // the last one succeeded
	Success time.Time // time of the last success; zero if none
}

// operator emits the state that an operator must take care of: disk, backups, and reloaded files.
func (c *Config) operator(s *emitter) {
	if c.DiskFree != nil {
		if free, err := c.DiskFree(); err == nil {
			gauge(s, "disk_free_bytes", "Bytes that can still be written on the disk of the data directory.", free)
		}
	}
	if backup := outcomeOf(c.Backup); backup.Known {
		gauge(s, "backup_success", "1 if the last backup of the running node was complete, else 0.", boolValue(backup.OK))
		s.timestamp("backup_timestamp_seconds", "Time of the last complete backup of the running node.", backup.Success)
	}
	if reload := outcomeOf(c.Reload); reload.Known {
		gauge(s, "reload_success", "1 if the last reload (SIGHUP) succeeded, 0 if the node goes on with old files.", boolValue(reload.OK))
		s.timestamp("reload_timestamp_seconds", "Time of the last successful reload.", reload.Success)
	}
}

func outcomeOf(last func() Outcome) Outcome {
	if last == nil {
		return Outcome{}
	}
	return last()
}

func (c *Config) certificates(s *emitter) {
	if c.CertificateExpiry != nil {
		s.timestamp("certificate_expiry_timestamp_seconds", "Expiry of the certificate of the node for clients.", c.CertificateExpiry(), "to", "http")
	}
}

func (c *Config) conditions(s *emitter) {
	all := c.Health()
	for i := range all {
		gauge(s, "condition", "1 for the state of a condition of the node, as in /readyz.", 1, "name", all[i].Name, "state", all[i].State)
	}
	gauge(s, "readiness", "1 for the state of the node: ready, degraded or unavailable.", 1, "status", string(engine.ReadinessOf(all)))
}

// sources emits the health of each source fetched since the node's start, and the baseline (usual rates) of each
// source.
func (c *Config) sources(s *emitter) {
	health := c.Sources()
	for i := range health {
		h := &health[i]
		if known := &h.Baseline; !known.At.IsZero() {
			gauge(s, "source_missing_sides", "Sides of rates that the source gave before and does not now.", len(known.Missing()), "source", h.SourceID)
			gauge(s, "source_unchanged_seconds", "Time for which no price of the source had changed when it was last read.",
				int64(known.Unchanged()/time.Second), "source", h.SourceID)
			gauge(s, "source_unchanged_limit_seconds", "Value of tasard_source_unchanged_seconds above which the source is frozen.",
				int64(known.FrozenLimit()/time.Second), "source", h.SourceID)
		}
		if h.Runs == 0 {
			continue
		}
		up := h.State == collectors.OK || h.State == collectors.Degraded || h.State == collectors.Partial
		gauge(s, "source_up", "1 if the source's last answer gave accepted observations, else 0.", boolValue(up), "source", h.SourceID)
		gauge(s, "source_confirmed", "1 if a real answer of the source is known to parse, here or elsewhere; its failures are worth an alert.", boolValue(h.Confirmed), "source", h.SourceID)
		s.timestamp("source_last_success_timestamp_seconds", "Time of the source's last accepted observation.", h.LastSuccess, "source", h.SourceID)
		gauge(s, "source_consecutive_failures", "Consecutive slots without an accepted observation.", h.ConsecutiveFailures, "source", h.SourceID)
		for kind, count := range h.Failures {
			counter(s, "source_failures_total", "Failures since the start.", count, "source", h.SourceID, "kind", string(kind))
		}
		for outcome, count := range map[string]int{"accepted": h.Accepted, "quarantined": h.Quarantined, "repeated": h.Repeated} {
			gauge(s, "source_observations", "Observations of the source's newest slot by outcome.", count, "source", h.SourceID, "outcome", outcome)
		}
	}
}

func (c *Config) archive(s *emitter) {
	stats := c.Archive()
	gauge(s, "archive_documents", "Fetched documents in the archive.", stats.Documents)
	gauge(s, "archive_bytes", "Size of the archive of fetched documents.", stats.Bytes)
	counter(s, "archive_failures_total", "Fetched documents that could not be archived, since the start.", stats.Failures)
}

func (c *Config) mail(s *emitter) {
	stats := c.Mail()
	for outcome, count := range map[string]uint64{
		"sent": stats.Sent, "refused": stats.Refused, "expired": stats.Expired, "replaced": stats.Replaced,
		"abandoned": stats.Abandoned, "dropped": stats.Dropped,
	} {
		counter(s, "mail_messages_total", "E-mails with login codes by outcome.", count, "outcome", outcome)
	}
	gauge(s, "mail_queue_length", "E-mails that wait for the mail server.", stats.Waiting)
	counter(s, "mail_attempt_failures_total", "Failed attempts to send an e-mail; each is tried more than once.", stats.Failures)
}

func (c *Config) cluster(s *emitter) {
	status := c.Cluster()
	gauge(s, "cluster_majority", "1 if enough nodes are reachable to make a change durable, else 0.", boolValue(status.Majority))
	for i := range status.Nodes {
		n := &status.Nodes[i]
		reachable := n.Reachable || n.Self
		gauge(s, "cluster_node_up", "1 if a node is reachable from this one, else 0.", boolValue(reachable), "node", n.Name)
		gauge(s, "cluster_node_leader", "1 if a node is the leader, else 0.", boolValue(n.Leader), "node", n.Name)
		if reachable {
			gauge(s, "cluster_node_lag_records", "Records of the log that a node lacks.", n.Lag, "node", n.Name)
		}
		if n.Member && reachable && status.Majority { // without a majority no copy is known to be complete
			gauge(s, "cluster_node_current", "1 if a member's copy of the log is complete and up to date, else 0.", boolValue(n.Current), "node", n.Name)
		}
	}
}
