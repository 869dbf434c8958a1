package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tasard/tasard/engine"
)

const (
	// ManualSource is the source id of manual rates.
	ManualSource = "manual"
	// ManualLifeMax is the maximum lifetime of a manual rate, so that operators review each one once a year.
	ManualLifeMax = 366 * 24 * time.Hour
)

// Bodies of requests about rates. Buy, Sell and EffectiveDate are optional; "" means not given.
type (
	// Quote identifies a rate; it contains no prices. Channel is the place of the rate, such as branch or digital, by
	// default unspecified. Kind is commercial (the default) or reference.
	Quote struct {
		Institution string         `json:"institution"`
		Currency    string         `json:"currency"`
		Channel     engine.Channel `json:"channel,omitempty"`
		Kind        engine.Kind    `json:"kind,omitempty"`
	}
	// ManualRate is a rate set by an operator.
	ManualRate struct {
		Quote
		Buy           string    `json:"buy,omitempty"`
		Sell          string    `json:"sell,omitempty"`
		EffectiveDate string    `json:"effectiveDate,omitempty"`
		ExpiresAt     time.Time `json:"expiresAt,omitzero"`
		For           string    `json:"for,omitempty"` // duration such as 6h, instead of ExpiresAt
		Author
	}
	// Withdrawal removes one source's rate for a Quote.
	Withdrawal struct {
		Quote
		Source string `json:"source"`
		Author
	}
)

// Responses about rates.
type (
	// Offer is the published rate for a Quote.
	Offer struct {
		Buy       string    `json:"buy,omitempty"`
		Sell      string    `json:"sell,omitempty"`
		SourceID  string    `json:"sourceId"`
		ExpiresAt time.Time `json:"expiresAt"`
		Stale     bool      `json:"stale"`
	}
	// RateChange is the result of a ManualRate or a Withdrawal. Published is the published rate after the change. If
	// the manual rate was quarantined, Quarantined describes it, and the published rate is the same as before.
	RateChange struct {
		ID          string           `json:"id"`
		SourceID    string           `json:"sourceId"`
		By          string           `json:"by"`
		Quarantined *QuarantineEntry `json:"quarantined,omitempty"`
		Published   *Offer           `json:"published,omitempty"`
		Notices     []string         `json:"notices,omitempty"` // rates withdrawn or confirmed by the change, and why
	}
)

func (s *Server) setRate(r *http.Request, body ManualRate) (RateChange, error) {
	key, err := s.quoteKey(&body.Quote)
	if err != nil {
		return RateChange{}, err
	}
	now, by := s.config.Clock().Truncate(time.Second), authorName(r.Context(), body.Author)
	observation, err := s.manualObservation(&body, key, now)
	if err != nil {
		return RateChange{}, err
	}
	receipt, err := s.config.Node.Observe([]engine.Refresh{{
		SourceID: ManualSource, ObservedAt: now, By: by, Observations: []engine.Observation{observation},
	}})
	if err != nil {
		return RateChange{}, err
	}
	answer := RateChange{ID: key.ID(body.Currency), SourceID: ManualSource, By: by, Published: s.publishedOffer(body.Currency, key)}
	for _, notice := range receipt.Notices {
		answer.Notices = append(answer.Notices, notice.String())
	}
	if len(receipt.Refused) > 0 {
		refused := &receipt.Refused[0]
		if refused.QuarantineID == 0 {
			return RateChange{}, badRequest("the rate is refused: %s: %s", refused.Reason, refused.Detail)
		}
		entry := describeQuarantined(&engine.Quarantined{
			ID: refused.QuarantineID, SourceID: ManualSource, ObservedAt: now, Observation: refused.Observation,
			Reason: refused.Reason, Detail: refused.Detail,
		})
		answer.Quarantined = &entry
	}
	s.config.Logger.Info("changed by an operator", "operation", "set rate", "rate", answer.ID, "buy", body.Buy, "sell", body.Sell,
		"expiresAt", observation.ExpiresAt, "quarantined", answer.Quarantined != nil, "by", by)
	return answer, nil
}

// manualObservation checks a manual rate and converts it to an observation, like the rates of sources. It rejects a
// value that can never be published, so that the operator sees the mistake at once; the engine would only quarantine
// the value.
func (s *Server) manualObservation(body *ManualRate, key engine.QuoteKey, now time.Time) (engine.Observation, error) {
	observation := engine.Observation{
		InstitutionID: key.Institution, Currency: body.Currency, Channel: key.Channel, Kind: key.Kind, Buy: body.Buy, Sell: body.Sell,
	}
	if body.Buy == "" && body.Sell == "" {
		return observation, badRequest("a rate needs a side: buy, sell or both")
	}
	buy, err := readSide("buy", body.Buy)
	if err != nil {
		return observation, err
	}
	sell, err := readSide("sell", body.Sell)
	if err != nil {
		return observation, err
	}
	if !buy.IsNull() && !sell.IsNull() && buy.Compare(sell) > 0 {
		return observation, badRequest("buy %s, which the institution pays, is above sell %s, which it asks", body.Buy, body.Sell)
	}
	if body.EffectiveDate != "" {
		if observation.EffectiveDate, err = engine.ParseDate(body.EffectiveDate); err != nil {
			return observation, badRequest("%q: want a date, such as 2027-01-31", body.EffectiveDate)
		}
	}
	observation.ExpiresAt, err = s.manualExpiry(body, now)
	return observation, err
}

