package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tasard/tasard/engine"
)

// Responses about quarantined observations: rates that an operator must release before they are published.
type (
	// QuarantineEntry is a quarantined observation. Number consists of currency and id, such as USD/17.
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
	// QuarantineResult is the result of a release or a rejection. Published is the rate that is published after it.
	QuarantineResult struct {
		Entry     QuarantineEntry `json:"entry"`
		By        string          `json:"by"`
		Published *Offer          `json:"published,omitempty"`
	}
)

func (s *Server) listQuarantine(r *http.Request, _ NoBody) ([]QuarantineEntry, error) {
	query := r.URL.Query()
	currency, source := query.Get("currency"), query.Get("source")
	values, err := s.config.Node.Quarantine(currency)
	list := []QuarantineEntry{}
	for i := range values {
		if source == "" || values[i].SourceID == source {
			list = append(list, describeQuarantined(&values[i]))
		}
	}
	return list, err
}

func describeQuarantined(value *engine.Quarantined) QuarantineEntry {
	observation := &value.Observation
	return QuarantineEntry{
		Number: QuarantineNumber(observation.Currency, value.ID), ObservedAt: value.ObservedAt, SourceID: value.SourceID,
		InstitutionID: observation.InstitutionID, Currency: observation.Currency, Channel: cmp.Or(observation.Channel, engine.Unspecified),
		Kind: cmp.Or(observation.Kind, engine.Commercial), Buy: observation.Buy, Sell: observation.Sell, PublishedAt: observation.PublishedAt,
		ExpiresAt: observation.ExpiresAt, Reason: value.Reason, Detail: value.Detail, Document: observation.Document,
		EffectiveDate: observation.EffectiveDate.String(),
	}
}

// QuarantineNumber returns the number of a quarantined value of a currency, such as USD/17.
func QuarantineNumber(currency string, id uint64) string { return fmt.Sprintf("%s/%d", currency, id) }

func (s *Server) release(r *http.Request, body Author) (QuarantineResult, error) {
	return s.decide(r, body, "release", func(id uint64, by string) engine.Command { return engine.Release{QuarantineID: id, By: by} })
}

func (s *Server) reject(r *http.Request, body Author) (QuarantineResult, error) {
	return s.decide(r, body, "reject", func(id uint64, by string) engine.Command { return engine.Reject{QuarantineID: id, By: by} })
}

// decide releases or rejects a quarantined observation.
func (s *Server) decide(r *http.Request, body Author, operation string, newCommand func(uint64, string) engine.Command) (QuarantineResult, error) {
	value, err := s.quarantined(r)
	if err != nil {
		return QuarantineResult{}, err
	}
	by, currency := authorName(r.Context(), body), value.Observation.Currency
	if _, err := s.config.Node.Execute(currency, newCommand(value.ID, by)); err != nil {
		return QuarantineResult{}, err
	}
	result := QuarantineResult{Entry: describeQuarantined(&value), By: by}
	result.Published = s.publishedOffer(currency, engine.QuoteKey{
		Institution: value.Observation.InstitutionID, Channel: result.Entry.Channel, Kind: result.Entry.Kind,
	})
	s.config.Logger.Info("changed by an operator", "operation", operation, "value", result.Entry.Number, "by", by)
	return result, nil
}

// quarantined returns the observation named in the path.
func (s *Server) quarantined(r *http.Request) (engine.Quarantined, error) {
	currency, text := r.PathValue("currency"), r.PathValue("number")
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return engine.Quarantined{}, badRequest("%q: want the number of a quarantined value, such as USD/17", currency+"/"+text)
	}
	values, err := s.config.Node.Quarantine(currency)
	if err != nil {
		return engine.Quarantined{}, err
	}
	for i := range values {
		if values[i].ID == id {
			return values[i], nil
		}
	}
	return engine.Quarantined{}, &engine.Error{
		Code: engine.CodeNotFound, Message: fmt.Sprintf("the quarantine of %s has no number %d (any more); tasard admin quarantine list shows its values", currency, id),
	}
}
