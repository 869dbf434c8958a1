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
	Never    State = "never"    // not tried yet
	OK       State = "ok"       // everything was read and taken in
	Partial  State = "partial"  // something was, but a page failed or the rules held something back
	Failing  State = "failing"  // nothing could be read, or handed over
	Resting  State = "resting"  // the same for long: it is tried only now and then
	Held     State = "held"     // read well, and all of it held back by the rules (I3)
	Disabled State = "disabled" // its definition says that it is not collected
)

// Health is how a source is, for operators: management and metrics, never /v1. Times are zero when it never happened.
type Health struct {
	SourceID      string
	Name          string
	InstitutionID string // "" when its rows name their own
	State         State
	Disabled      string // why, for the state Disabled

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

	Tally
	Digests        []string  // of the last document of each page, "" = none came
	Notes          []string  // what the last try left out, and why
	UnchangedSince time.Time // since when it says the same, as far as this process or its dates tell
	Frozen         bool      // for so long that somebody should look
}

// Tally counts observations of the newest slot, over all its tries.
type Tally struct {
	Read     int // of now
	Accepted int
	Held     int // refused by the rules, most of them kept in quarantine
	Repeated int // heard for this slot before
	Past     int // of days before
	PastHeld int
}

func newHealth(d *source.Definition) Health {
	h := Health{
		SourceID: d.ID, Name: d.Name, InstitutionID: d.Institution, State: Never, Disabled: d.Disabled,
		Failures: map[source.FailureKind]uint64{}, Digests: make([]string, len(d.Pages)),
	}
	if d.Disabled != "" {
		h.State = Disabled
	}
	return h
}

// note changes the health.
func (r *runner) note(change func(*Health)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.health)
}

// report is a copy of the health.
func (r *runner) report() Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.health
	h.Failures, h.Digests, h.Notes = maps.Clone(h.Failures), slices.Clone(h.Digests), slices.Clone(h.Notes)
	return h
}

// attempt is one try, from its beginning to what became of it.
type attempt struct {
	began, ended time.Time
	read         reading
	handed       handover
	refused      *source.Failure // of the handover: a sink that failed, or rules that believed nothing; nil = neither
}

// failure is what to say about the try: what we could not keep, else what we could not read, else what was not believed.
func (a *attempt) failure() *source.Failure {
	if a.refused != nil && a.refused.Kind == source.Internal {
		return a.refused
	}
	return cmp.Or(a.read.failure, a.refused)
}

// write writes down how a try went, and tells the log what has changed.
func (r *runner) write(a attempt) {
	before := r.report()
	r.watch.look(a.read, a.ended)
	r.note(func(h *Health) {
		h.Running, h.Duration = time.Time{}, a.ended.Sub(a.began)
		h.Runs++
		h.outcome(&a)
		counted := a.handed.count()
		h.add(counted)
		switch {
		case counted.taken() > 0:
			h.LastSuccess, h.LastSlot, h.ConsecutiveFailures = a.ended, r.slot, 0
		case h.taken() == 0 && r.tries == 1:
			h.ConsecutiveFailures++
		}
		h.UnchangedSince = r.watch.since()
		h.Frozen = !h.UnchangedSince.IsZero() && a.ended.Sub(h.UnchangedSince) > r.collector.config.FrozenAfter
		h.State = h.judge(len(r.open) > 0)
	})
	r.collector.judge(r.collector.config.Clock())
	r.tell(before, &a)
}

// outcome takes over what the pages gave, and how they failed.
func (h *Health) outcome(a *attempt) {
	h.Notes = nil
	for i := range a.read.pages {
		page := &a.read.pages[i]
		h.Digests[page.Page] = page.Digest
		h.Notes = append(h.Notes, page.Notes...)
		if page.Failure != nil {
			h.Failures[page.Failure.Kind]++
		}
	}
	if a.refused != nil {
		h.Failures[a.refused.Kind]++
	}
	if failure := a.failure(); failure != nil {
		h.Failure, h.FailedAt = *failure, a.ended
	}
}

// judge is the state after a try; a source that rests is put to rest by the end of its slot.
func (h *Health) judge(open bool) State {
	switch {
	case h.taken() == 0 && h.Held > 0:
		return Held
	case h.taken() == 0:
		return Failing
	case open || h.Held > 0:
		return Partial
	}
	return OK
}

// add counts a further try of the slot.
func (t *Tally) add(more Tally) {
	t.Read += more.Read
	t.Accepted += more.Accepted
	t.Held += more.Held
	t.Repeated += more.Repeated
	t.Past += more.Past
	t.PastHeld += more.PastHeld
}

// taken are the observations of now that are published.
func (t *Tally) taken() int { return t.Accepted + t.Repeated }

// count tells what was said now from the days of the past.
func (h *handover) count() Tally {
	t := Tally{Repeated: h.receipt.Repeated}
	for i := range h.refreshes {
		if n := len(h.refreshes[i].Observations); i < h.past {
			t.Past += n
		} else {
			t.Read += n
		}
	}
	for i := range h.receipt.Refused {
		if h.receipt.Refused[i].Refresh < h.past {
			t.PastHeld++
		} else {
			t.Held++
		}
	}
	t.Accepted = t.Read - t.Held - t.Repeated
	return t
}

// implausible is the failure of an answer of which nothing was believed, nil when something was.
func (h *handover) implausible() *source.Failure {
	if t := h.count(); t.Read == 0 || t.Held < t.Read {
		return nil
	}
	for i := range h.receipt.Refused {
		if refusal := &h.receipt.Refused[i]; refusal.Refresh >= h.past {
			return source.Fail(source.Implausible, "nothing of it was believed; the first: %s %s: %s: %s",
				refusal.Observation.InstitutionID, refusal.Observation.Currency, refusal.Reason, refusal.Detail)
		}
	}
	return nil
}
