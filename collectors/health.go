package collectors

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// State is the state of a source.
type State string

// The states of a source.
const (
	Never       State = "never"        // not tried yet
	OK          State = "ok"           // everything was read and accepted
	Partial     State = "partial"      // something was accepted, but a page failed or a value was quarantined
	Failing     State = "failing"      // nothing could be read or published
	CircuitOpen State = "circuit_open" // failing for long: tried once a day
	Quarantined State = "quarantined"  // read, but no value was accepted
	Disabled    State = "disabled"     // by its definition
)

// Health is the health of a source, for operators. Times are zero if the event has not happened.
type Health struct {
	SourceID string
	State    State

	Running     time.Time // begin of the current try, zero = none
	LastTry     time.Time // begin of the last try
	LastSuccess time.Time // when an observation was last accepted
	LastSlot    time.Time // the newest slot with accepted observations, also of an earlier process
	NextRun     time.Time
	Duration    time.Duration // of the last try

	ConsecutiveFailures int                           // slots without accepted observations
	Failure             source.Failure                // the last one, kept after a recovery; Kind "" = none yet
	FailedAt            time.Time                     // time of Failure
	Runs                uint64                        // tries since the start
	Failures            map[source.FailureKind]uint64 // by kind since the start: failed pages, and tries that the engine refused

	Counts
	Digests        []string  // of the last document of each page, "" = none
	Notes          []string  // what the last try left out, and why
	UnchangedSince time.Time // since when the values are the same, as far as this process or their dates tell
	Frozen         bool      // the values have not changed for a long time
}

// Counts counts the current observations of the newest slot, over all its tries.
type Counts struct {
	Read        int
	Accepted    int
	Quarantined int // refused by the rules, most of them kept in quarantine
	Repeated    int // published for this slot before
}

func newHealth(d *source.Definition) Health {
	h := Health{
		SourceID: d.ID, State: Never,
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

// attempt is one try, from its begin to its outcome.
type attempt struct {
	began, ended   time.Time
	pages          pageResults
	published      publishOutcome
	publishFailure *source.Failure // of a sink that failed, or of rules that accepted nothing; nil = neither
}

// failure returns the most serious failure: first one of our own, then one of reading, then one of the rules.
func (a *attempt) failure() *source.Failure {
	if a.publishFailure != nil && a.publishFailure.Kind == source.Internal {
		return a.publishFailure
	}
	return cmp.Or(a.pages.failure, a.publishFailure)
}

// record updates the health after a try, and logs what has changed.
func (r *runner) record(a attempt) {
	before := r.healthCopy()
	r.changes.observe(a.pages, a.ended)
	r.updateHealth(func(h *Health) {
		h.Running, h.Duration = time.Time{}, a.ended.Sub(a.began)
		h.Runs++
		h.recordOutcome(&a)
		counted := a.published.counts()
		h.add(counted)
		switch {
		case counted.published() > 0:
			h.LastSuccess, h.LastSlot, h.ConsecutiveFailures = a.ended, r.slot, 0
		case h.published() == 0 && r.tries == 1:
			h.ConsecutiveFailures++
		}
		h.UnchangedSince = r.changes.since()
		h.Frozen = !h.UnchangedSince.IsZero() && a.ended.Sub(h.UnchangedSince) > frozenAfter
		h.State = h.stateAfter(len(r.pendingPages) > 0)
	})
	r.collector.updateConditions(r.collector.config.Clock())
	r.logTry(before, &a)
}

// recordOutcome takes over the results and failures of the pages.
func (h *Health) recordOutcome(a *attempt) {
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
		h.Failure, h.FailedAt = *failure, a.ended
	}
}

// stateAfter returns the state after a try. The end of the slot may change it to CircuitOpen.
func (h *Health) stateAfter(open bool) State {
	switch {
	case h.published() == 0 && h.Quarantined > 0:
		return Quarantined
	case h.published() == 0:
		return Failing
	case open || h.Quarantined > 0:
		return Partial
	}
	return OK
}

// add adds a further try of the slot.
func (t *Counts) add(more Counts) {
	t.Read += more.Read
	t.Accepted += more.Accepted
	t.Quarantined += more.Quarantined
	t.Repeated += more.Repeated
}

// published is the number of current observations that are published.
func (t *Counts) published() int { return t.Accepted + t.Repeated }

// counts counts the current observations, without history.
func (h *publishOutcome) counts() Counts {
	t := Counts{Repeated: h.receipt.Repeated}
	for i := range h.refreshes {
		if i >= h.historyCount {
			t.Read += len(h.refreshes[i].Observations)
		}
	}
	for i := range h.receipt.Refused {
		if h.receipt.Refused[i].Refresh >= h.historyCount {
			t.Quarantined++
		}
	}
	t.Accepted = t.Read - t.Quarantined - t.Repeated
	return t
}

// failure is the failure of a try of which the rules accepted nothing, otherwise nil.
func (h *publishOutcome) failure() *source.Failure {
	if t := h.counts(); t.Read == 0 || t.Quarantined < t.Read {
		return nil
	}
	for i := range h.receipt.Refused {
		if refusal := &h.receipt.Refused[i]; refusal.Refresh >= h.historyCount {
			return source.Failf(source.Implausible, "the rules accepted none of its observations; the first: %s %s: %s: %s",
				refusal.Observation.InstitutionID, refusal.Observation.Currency, refusal.Reason, refusal.Detail)
		}
	}
	return nil
}
