package admin

import (
	"cmp"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/tasard/tasard/engine"
)

// Answers about quarantined values.
type (
	// QuarantineEntry is a quarantined value. Its number is currency and number: USD/17.
	QuarantineEntry struct {
		Number        string         `json:"number"`
		ObservedAt    time.Time      `json:"observedAt"`
		SourceID      string         `json:"sourceId"`
		InstitutionID string         `json:"institutionId"`
		Currency      string         `json:"currency"`
		Channel       engine.Channel `json:"channel"`
		Kind          engine.Kind    `json:"kind"`
		Buy           string         `json:"buy"`
		Sell          string         `json:"sell"`
		EffectiveDate string         `json:"effectiveDate,omitempty"`
		PublishedAt   time.Time      `json:"publishedAt,omitzero"`
		ExpiresAt     time.Time      `json:"expiresAt,omitzero"`
		Reason        engine.Reason  `json:"reason"`
		Detail        string         `json:"detail"`
		Document      string         `json:"document,omitempty"`
	}
	// QuarantineResult is the outcome of a decision; Published is the rate that is published now.
	QuarantineResult struct {
		Entry     QuarantineEntry `json:"entry"`
		By        string          `json:"by"`
		Published *Offer          `json:"published,omitempty"`
	}
)

// listQuarantine returns the quarantined values that the query selects by currency and source.
func (s *Server) listQuarantine(r *http.Request) (iter.Seq[QuarantineEntry], error) {
	query := r.URL.Query()
	currency, source := query.Get("currency"), query.Get("source")
	held, err := s.config.Node.Quarantine(currency)
	return func(yield func(QuarantineEntry) bool) {
		for i := range held {
			if (source == "" || held[i].SourceID == source) && !yield(describeQuarantined(&held[i])) {
				return
			}
		}
	}, err
}

func describeQuarantined(held *engine.Quarantined) QuarantineEntry {
	seen := &held.Observation
	shown := QuarantineEntry{
		Number: quarantineNumber(seen.Currency, held.ID), ObservedAt: held.ObservedAt, SourceID: held.SourceID,
		InstitutionID: seen.InstitutionID, Currency: seen.Currency, Channel: cmp.Or(seen.Channel, engine.Unspecified),
		Kind: cmp.Or(seen.Kind, engine.Commercial), Buy: seen.Buy, Sell: seen.Sell, PublishedAt: seen.PublishedAt,
		ExpiresAt: seen.ExpiresAt, Reason: held.Reason, Detail: held.Detail, Document: seen.Document,
	}
	if !seen.EffectiveDate.IsZero() {
		shown.EffectiveDate = seen.EffectiveDate.String()
	}
	return shown
}

// quarantineNumber returns a number that is unique over all currencies.
func quarantineNumber(currency string, id uint64) string { return fmt.Sprintf("%s/%d", currency, id) }

func (s *Server) release(r *http.Request, body Author) (QuarantineResult, error) {
	return s.decide(r, body, "release", func(id uint64, by string) engine.Command { return engine.Release{QuarantineID: id, By: by} })
}

func (s *Server) reject(r *http.Request, body Author) (QuarantineResult, error) {
	return s.decide(r, body, "reject", func(id uint64, by string) engine.Command { return engine.Reject{QuarantineID: id, By: by} })
}

// decide carries out the operator's decision about a quarantined value.
func (s *Server) decide(r *http.Request, body Author, operation string, order func(uint64, string) engine.Command) (QuarantineResult, error) {
	held, err := s.quarantined(r)
	if err != nil {
		return QuarantineResult{}, err
	}
	by, currency := authorName(r.Context(), body), held.Observation.Currency
	if _, err := s.config.Node.Execute(currency, order(held.ID, by)); err != nil {
		return QuarantineResult{}, err
	}
	verdict := QuarantineResult{Entry: describeQuarantined(&held), By: by}
	verdict.Published = s.publishedOffer(currency, engine.QuoteKey{
		Institution: held.Observation.InstitutionID, Channel: verdict.Entry.Channel, Kind: verdict.Entry.Kind,
	})
	s.config.Logger.Info("changed by an operator", "operation", operation, "value", verdict.Entry.Number, "by", by)
	return verdict, nil
}

// quarantined returns the value that the path names.
func (s *Server) quarantined(r *http.Request) (engine.Quarantined, error) {
	currency, text := r.PathValue("currency"), r.PathValue("number")
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return engine.Quarantined{}, badRequest("%q: want the number of a quarantined value, such as USD/17", currency+"/"+text)
	}
	held, err := s.config.Node.Quarantine(currency)
	if err != nil {
		return engine.Quarantined{}, err
	}
	for i := range held {
		if held[i].ID == id {
			return held[i], nil
		}
	}
	return engine.Quarantined{}, &engine.Error{
		Code: engine.CodeNotFound, Message: fmt.Sprintf("the quarantine of %s has no number %d (any more); tasard admin quarantine list shows its values", currency, id),
	}
}
