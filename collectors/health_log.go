package collectors

import (
	"log/slog"

	"github.com/tasard/tasard/collectors/source"
)

// notesLoggedMax bounds the notes of a source that are remembered as told; after as many nothing new of it is told.
const notesLoggedMax = 256

// logTry writes one line for a try, at the level of debug; at higher levels only what has changed, so that a source which is
// down for a week fills no log.
func (r *runner) logTry(before Health, a *attempt) {
	log, after := r.collector.config.Logger, r.healthCopy()
	line := []any{"source", after.SourceID, "state", string(after.State)}
	log.Debug("source collected", append(line, "slot", r.slot, "try", r.tries, "duration", after.Duration, "read", after.Read,
		"accepted", after.Accepted, "held", after.Quarantined, "repeated", after.Repeated, "failure", failureText(a.failure()))...)
	r.logNotes(log, after)
	if after.Frozen && !before.Frozen {
		log.Warn("source says the same for long; is it still kept?", append(line, "since", after.UnchangedSince)...)
	}
	bad := func(h *Health) bool { return h.State != OK && h.State != Never }
	switch {
	case bad(&after) && (after.State != withoutCircuit(before.State) || a.failure() != nil && a.failure().Kind != before.Failure.Kind):
		log.Warn("source gives less than it should", append(line, "failure", failureText(a.failure()), "held", after.Quarantined,
			"failedSlots", after.ConsecutiveFailures, "next", "its rates stay until they expire")...)
	case !bad(&after) && bad(&before):
		log.Info("source is well again", line...)
	}
}

// withoutCircuit is the state before a try for who compares: a resting source that fails again fails as before.
func withoutCircuit(s State) State {
	if s == CircuitOpen {
		return Failing
	}
	return s
}

func failureText(failure *source.Failure) string {
	if failure == nil {
		return ""
	}
	return failure.Error()
}

// logNotes tells each note once: labels that nobody knows yet, fields that are missing.
func (r *runner) logNotes(log *slog.Logger, h Health) {
	for _, note := range h.Notes {
		if !r.loggedNotes[note] && len(r.loggedNotes) < notesLoggedMax {
			r.loggedNotes[note] = true
			log.Info("source left something out", "source", h.SourceID, "note", note)
		}
	}
}

// openCircuit puts the source to rest; the log hears of the first time.
func (r *runner) openCircuit(first bool) {
	r.updateHealth(func(h *Health) { h.State = CircuitOpen })
	if first {
		after := r.healthCopy()
		r.collector.config.Logger.Warn("source rests: it is tried once a day until it can be read again",
			"source", after.SourceID, "failedSlots", after.ConsecutiveFailures, "until", r.breaker.nextProbe().String())
	}
}
