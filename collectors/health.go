package collectors

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// State summarises the health of a source.
type State string

// The states of a source.
const (
	Never       State = "never"       // not yet tried
	OK          State = "ok"          // all pages were read and all quotes were accepted
	Degraded    State = "degraded"    // like OK, but an expected side is missing (Baseline.Missing)
	Partial     State = "partial"     // some quotes were accepted, but a page failed or a quote was quarantined
	Failing     State = "failing"     // no page could be read, or nothing could be published
	Quarantined State = "quarantined" // pages were read, but no quote was accepted
	Disabled    State = "disabled"    // Definition.Disabled is set
)

// Health is the health of a source, for operators. Times are zero for events that have not happened.
type Health struct {
	SourceID  string
	State     State
	Confirmed bool // the definition has parsed a real answer, according to its evidence or to rates published on this node

	Running     time.Time     // start of the running try; zero = none
	LastTry     time.Time     // start of the newest try
	LastSuccess time.Time     // end of the newest try with a published observation
	LastSlot    time.Time     // newest slot with a published observation, perhaps of an earlier process
	NextRun     time.Time     // start of the next try
	Duration    time.Duration // of the newest try

	ConsecutiveFailures int                           // consecutive slots without a published observation
	Failure             source.Failure                // the newest failure, even after a recovery; Kind "" = none yet
	FailedAt            time.Time                     // time of Failure
	Runs                uint64                        // number of tries since the process started
	Failures            map[source.FailureKind]uint64 // failures of pages and of publishing since the process started

	Counts
	Digests  []string // SHA-256 of the newest document of each page; "" = none
	Notes    []string // skipped parts of the newest try's documents, with reasons
	Baseline Baseline // usual quotes, and the last change of prices
}

// Counts counts the current quotes (observations) of the newest try, without past days.
type Counts struct {
	Read        int
	Accepted    int
	Quarantined int // rejected as implausible; the engine keeps most of them in quarantine
	Repeated    int // already published for this slot
}

func newHealth(d *source.Definition) Health {
	h := Health{
		SourceID: d.ID, State: Never, Confirmed: d.Evidence.Grade == source.Confirmed,
		Failures: map[source.FailureKind]uint64{}, Digests: make([]string, len(d.Pages)),
	}
	if d.Disabled != "" {
		h.State = Disabled
	}
	return h
}

func (r *runner) updateHealth(change func(*Health)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.health)
}

func (r *runner) healthCopy() Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.health
	h.Failures, h.Digests, h.Notes = maps.Clone(h.Failures), slices.Clone(h.Digests), slices.Clone(h.Notes)
	return h
}

// tryResult is the result of one try (see the words in doc.go).
type tryResult struct {
	startedAt, endedAt time.Time
	pages              pageResults
	published          publishOutcome
	late               bool            // the slot had been tried before
	publishFailure     *source.Failure // Config.Sink failed, or the engine rejected all observations; nil = neither
}

// failure returns the most serious failure of a try, or nil. Internal failures of publishing come first, then failures
// of pages, then rejections by the engine.
func (a *tryResult) failure() *source.Failure {
	if a.publishFailure != nil && a.publishFailure.Kind == source.Internal {
		return a.publishFailure
	}
	return cmp.Or(a.pages.failure, a.publishFailure)
}

// record updates the source's health after a try, and logs the changes.
func (r *runner) record(a tryResult) {
	before := r.healthCopy()
	r.updateHealth(func(h *Health) {
		h.Running, h.Duration = time.Time{}, a.endedAt.Sub(a.startedAt)
		h.Runs++
		h.recordOutcome(&a)
		counts := a.published.counts()
		h.Counts = counts
		switch {
		case counts.published() > 0:
			h.LastSuccess, h.LastSlot, h.ConsecutiveFailures, h.Confirmed = a.endedAt, r.slot, 0, true
		case !a.late:
			h.ConsecutiveFailures++
		}
		h.Baseline = r.learnt
		h.State = h.stateAfter(a.pages.failure != nil)
	})
	r.collector.updateConditions(r.collector.config.Clock())
	r.logTry(before, &a)
}

// recordOutcome sets the fields for a try's pages and failures.
func (h *Health) recordOutcome(a *tryResult) {
	h.Notes = nil
	for i := range a.pages.pages {
		page := &a.pages.pages[i]
		h.Digests[page.Page] = page.Digest
		h.Notes = append(h.Notes, page.Notes...)
		if page.Failure != nil {
			h.Failures[page.Failure.Kind]++
		}
	}
	if a.publishFailure != nil {
		h.Failures[a.publishFailure.Kind]++
	}
	if failure := a.failure(); failure != nil {
		h.Failure, h.FailedAt = *failure, a.endedAt
	}
}

// stateAfter returns the state after a try. hasFailed means that a page failed.
func (h *Health) stateAfter(hasFailed bool) State {
	switch {
	case h.published() == 0 && h.Quarantined > 0:
		return Quarantined
	case h.published() == 0:
		return Failing
	case hasFailed || h.Quarantined > 0:
		return Partial
	case len(h.Baseline.Missing()) > 0:
		return Degraded
	}
	return OK
}

// published returns the number of observations published for the slot.
func (c *Counts) published() int { return c.Accepted + c.Repeated }

