package collectors

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// State is how a source is, in one word.
type State string

// The closed list of states.
const (
	Never       State = "never"    // not tried yet
	OK          State = "ok"       // everything was read and taken in
	Partial     State = "partial"  // something was, but a page failed or the rules held something back
	Failing     State = "failing"  // nothing could be read, or handed over
	CircuitOpen State = "resting"  // the same for long: it is tried only now and then
	Quarantined State = "held"     // read well, and all of it held back by the rules (I3)
	Disabled    State = "disabled" // its definition says that it is not collected
)

// Health is how a source is, for operators: management and metrics, never /v1. Times are zero when it never happened.
type Health struct {
	SourceID string
	State    State

	Running     time.Time // since when it is being asked, zero = it is not
	LastTry     time.Time // when the last try began
	LastSuccess time.Time // when something of it was taken in last
	LastSlot    time.Time // the newest slot that something was taken in for, by this process or the one before
	NextRun     time.Time
	Duration    time.Duration // of the last try

	ConsecutiveFailures int                           // slots in a row of which nothing was taken in
	Failure             source.Failure                // the last one; it stays after a recovery. Kind "" = none yet
	FailedAt            time.Time                     // when that was
	Runs                uint64                        // tries since the start
	Failures            map[source.FailureKind]uint64 // by kind since the start: each page, and each try that the engine did not take

	Counts
	Digests        []string  // of the last document of each page, "" = none came
	Notes          []string  // what the last try left out, and why
	UnchangedSince time.Time // since when it says the same, as far as this process or its dates tell
	Frozen         bool      // for so long that somebody should look
}

// Counts counts observations of the newest slot, over all its tries.
type Counts struct {
	Read        int // of now
	Accepted    int
	Quarantined int // refused by the rules, most of them kept in quarantine
	Repeated    int // heard for this slot before
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

// updateHealth changes the health.
func (r *runner) updateHealth(change func(*Health)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.health)
}

// healthCopy is a copy of the health.
func (r *runner) healthCopy() Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.health
	h.Failures, h.Digests, h.Notes = maps.Clone(h.Failures), slices.Clone(h.Digests), slices.Clone(h.Notes)
	return h
}

// attempt is one try, from its beginning to what became of it.
type attempt struct {
	began, ended   time.Time
	pages          pageResults
	published      publishOutcome
	publishFailure *source.Failure // of the handover: a sink that failed, or rules that believed nothing; nil = neither
}

// failure is what to say about the try: what we could not keep, else what we could not read, else what was not believed.
func (a *attempt) failure() *source.Failure {
	if a.publishFailure != nil && a.publishFailure.Kind == source.Internal {
		return a.publishFailure
	}
	return cmp.Or(a.pages.failure, a.publishFailure)
}

// record writes down how a try went, and tells the log what has changed.
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

// recordOutcome takes over what the pages gave, and how they failed.
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

// updateConditions is the state after a try; a source that rests is put to rest by the end of its slot.
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

// add counts a further try of the slot.
func (t *Counts) add(more Counts) {
	t.Read += more.Read
	t.Accepted += more.Accepted
	t.Quarantined += more.Quarantined
	t.Repeated += more.Repeated
}

// accepted are the observations of now that are published.
func (t *Counts) published() int { return t.Accepted + t.Repeated }

// counts tells what was said now from the days of the past.
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

// failure is the failure of an answer of which nothing was believed, nil when something was.
func (h *publishOutcome) failure() *source.Failure {
	if t := h.counts(); t.Read == 0 || t.Quarantined < t.Read {
		return nil
	}
	for i := range h.receipt.Refused {
		if refusal := &h.receipt.Refused[i]; refusal.Refresh >= h.historyCount {
			return source.Failf(source.Implausible, "nothing of it was believed; the first: %s %s: %s: %s",
				refusal.Observation.InstitutionID, refusal.Observation.Currency, refusal.Reason, refusal.Detail)
		}
	}
	return nil
}
