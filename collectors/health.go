package collectors

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tasard/tasard/collectors/source"
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
