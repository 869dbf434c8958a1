package metrics

import (
	"net/http"
	"sync"
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

// Config names the parts of a node whose metrics are served. Archive, Mail, Cluster and DroppedLogLines may be nil.
type Config struct {
	Version string // of the program that runs
	System  System
	Server  []prometheus.Collector // of httpapi.Server
	Health  func() []engine.Condition
	Sources func() []collectors.Health
	Archive func() archive.Stats // of fetched documents
	Mail    func() mail.Stats
	Cluster func() engine.Cluster
	// CertificateExpiry returns when the certificate for clients expires, or the zero time if there is none.
	CertificateExpiry func() time.Time
	// DroppedLogLines returns how many lines of the program's log were dropped.
	DroppedLogLines func() uint64
	DiskFree        func() (int64, error) // bytes that can still be written on the disk of the data directory
	Backup, Reload  *Outcome
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
		{c.System != nil, c.quarantine}, {c.System != nil, c.state}, {c.System != nil, c.log}, {c.Cluster != nil, c.cluster},
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

// Outcome is the result of the operator's last action of one kind. It is safe for concurrent use.
type Outcome struct {
	mu        sync.Mutex
	known, ok bool
	success   time.Time // of the last success
}

// Record records the end of an action.
func (o *Outcome) Record(ok bool, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known, o.ok = true, ok; ok {
		o.success = at
	}
}

// emit emits the metrics of the action name, or nothing before the first one.
func (o *Outcome) emit(s *emitter, name, success, timestamp string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known {
		gauge(s, name+"_success", success, boolValue(o.ok))
		s.timestamp(name+"_timestamp_seconds", timestamp, o.success)
	}
}

// operator emits the state that an operator must take care of: disk, certificate, backups, and reloaded files.
func (c *Config) operator(s *emitter) {
	if free, err := c.DiskFree(); err == nil {
		gauge(s, "disk_free_bytes", "Bytes that can still be written on the disk of the data directory.", free)
	}
	s.timestamp("certificate_expiry_timestamp_seconds", "Expiry of the certificate of the node for clients.", c.CertificateExpiry(), "to", "http")
	c.Backup.emit(s, "backup", "1 if the last backup of the running node was complete, else 0.", "Time of the last complete backup of the running node.")
	c.Reload.emit(s, "reload", "1 if the last reload (SIGHUP) succeeded, 0 if the node goes on with old files.", "Time of the last successful reload.")
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

func (c *Config) build(s *emitter) {
	gauge(s, "build_info", "1 for the version of the running program.", 1, "version", c.Version)
	if c.DroppedLogLines != nil {
		counter(s, "stderr_dropped_lines_total", "Lines of the program's log that were dropped, because nothing read them in time.", c.DroppedLogLines())
	}
}

// state emits the metrics of mailboxes, accounts, currencies and rates. It emits nothing while the node reads its log,
// because the values would be wrong.
func (c *Config) state(s *emitter) {
	stats := c.System.Stats()
	if !stats.Serving {
		return
	}
	for _, mailbox := range stats.Mailboxes {
		gauge(s, "mailbox_waiting", "Messages in the mailboxes of actors of a kind.", mailbox.Waiting, "actors", mailbox.Kind)
		counter(s, "mailbox_refusals_total", "Messages refused because a mailbox was full.", mailbox.Rejected, "actors", mailbox.Kind)
		if mailbox.WaitingMax >= 0 {
			gauge(s, "mailbox_waiting_max", "Messages in the fullest mailbox of actors of a kind; unknown for accounts.", mailbox.WaitingMax, "actors", mailbox.Kind)
		}
	}
	gauge(s, "accounts", "Accounts.", stats.Accounts)
	counter(s, "quota_leases_total", "Leases of daily quotas written to the log.", stats.Leases)
	for _, cur := range stats.Currencies {
		s.timestamp("currency_checked_timestamp_seconds", "Time of the currency's last successful check.", cur.CheckedAt, "currency", cur.Currency)
		s.timestamp("currency_fresh_until_timestamp_seconds", "Expiry of the currency's last rate.", cur.FreshUntil, "currency", cur.Currency)
	}
	s.timestamp("keys_required_timestamp_seconds", "Instant from which keys are required, once announced.", c.System.KeyPolicy().RequiredAt)
	c.rates(s)
}

func (c *Config) rates(s *emitter) {
	page, err := c.System.Currencies()
	if err != nil {
		return
	}
	const help = "Published rates by state: current or stale."
	for i := range page.Items {
		cur := &page.Items[i]
		gauge(s, "rates", help, cur.CurrentQuoteCount, "currency", cur.Code, "state", "current")
		gauge(s, "rates", help, cur.QuoteCount-cur.CurrentQuoteCount, "currency", cur.Code, "state", "stale")
	}
}

func (c *Config) quarantine(s *emitter) {
	quarantined, err := c.System.Quarantine("")
	if err != nil { // the node is not ready, so its counts would be wrong
		return
	}
	counts := map[string]int{}
	for i := range quarantined {
		counts[quarantined[i].Observation.Currency]++
	}
	for currency, count := range counts {
		gauge(s, "quarantined_values", "Quarantined values that wait for an operator.", count, "currency", currency)
	}
}

// log emits the metrics of the log and its disk. It emits nothing if the journal is not a log in files of this machine.
func (c *Config) log(s *emitter) {
	stats := c.System.Stats()
	if !stats.HasLog {
		return
	}
	log := &stats.Log
	counter(s, "log_batches_total", "Batches of records written to the log, each with one sync.", log.Batches)
	counter(s, "log_records_total", "Records written to the log.", log.Records)
	counter(s, "log_appended_bytes_total", "Bytes written to the log.", log.Bytes)
	s.out <- log.Syncs
	gauge(s, "log_bytes", "Size of the log without snapshots.", log.LogBytes)
	gauge(s, "log_segments", "Files of the log.", log.Segments)
	gauge(s, "log_first_record", "Number of the oldest record in the log.", log.First)
	gauge(s, "log_last_record", "Number of the newest record in the log.", log.Last)
	gauge(s, "snapshots", "Complete snapshots.", log.Snapshots)
	gauge(s, "snapshot_bytes", "Size of all complete snapshots.", log.SnapshotBytes)
	if log.Snapshots > 0 {
		gauge(s, "snapshot_last_record", "Number of the newest record in the newest snapshot.", log.SnapshotSequence)
		s.timestamp("snapshot_timestamp_seconds", "When the newest snapshot was finished.", log.SnapshotAt)
	}
}
