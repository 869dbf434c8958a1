package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/wal"
)

// nodeMetrics are what the node holds: rates, accounts, letters that wait.
type nodeMetrics struct {
	node System

	waiting, most, refusals, accounts, living, leases, checked, fresh, rates, required family
}

func newNodeMetrics(node System) *nodeMetrics {
	return &nodeMetrics{
		node:     node,
		waiting:  gaugeFamily("mailbox_waiting", "Letters that wait for the actors of a kind.", "actors"),
		most:     gaugeFamily("mailbox_waiting_most", "Letters that wait for the one of them that has the most; not known of accounts.", "actors"),
		refusals: counterFamily("mailbox_refusals_total", "Questions that were answered overloaded because a mailbox was full.", "actors"),
		accounts: gaugeFamily("accounts", "Accounts."),
		living:   gaugeFamily("accounts_live", "Accounts that somebody has used lately: they have an actor."),
		leases:   counterFamily("leases_total", "Leases of a day's quota that were written to the log."),
		checked:  gaugeFamily("currency_checked_timestamp_seconds", "When a source of the currency was heard last.", "currency"),
		fresh:    gaugeFamily("currency_fresh_until_timestamp_seconds", "When the last rate of the currency expires.", "currency"),
		rates:    gaugeFamily("rates", "Published rates, current ones and stale ones.", "currency", "state"),
		required: gaugeFamily("keys_required_timestamp_seconds", "From when on keys are required, once that is announced."),
	}
}

// Describe is prometheus.Collector.
func (m *nodeMetrics) Describe(all chan<- *prometheus.Desc) {
	describe(all, m.waiting, m.most, m.refusals, m.accounts, m.living, m.leases, m.checked, m.fresh, m.rates, m.required)
}

// Collect gives nothing while the log is replayed: no number is better than 0.
func (m *nodeMetrics) Collect(all chan<- prometheus.Metric) {
	stats := m.node.Stats()
	if !stats.Serving {
		return
	}
	for _, box := range stats.Mailboxes {
		give(all, m.waiting, box.Waiting, box.Kind)
		give(all, m.refusals, box.Refused, box.Kind)
		if box.Most >= 0 {
			give(all, m.most, box.Most, box.Kind)
		}
	}
	give(all, m.accounts, stats.Accounts)
	give(all, m.living, stats.Living)
	give(all, m.leases, stats.Leases)
	for _, c := range stats.Currencies {
		giveInstant(all, m.checked, c.CheckedAt, c.Currency)
		giveInstant(all, m.fresh, c.FreshUntil, c.Currency)
	}
	giveInstant(all, m.required, m.node.Transition().RequiredAt)
	m.published(all)
}

// published counts rates; without an answer (the node is overloaded, or stops) there is no number.
func (m *nodeMetrics) published(all chan<- prometheus.Metric) {
	page, err := m.node.Currencies()
	if err != nil {
		return
	}
	for i := range page.Items {
		c := &page.Items[i]
		give(all, m.rates, c.CurrentQuoteCount, c.Code, "current")
		give(all, m.rates, c.QuoteCount-c.CurrentQuoteCount, c.Code, "stale")
	}
}

// giveInstant hands over an instant in seconds since 1970, nothing for the zero one.
func giveInstant(all chan<- prometheus.Metric, of family, at time.Time, labels ...string) {
	if !at.IsZero() {
		give(all, of, at.Unix(), labels...)
	}
}

// logMetrics are the log and its disk.
type logMetrics struct {
	node System

	batches, records, appended, syncs, bytes, segments, first, last, snapshots, snapshotBytes, snapshotRecord, snapshotAt family
}

func newLogMetrics(node System) *logMetrics {
	return &logMetrics{
		node:           node,
		batches:        counterFamily("log_batches_total", "Batches of records that were written to the log, each with one sync."),
		records:        counterFamily("log_records_total", "Records in them."),
		appended:       counterFamily("log_appended_bytes_total", "Bytes that the log grew by with them."),
		syncs:          gaugeFamily("log_sync_duration_seconds", "How long the disk took to make a batch durable."),
		bytes:          gaugeFamily("log_bytes", "Size of the log without snapshots."),
		segments:       gaugeFamily("log_segments", "Files of the log."),
		first:          gaugeFamily("log_first_record", "Number of the oldest record in the log."),
		last:           gaugeFamily("log_last_record", "Number of the newest record in the log."),
		snapshots:      gaugeFamily("snapshots", "Whole snapshots."),
		snapshotBytes:  gaugeFamily("snapshot_bytes", "Size of all whole snapshots."),
		snapshotRecord: gaugeFamily("snapshot_last_record", "Number of the newest record in the newest snapshot."),
		snapshotAt:     gaugeFamily("snapshot_timestamp_seconds", "When the newest snapshot was finished."),
	}
}

// Describe is prometheus.Collector.
func (m *logMetrics) Describe(all chan<- *prometheus.Desc) {
	describe(all, m.batches, m.records, m.appended, m.syncs, m.bytes, m.segments, m.first, m.last, m.snapshots, m.snapshotBytes, m.snapshotRecord, m.snapshotAt)
}

// Collect gives nothing of a journal that is no local log.
func (m *logMetrics) Collect(all chan<- prometheus.Metric) {
	stats := m.node.Stats()
	if !stats.Logged {
		return
	}
	log := &stats.Log
	give(all, m.batches, log.Batches)
	give(all, m.records, log.Records)
	give(all, m.appended, log.Bytes)
	bounds := wal.SyncBounds()
	giveTimes(all, m.syncs, bounds[:], log.Syncs.Counts[:], log.Syncs.Sum)
	give(all, m.bytes, log.LogBytes)
	give(all, m.segments, log.Segments)
	give(all, m.first, log.First)
	give(all, m.last, log.Last)
	give(all, m.snapshots, log.Snapshots)
	give(all, m.snapshotBytes, log.SnapshotBytes)
	if log.Snapshots > 0 {
		give(all, m.snapshotRecord, log.SnapshotSequence)
		giveInstant(all, m.snapshotAt, log.SnapshotAt)
	}
}

// mailMetrics are letters with login codes.
type mailMetrics struct {
	stats func() mail.Stats

	letters, waiting, failures family
}

func newMailMetrics(stats func() mail.Stats) *mailMetrics {
	return &mailMetrics{
		stats:    stats,
		letters:  counterFamily("mail_letters_total", "Letters with login codes, by what became of them.", "outcome"),
		waiting:  gaugeFamily("mail_waiting", "Letters that wait for the mail server."),
		failures: counterFamily("mail_failures_total", "Tries to hand a letter over that failed; each letter is tried more than once."),
	}
}

// Describe is prometheus.Collector.
func (m *mailMetrics) Describe(all chan<- *prometheus.Desc) {
	describe(all, m.letters, m.waiting, m.failures)
}

// Collect is prometheus.Collector.
func (m *mailMetrics) Collect(all chan<- prometheus.Metric) {
	stats := m.stats()
	for _, part := range []struct {
		outcome string
		count   uint64
	}{
		{"sent", stats.Sent}, {"refused", stats.Refused}, {"exhausted", stats.Exhausted}, {"expired", stats.Expired},
		{"replaced", stats.Replaced}, {"abandoned", stats.Abandoned}, {"overflown", stats.Overflown},
	} {
		give(all, m.letters, part.count, part.outcome)
	}
	give(all, m.waiting, stats.Waiting)
	give(all, m.failures, stats.Failures)
}