// readSide is ParseSide, but returns the null decimal for "".
func readSide(name, text string) (engine.Decimal, error) {
	if text == "" {
		return engine.Decimal{}, nil
	}
	side, err := ParseSide(text)
	if err != nil {
		return side, badRequest("%s: %v", name, err)
	}
	return side, nil
}

// ParseSide parses one side of a rate, buy or sell: a positive decimal without leading zeros. A leading zero, as in
// 057.5, is probably a typing error.
func ParseSide(text string) (engine.Decimal, error) {
	side, err := engine.ParseDecimal(text)
	if err != nil || side.IsZero() || len(text) > 1 && text[0] == '0' && text[1] != '.' {
		return side, fmt.Errorf("%q: want a rate, such as 58.95", text)
	}
	return side, nil
}

func (s *Server) manualExpiry(body *ManualRate, now time.Time) (time.Time, error) {
	expiry := now.Add(s.config.Catalogue.Source(ManualSource).Lifetime)
	switch {
	case body.For != "" && !body.ExpiresAt.IsZero():
		return expiry, badRequest("want one of expiresAt and for, found both")
	case body.For != "":
		lifetime, err := time.ParseDuration(body.For)
		if err != nil {
			return expiry, badRequest("%q: want a duration, such as 6h", body.For)
		}
		expiry = now.Add(lifetime)
	case !body.ExpiresAt.IsZero():
		expiry = body.ExpiresAt
	}
	if !expiry.After(now) || expiry.Sub(now) > ManualLifeMax {
		return expiry, badRequest("the rate would expire at %s; want an instant within the next %d days", expiry.UTC().Format(time.RFC3339), ManualLifeMax/(24*time.Hour))
	}
	return expiry, nil
}

// quoteKey checks the Quote of a request and converts it to a key, with defaults for missing fields.
func (s *Server) quoteKey(body *Quote) (engine.QuoteKey, error) {
	key := engine.QuoteKey{
		Institution: body.Institution,
		Channel:     cmp.Or(body.Channel, engine.Unspecified), Kind: cmp.Or(body.Kind, engine.Commercial),
	}
	if _, ok := s.config.Catalogue.Institution(body.Institution); !ok {
		return key, badRequest("the catalogue has no institution %q; GET /v1/institutions lists them", body.Institution)
	}
	if _, ok := s.config.Catalogue.Currency(body.Currency); !ok {
		return key, badRequest("the catalogue has no currency %q", body.Currency)
	}
	if _, ok := engine.ParseChannel(string(key.Channel)); !ok {
		return key, badRequest("there is no channel %q", body.Channel)
	}
	if _, ok := engine.ParseKind(string(key.Kind)); !ok {
		return key, badRequest("there is no kind %q", body.Kind)
	}
	return key, nil
}

func (s *Server) withdrawRate(r *http.Request, body Withdrawal) (RateChange, error) {
	key, err := s.quoteKey(&body.Quote)
	if err != nil {
		return RateChange{}, err
	}
	by := authorName(r.Context(), body.Author)
	if _, err := s.config.Node.Execute(body.Currency, engine.Withdraw{Key: key, SourceID: body.Source, By: by}); err != nil {
		return RateChange{}, err
	}
	s.config.Logger.Info("changed by an operator", "operation", "withdraw rate", "rate", key.ID(body.Currency), "source", body.Source, "by", by)
	return RateChange{ID: key.ID(body.Currency), SourceID: body.Source, By: by, Published: s.publishedOffer(body.Currency, key)}, nil
}

// publishedOffer returns the published rate of a key, or nil if there is none.
func (s *Server) publishedOffer(currency string, key engine.QuoteKey) *Offer {
	page, err := s.config.Node.Rates(engine.RatesQuery{
		Filter:      engine.Filter{Currency: currency, Institution: key.Institution, Channel: key.Channel, Kind: key.Kind},
		PageRequest: engine.PageRequest{Limit: 1},
	})
	if err != nil || len(page.Items) == 0 {
		return nil
	}
	rate := page.Items[0]
	return &Offer{rate.Buy.String(), rate.Sell.String(), rate.SourceID, rate.ExpiresAt, rate.Stale}
}

// Observations are rates from an imported file. The response lists the refused observations and the reasons.
type Observations struct {
	Refreshes []engine.Refresh `json:"refreshes"`
}

func (s *Server) importObservations(r *http.Request, body Observations) (engine.Receipt, error) {
	receipt, err := s.config.Node.Observe(body.Refreshes)
	if err == nil {
		s.config.Logger.Info("observations imported by an operator", "accepted", receipt.Accepted, "new", receipt.Changed, "refused", len(receipt.Refused),
			"by", authorName(r.Context(), Author{}))
	}
	return receipt, err
}

// Importer sends observations to a running node. It implements engine.Ingester.
type Importer struct {
	Context context.Context //nolint:containedctx // the methods of engine.Ingester have none
	Client  *Client
}

// Observe implements engine.Ingester. It returns the errors of Client.
func (i Importer) Observe(refreshes []engine.Refresh) (engine.Receipt, error) {
	return ImportObservations.Call(i.Context, i.Client, Observations{refreshes})
}

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
