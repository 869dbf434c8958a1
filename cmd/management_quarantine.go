package cmd

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tasard/tasard/engine"
)

// Paths of the quarantine. A value in it is named by currency and number: USD/17.
const (
	quarantinePath = "/quarantine"
	releasePath    = quarantinePath + "/{currency}/{number}/release"
	rejectPath     = quarantinePath + "/{currency}/{number}/reject"
)

// What tasard admin is answered about held values.
type (
	shownHeld struct {
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
	// shownVerdict is what became of a held value; Published is the rate that its quote has now.
	shownVerdict struct {
		Held      shownHeld      `json:"held"`
		By        string         `json:"by"`
		Published *shownOffering `json:"published,omitempty"`
	}
)

func (m *management) quarantineRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+quarantinePath, m.listHeld)
	mux.HandleFunc("POST "+releasePath, changing(m.release))
	mux.HandleFunc("POST "+rejectPath, changing(m.reject))
}

// listHeld writes one line for each value in quarantine; currency and source in the query keep the others out.
func (m *management) listHeld(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	currency, source := query.Get("currency"), query.Get("source")
	held, err := m.node.Held(currency)
	if err != nil {
		refuseAdmin(w, err)
		return
	}
	lines := linesTo(w)
	defer lines.end()
	for i := range held {
		if source != "" && held[i].SourceID != source {
			continue
		}
		if !lines.write(describeHeld(&held[i])) {
			return
		}
	}
}

func describeHeld(held *engine.Held) shownHeld {
	seen := &held.Observation
	shown := shownHeld{
		Number: heldNumber(seen.Currency, held.ID), ObservedAt: held.ObservedAt, SourceID: held.SourceID,
		InstitutionID: seen.InstitutionID, Currency: seen.Currency, Channel: cmp.Or(seen.Channel, engine.Unspecified),
		Kind: cmp.Or(seen.Kind, engine.Commercial), Buy: seen.Buy, Sell: seen.Sell, PublishedAt: seen.PublishedAt,
		ExpiresAt: seen.ExpiresAt, Reason: held.Reason, Detail: held.Detail, Document: seen.Document,
	}
	if !seen.EffectiveDate.IsZero() {
		shown.EffectiveDate = seen.EffectiveDate.String()
	}
	return shown
}

// heldNumber names a held value among those of all currencies.
func heldNumber(currency string, id uint64) string { return fmt.Sprintf("%s/%d", currency, id) }

func (m *management) release(r *http.Request, body byRequest) (any, error) {
	return m.judge(r, body, "release", func(id uint64, by string) engine.Command { return engine.Release{HeldID: id, By: by} })
}

func (m *management) reject(r *http.Request, body byRequest) (any, error) {
	return m.judge(r, body, "reject", func(id uint64, by string) engine.Command { return engine.Reject{HeldID: id, By: by} })
}

// judge carries out what the operator decides about a held value.
func (m *management) judge(r *http.Request, body byRequest, operation string, order func(uint64, string) engine.Command) (any, error) {
	if err := checkBy(body.By); err != nil {
		return nil, err
	}
	held, err := m.held(r)
	if err != nil {
		return nil, err
	}
	by, currency := who(r.Context(), body.By), held.Observation.Currency
	if _, err := m.node.Order(currency, order(held.ID, by)); err != nil {
		return nil, err
	}
	verdict := shownVerdict{Held: describeHeld(&held), By: by}
	verdict.Published = m.offering(currency, engine.QuoteKey{
		Institution: held.Observation.InstitutionID, Channel: verdict.Held.Channel, Kind: verdict.Held.Kind,
	})
	m.log.Info("changed by an operator", "operation", operation, "held", verdict.Held.Number, "by", by)
	return verdict, nil
}

// held is the value that the path names.
func (m *management) held(r *http.Request) (engine.Held, error) {
	currency, text := r.PathValue("currency"), r.PathValue("number")
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return engine.Held{}, badRequest("%q is no number of a held value, such as USD/17", currency+"/"+text)
	}
	held, err := m.node.Held(currency)
	if err != nil {
		return engine.Held{}, err
	}
	for i := range held {
		if held[i].ID == id {
			return held[i], nil
		}
	}
	return engine.Held{}, &engine.Error{
		Code: engine.CodeNotFound, Message: fmt.Sprintf("the quarantine of %s has no number %d, or no longer; tasard admin quarantine list tells what it has", currency, id),
	}
}
