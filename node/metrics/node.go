package metrics

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
