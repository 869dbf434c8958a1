package admin

import (
	"net/http"

	"github.com/tasard/tasard/engine"
)

// SourceRun is the result of fetching a source once at the request of an operator.
type SourceRun struct {
	Source         string         `json:"source"`
	DurationMillis int64          `json:"durationMillis"`
	Pages          []SourcePage   `json:"pages"`
	Rates          []SourceRate   `json:"rates"`
	HistoryDays    int            `json:"historyDays"`       // past days that were read
	Failure        *SourceFailure `json:"failure,omitempty"` // a page failed, or nothing could be published
}

// SourcePage says how a page was read.
type SourcePage struct {
	Name    string         `json:"name,omitempty"`
	Digest  string         `json:"digest,omitempty"` // SHA-256 of the document; "" = none was fetched
	Notes   []string       `json:"notes,omitempty"`  // parts of the document that were skipped, and why
	Failure *SourceFailure `json:"failure,omitempty"`
}

// SourceRate is a rate that was read. Reason is "" if it was accepted.
type SourceRate struct {
	InstitutionID string         `json:"institutionId"`
	Currency      string         `json:"currency"`
	Channel       engine.Channel `json:"channel"`
	Kind          engine.Kind    `json:"kind"`
	Buy           string         `json:"buy,omitempty"`
	Sell          string         `json:"sell,omitempty"`
	EffectiveDate string         `json:"effectiveDate,omitempty"`
	Reason        engine.Reason  `json:"reason,omitempty"` // why the rate was not published
	Detail        string         `json:"detail,omitempty"`
	Quarantined   string         `json:"quarantined,omitempty"` // number of the value in quarantine, such as USD/1
}

func (s *Server) runSource(r *http.Request, body Author) (SourceRun, error) {
	id, by := r.PathValue("source"), authorName(r.Context(), body)
	if s.config.RunSource == nil {
		return SourceRun{}, &engine.Error{Code: CodeNotConfigured, Message: "this node has no sources"}
	}
	run, err := s.config.RunSource(r.Context(), id)
	if err == nil {
		s.config.Logger.Info("changed by an operator", "operation", "run source", "source", id, "rates", len(run.Rates), "by", by)
	}
	return run, err
}