// counts counts a try's current observations, without past days.
func (o *publishOutcome) counts() Counts {
	c := Counts{Repeated: o.receipt.Repeated}
	for i := range o.refreshes {
		if i >= o.historyCount {
			c.Read += len(o.refreshes[i].Observations)
		}
	}
	for i := range o.receipt.Refused {
		if o.receipt.Refused[i].Refresh >= o.historyCount {
			c.Quarantined++
		}
	}
	c.Accepted = c.Read - c.Quarantined - c.Repeated
	return c
}

// failure returns a failure if the engine rejected all current observations of a try, otherwise nil.
func (o *publishOutcome) failure() *source.Failure {
	if c := o.counts(); c.Read == 0 || c.Quarantined < c.Read {
		return nil
	}
	for i := range o.receipt.Refused {
		if refusal := &o.receipt.Refused[i]; refusal.Refresh >= o.historyCount {
			return source.Failf(source.Implausible, "the rules accepted none of its observations; the first: %s %s: %s: %s",
				refusal.Observation.InstitutionID, refusal.Observation.Currency, refusal.Reason, refusal.Detail)
		}
	}
	return nil
}

// failingDivisor: Condition reports failing sources only if they are at least 1/4 of the tried confirmed sources,
// because a few sites fail every week. Sources that are not confirmed (Health.Confirmed) count only for the state
// all_failing: their definitions may not fit their sites at all.
const failingDivisor = 4

// updateConditions updates the two faults behind Condition. Call it after every try.
func (c *Collector) updateConditions(now time.Time) {
	setFault := func(fault *engine.Fault, active bool) {
		if active {
			fault.Begin(now)
		} else {
			fault.Clear()
		}
	}
	failing, tried := c.countFailing(false)
	setFault(&c.allFailing, tried > 0 && failing == tried)
	failing, tried = c.countFailing(true)
	setFault(&c.someFailing, failing > 0 && failing*failingDivisor >= tried)
}

// countFailing counts the failing sources, and all that were tried.
func (c *Collector) countFailing(onlyConfirmed bool) (failing, tried int) {
	for _, r := range c.runners {
		r.mu.Lock()
		state, isConfirmed := r.health.State, r.health.Confirmed
		r.mu.Unlock()
		if onlyConfirmed && !isConfirmed {
			continue
		}
		switch state {
		case OK, Degraded, Partial:
			tried++
		case Failing, Quarantined:
			tried++
			failing++
		}
	}
	return failing, tried
}

// Condition reports whether many confirmed sources, or all sources, are failing.
func (c *Collector) Condition() engine.Condition {
	now := c.config.Clock()
	if since, active := c.allFailing.Since(now); active {
		failing, tried := c.countFailing(false)
		return engine.Condition{Name: "sources", State: "all_failing", Since: since, Detail: fmt.Sprintf(
			"%d of %d sources gave nothing; rates that were published stay until they expire. Check the network connection of the node.", failing, tried)}
	}
	if since, active := c.someFailing.Since(now); active {
		failing, tried := c.countFailing(true)
		return engine.Condition{Name: "sources", State: "some_failing", Since: since, Detail: fmt.Sprintf(
			"%d of %d confirmed sources gave nothing; their rates stay until they expire. 'tasard sources list' shows which, and why.", failing, tried)}
	}
	return engine.HealthyCondition("sources")
}

// logTry logs a try at debug level. At higher levels it logs only changes of health, so that a source that is down for
// a week does not fill the log.
func (r *runner) logTry(before Health, a *tryResult) {
	log, after := r.collector.config.Logger, r.healthCopy()
	attrs := []any{"source", after.SourceID, "state", string(after.State)}
	log.Debug("source collected", append(attrs, "slot", r.slot, "duration", after.Duration, "read", after.Read,
		"accepted", after.Accepted, "quarantined", after.Quarantined, "repeated", after.Repeated, "failure", failureText(a.failure()))...)
	if after.Baseline.Frozen() && !before.Baseline.Frozen() {
		log.Warn("source has not changed for a long time; check whether it is still maintained", append(attrs,
			"since", after.Baseline.UnchangedSince(), "limit", after.Baseline.FrozenLimit().String())...)
	}
	r.logParts(log, &before.Baseline, &after.Baseline)
	isBad := func(h *Health) bool { return h.State != OK && h.State != Degraded && h.State != Never }
	switch {
	case isBad(&after) && (after.State != before.State || a.failure() != nil && a.failure().Kind != before.Failure.Kind):
		log.Warn("source has a problem", append(attrs, "failure", failureText(a.failure()), "quarantined", after.Quarantined,
			"failedSlots", after.ConsecutiveFailures)...)
	case !isBad(&after) && isBad(&before):
		log.Info("source recovered", attrs...)
	}
}

func failureText(failure *source.Failure) string {
	if failure == nil {
		return ""
	}
	return failure.Error()
}

// logParts logs three changes: the source begins to lack expected sides; it has all of them again; it has never given a
// currency of its definition.
func (r *runner) logParts(log *slog.Logger, before, after *Baseline) {
	missed, missing := before.Missing(), after.Missing()
	switch {
	case len(missed) == 0 && len(missing) > 0:
		log.Warn("source is degraded: it lacks a side that it gave before", "source", r.definition.ID, "missing", missing)
	case len(missed) > 0 && len(missing) == 0:
		log.Info("source lacks no side any more", "source", r.definition.ID)
	}
	if before.Count == after.Count {
		return
	}
	if never := after.neverRead(r.definition.Currencies()); len(never) > 0 {
		log.Warn("source has never given a currency of its definition; check whether its page has it", "source", r.definition.ID, "currencies", never)
	}
}
