package collectors

import (
	"log/slog"

	"github.com/tasard/tasard/collectors/source"
)

// notesToldMax bounds the notes of a source that are remembered as told; after as many nothing new of it is told.
const notesToldMax = 256

// tell writes one line for a try, at the level of debug; at higher levels only what has changed, so that a source which is
// down for a week fills no log.
func (r *runner) tell(before Health, a *attempt) {
	log, after := r.collector.config.Logger, r.report()
	line := []any{"source", after.SourceID, "state", string(after.State)}
	log.Debug("source collected", append(line, "slot", r.slot, "try", r.tries, "duration", after.Duration, "read", after.Read,
		"accepted", after.Accepted, "held", after.Held, "repeated", after.Repeated, "failure", describe(a.failure()))...)
	r.tellNotes(log, after)
	if after.Frozen && !before.Frozen {
		log.Warn("source says the same for long; is it still kept?", append(line, "since", after.UnchangedSince)...)
	}
	bad := func(h *Health) bool { return h.State != OK && h.State != Never }
	switch {
	case bad(&after) && (after.State != calm(before.State) || a.failure() != nil && a.failure().Kind != before.Failure.Kind):
		log.Warn("source gives less than it should", append(line, "failure", describe(a.failure()), "held", after.Held,
			"failedSlots", after.ConsecutiveFailures, "next", "its rates stay until they expire")...)
	case !bad(&after) && bad(&before):
		log.Info("source is well again", line...)
	}
}

// calm is the state before a try for who compares: a resting source that fails again fails as before.
func calm(s State) State {
	if s == Resting {
		return Failing
	}
	return s
}

func describe(failure *source.Failure) string {
	if failure == nil {
		return ""
	}
	return failure.Error()
}

// tellNotes tells each note once: labels that nobody knows yet, fields that are missing.
func (r *runner) tellNotes(log *slog.Logger, h Health) {
	for _, note := range h.Notes {
		if !r.told[note] && len(r.told) < notesToldMax {
			r.told[note] = true
			log.Info("source left something out", "source", h.SourceID, "note", note)
		}
	}
}

// rest puts the source to rest; the log hears of the first time.
func (r *runner) rest(first bool) {
	r.note(func(h *Health) { h.State = Resting })
	if first {
		after := r.report()
		r.collector.config.Logger.Warn("source rests: it is tried once a day until it can be read again",
			"source", after.SourceID, "failedSlots", after.ConsecutiveFailures, "until", r.breaker.wakes().String())
	}
}
