package collectors

import (
	"log/slog"

	"github.com/tasard/tasard/collectors/source"
)

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
