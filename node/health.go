package node

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

// ownConditions returns the conditions of the parts outside the core.
func (n *Node) ownConditions() []engine.Condition {
	mail, sources := engine.HealthyCondition("mail"), engine.HealthyCondition("sources")
	if n.mailer != nil {
		mail = n.mailer.Condition()
	}
	if collector, _ := n.collector.current(); collector != nil {
		sources = collector.Condition()
	}
	conditions := []engine.Condition{mail, sources}
	if n.certificate.managed() {
		conditions = append(conditions, n.certificateCondition())
	}
	return conditions
}

// conditionInterval is the time between two checks of the health conditions. A problem between two checks may not be
// logged.
const conditionInterval = time.Second

// logConditions logs the beginning and the end of each problem (a condition that is not OK), until ctx ends.
func (n *Node) logConditions(ctx context.Context) {
	ticker := time.NewTicker(conditionInterval)
	defer ticker.Stop()
	states := map[string]string{}
	var refused refusals
	for collected, checks := false, 1; ; checks++ {
		if !collected && n.collector.collectedOnce() {
			collected = true
			n.logUnmeasured()
		}
		for _, c := range n.core.Server.Conditions() {
			n.logCondition(states, c)
		}
		if checks%refusalChecks == 0 {
			refused.log(n.config.Logger, n.core.Server.Refused)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// refusalChecks is the number of checks, one a second, between two log lines about refused requests.
const refusalChecks = 60

// refusals holds the numbers of refused requests, by the quota that was used up, at the last log line.
type refusals struct{ minute, day uint64 }

// log logs how many requests were refused since the last call because a quota was used up. It logs nothing for 0.
func (r *refusals) log(logger *slog.Logger, counted func() (minute, day uint64)) {
	before := *r
	if r.minute, r.day = counted(); *r != before {
		logger.Info("requests were refused with 429 in the last minute; a load test needs --limits=off, a proxy --trusted-proxy",
			"overQuotaOfMinute", r.minute-before.minute, "overQuotaOfDay", r.day-before.day)
	}
}

// logUnmeasured logs the currencies whose first value cannot be checked. It is called after the first collection, which
// usually brings the reference rates.
func (n *Node) logUnmeasured() {
	if codes := n.system.Unmeasured(); len(codes) > 0 {
		n.config.Logger.Info("currencies without a plausible range and a reference rate: a first wrong value of them is not recognised; "+
			"set lowest and highest in a catalogue file", "currencies", strings.Join(codes, " "))
	}
}

// logCondition logs a condition whose state has changed. states are the last known states by name; logCondition updates
// them.
func (n *Node) logCondition(states map[string]string, c engine.Condition) {
	before := cmp.Or(states[c.Name], engine.ConditionOK)
	states[c.Name] = c.State
	if before != c.State && before != engine.ConditionOK {
		n.config.Logger.Info("problem ended", "condition", c.Name, "state", before)
	}
	if before != c.State && c.State != engine.ConditionOK {
		n.config.Logger.Warn("problem began", "condition", c.Name, "state", c.State, "detail", c.Detail)
	}
}

// readiness returns the state of the node for operators.
func (n *Node) readiness() admin.Readiness {
	conditions := n.core.Server.Conditions()
	recovery := n.system.Recovery()
	readiness := admin.Readiness{
		Status: engine.ReadinessOf(conditions), Conditions: conditions, Version: n.config.Version,
		Log: admin.Log{LastRecord: recovery.Last, Snapshot: recovery.SnapshotSequence, TornBytes: recovery.TornBytes, AmbiguousTail: recovery.AmbiguousTail},
	}
	if err := n.system.Err(); err != nil {
		readiness.Log.Failure = err.Error()
	}
	if n.mailer != nil {
		readiness.Mail = n.mailer.Stats()
	}
	for _, h := range n.SourceHealth() {
		switch h.State {
		case collectors.Failing, collectors.Quarantined:
			readiness.FailingSources = append(readiness.FailingSources, admin.FailingSource{ID: h.SourceID, State: string(h.State), Failure: h.Failure.Error()})
		}
	}
	return readiness
}

// SourceOff is the state of all sources on a node that does not fetch rates.
const SourceOff = "off"

// SourceHealth returns the health of every source, sorted by id. It returns nil if the node does not fetch rates.
func (n *Node) SourceHealth() []collectors.Health {
	if collector, _ := n.collector.current(); collector != nil {
		return collector.Health()
	}
	return nil
}

func (l *liveCollector) describe() admin.Sources {
	sources := DescribeSources(l.set)
	collector, _ := l.current()
	if sources.Collecting = collector != nil; !sources.Collecting {
		return sources
	}
	health := collector.Health()
	for i := range health { // both are sorted by id and have the same sources
		sources.Sources[i].State, sources.Sources[i].Health = string(health[i].State), describeHealth(&health[i])
	}
	return sources
}

// DescribeSources returns the description of each source for the management API, without the health of the sources.
func DescribeSources(set *source.Set) admin.Sources {
	sources := admin.Sources{Sources: []admin.Source{}}
	for _, d := range set.Definitions() {
		src := admin.Source{
			ID: d.ID, Name: d.Name, Institution: d.Institution, URL: d.URL, Host: hostOf(d), Priority: d.Priority,
			UpstreamSource: d.UpstreamSource, Methods: methodsOf(d), State: SourceOff, Disabled: d.Disabled, Note: d.Note,
		}
		if d.Disabled != "" {
			src.State = string(collectors.Disabled)
		}
		if e := &d.Evidence; e.Grade != "" {
			src.Evidence = &admin.Evidence{Grade: string(e.Grade), Seen: e.Seen, By: e.By, Sample: e.Sample}
		}
		sources.Sources = append(sources.Sources, src)
	}
	return sources
}

func hostOf(d *source.Definition) string {
	address, err := url.Parse(d.Pages[0].Requests[0].URL)
	if err != nil {
		return "" // impossible: package source has checked the URL
	}
	return address.Hostname()
}

func methodsOf(d *source.Definition) []string {
	var methods []string
	for i := range d.Pages {
		methods = append(methods, string(d.Pages[i].Extract.Method))
	}
	slices.Sort(methods)
	return slices.Compact(methods)
}

func describeHealth(h *collectors.Health) *admin.SourceHealth {
	health := &admin.SourceHealth{
		Running: h.Running, LastTry: h.LastTry, LastSuccess: h.LastSuccess, LastSlot: h.LastSlot, NextRun: h.NextRun,
		DurationMillis: h.Duration.Milliseconds(), Runs: h.Runs, ConsecutiveFailures: h.ConsecutiveFailures, Confirmed: h.Confirmed,
		Read: h.Read, Accepted: h.Accepted, Quarantined: h.Quarantined, Repeated: h.Repeated, Digests: h.Digests, Notes: h.Notes,
		UnchangedSince: h.Baseline.UnchangedSince(), Frozen: h.Baseline.Frozen(), Missing: h.Baseline.Missing(),
	}
	if !h.Baseline.At.IsZero() {
		health.UnchangedLimitHours = int64(h.Baseline.FrozenLimit().Hours())
	}
	for key, quote := range h.Baseline.Quotes {
		usual := admin.UsualQuote{Rate: key, UnchangedSince: quote.UnchangedSince}
		for side, to := range []*admin.UsualSide{&usual.Buy, &usual.Sell} {
			part := quote.Sides[side]
			*to = admin.UsualSide{Usual: part.Known(), Runs: part.Runs, MissingRuns: part.Missing}
		}
		health.Quotes = append(health.Quotes, usual)
	}
	slices.SortFunc(health.Quotes, func(a, b admin.UsualQuote) int { return cmp.Compare(a.Rate, b.Rate) })
	if h.Failure.Kind != "" {
		health.Failure = describeFailure(&h.Failure)
		health.Failure.At = h.FailedAt
	}
	return health
}

// DescribeRun returns a report of a collector in the form of the management API.
func DescribeRun(report *collectors.Report) admin.SourceRun {
	run := admin.SourceRun{
		Source: report.SourceID, DurationMillis: report.Duration.Milliseconds(), HistoryDays: report.HistoryDays, Failure: describeFailure(report.Failure),
		Pages: []admin.SourcePage{}, Rates: []admin.SourceRate{},
	}
	for i := range report.Pages {
		page := &report.Pages[i]
		run.Pages = append(run.Pages, admin.SourcePage{Name: page.Name, Digest: page.Digest, Notes: page.Notes, Failure: describeFailure(page.Failure)})
	}
	for i := range report.Observations {
		o, refusal := &report.Observations[i], &report.Refusals[i]
		rate := admin.SourceRate{
			InstitutionID: o.InstitutionID, Currency: o.Currency, Channel: o.Key().Channel, Kind: o.Key().Kind, Buy: o.Buy, Sell: o.Sell,
			Reason: refusal.Reason, Detail: refusal.Detail, EffectiveDate: o.EffectiveDate.String(),
		}
		if refusal.QuarantineID != 0 {
			rate.Quarantined = admin.QuarantineNumber(o.Currency, refusal.QuarantineID)
		}
		run.Rates = append(run.Rates, rate)
	}
	return run
}

func describeFailure(f *source.Failure) *admin.SourceFailure {
	if f == nil {
		return nil
	}
	return &admin.SourceFailure{Kind: string(f.Kind), Page: f.Page, Detail: f.Detail}
}

// lastBackupFile is an empty file in the data directory. Its modification time is the time of the last complete backup,
// so that the time survives a restart.
const lastBackupFile = "last-backup"

func (n *Node) readLastBackup() {
	if info, err := os.Stat(filepath.Join(n.config.Dir, lastBackupFile)); err == nil {
		n.backups.Record(true, info.ModTime())
	}
}

// backup writes a backup of the node to out. last is the sequence number of its last record.
func (n *Node) backup(out io.Writer) (last uint64, err error) {
	info, err := n.system.Backup(out, n.config.Version)
	now := n.config.Clock()
	if n.backups.Record(err == nil, now); err == nil {
		n.storeLastBackup(now)
	}
	return info.Sequence, err
}

func (n *Node) storeLastBackup(now time.Time) {
	path := filepath.Join(n.config.Dir, lastBackupFile)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // G304: in the data directory
	if err == nil {
		err = errors.Join(file.Close(), os.Chtimes(path, now, now))
	}
	if err != nil {
		n.config.Logger.Warn("the time of the backup is lost at the next start", "cause", err.Error())
	}
}
