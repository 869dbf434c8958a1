package client

import (
	"errors"
	"fmt"
	"time"
)

// QuoteCurrency is the currency of all rates.
const QuoteCurrency = "DOP"

// Operation is what the caller does with foreign currency.
type Operation string

// Operations.
const (
	Buy  Operation = "buy"  // the caller buys; Rate.Sell applies
	Sell Operation = "sell" // the caller sells; Rate.Buy applies
)

// Channel is where a rate applies, such as at a branch or online.
type Channel string

// Channels.
const (
	Unspecified Channel = "unspecified"
	Branch      Channel = "branch"
	Digital     Channel = "digital"
	Cash        Channel = "cash"
	Transfer    Channel = "transfer"
)

// Kind distinguishes rates at which institutions trade from reference rates.
type Kind string

// Kinds.
const (
	Commercial Kind = "commercial"
	Reference  Kind = "reference"
)

// DatePrecision is the precision of a rate's date: datetime, day or unknown.
type DatePrecision string

// Rate is the rate of an institution for a currency in one channel.
type Rate struct {
	InstitutionID   string        `json:"institutionId"`
	Currency        string        `json:"currency"`
	QuoteCurrency   string        `json:"quoteCurrency"`
	Buy             *Decimal      `json:"buy"`  // compra: the institution pays it; nil = not published
	Sell            *Decimal      `json:"sell"` // venta: the institution charges it
	Channel         Channel       `json:"channel"`
	Kind            Kind          `json:"kind"`
	EffectiveDate   *Date         `json:"effectiveDate"`
	PublishedAt     *time.Time    `json:"publishedAt"`
	UpstreamSource  *string       `json:"upstreamSource"`
	ID              string        `json:"id"`
	InstitutionName string        `json:"institutionName"`
	InstitutionType string        `json:"institutionType"`
	Website         string        `json:"website"`
	SourceID        string        `json:"sourceId"`
	SourceName      string        `json:"sourceName"`
	SourceURL       string        `json:"sourceUrl"`
	CollectedAt     time.Time     `json:"collectedAt"`
	LastCheckedAt   time.Time     `json:"lastCheckedAt"`
	ExpiresAt       time.Time     `json:"expiresAt"`
	Priority        int64         `json:"priority"`
	Manual          bool          `json:"manual"`
	Stale           bool          `json:"stale"`
	DatePrecision   DatePrecision `json:"datePrecision"`
}

// Side returns r.Sell if the caller buys, and r.Buy if the caller sells. It returns nil if that side is not published.
func (r *Rate) Side(operation Operation) *Decimal {
	if operation == Buy {
		return r.Sell
	}
	return r.Buy
}

// Currency is a foreign currency.
type Currency struct {
	Code              string `json:"code"`
	Name              string `json:"name"`
	Symbol            string `json:"symbol"`
	QuoteCount        int    `json:"quoteCount"`        // published rates, expired ones included
	CurrentQuoteCount int    `json:"currentQuoteCount"` // rates that have not expired
}

// InstitutionInfo has the common fields of Institution and InstitutionDetail.
type InstitutionInfo struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Type        string `json:"type"`
	Website     string `json:"website"`
	Description string `json:"description"`
	Contact     string `json:"contact"`
	Active      bool   `json:"active"`
}

// Institution is an item of the list of institutions.
type Institution struct {
	InstitutionInfo
	Currencies        []string `json:"currencies"`
	CurrentQuoteCount int      `json:"currentQuoteCount"`
}

// InstitutionDetail is one institution with its rates.
type InstitutionDetail struct {
	InstitutionInfo
	Rates []Rate `json:"rates"`
}

// HistoryEntry is the rate that was the newest at the end of a day.
type HistoryEntry struct {
	Date          Date          `json:"date"`
	InstitutionID string        `json:"institutionId"`
	Currency      string        `json:"currency"`
	Channel       Channel       `json:"channel"`
	Kind          Kind          `json:"kind"`
	Buy           *Decimal      `json:"buy"`
	Sell          *Decimal      `json:"sell"`
	SourceID      string        `json:"sourceId"`
	DatePrecision DatePrecision `json:"datePrecision"`
}

// Conversion is an amount converted at one rate.
type Conversion struct {
	Quote         Rate      `json:"quote"`
	Operation     Operation `json:"operation"`
	ForeignAmount Decimal   `json:"foreignAmount"`
	Currency      string    `json:"currency"`
	AmountDOP     Decimal   `json:"amountDop"`
	Rate          Decimal   `json:"rate"`
	FeesIncluded  bool      `json:"feesIncluded"`
	FeeNotice     string    `json:"feeNotice"` // to be shown with the amount
}

// Meta describes a page.
type Meta struct {
	Total         int       `json:"total"`
	NextCursor    *int      `json:"nextCursor"` // nil = last page
	GeneratedAt   time.Time `json:"generatedAt"`
	QuoteCurrency string    `json:"quoteCurrency"`
}

// Page is a page of a list.
type Page[T any] struct {
	Data []T  `json:"data"`
	Meta Meta `json:"meta"`
}

// Ranking is a page of rates, the best for the caller first.
type Ranking struct {
	Page[Rate]
	Operation Operation `json:"operation"`
}

// Bodies of responses that have only the field data.
type (
	dataBody[T any] struct {
		Data *T `json:"data"`
	}
	listBody[T any] struct {
		Data []T `json:"data"`
	}
)

var (
	errNoData = errors.New("it has no data")
	errNoMeta = errors.New("it has no meta, or one in another currency than " + QuoteCurrency)
)

func (p *Page[T]) validate() error {
	switch {
	case p.Data == nil:
		return errNoData
	case p.Meta.QuoteCurrency != QuoteCurrency, p.Meta.GeneratedAt.IsZero():
		return errNoMeta
	}
	return validateEach(p.Data)
}

func (l *listBody[T]) validate() error {
	if l.Data == nil {
		return errNoData
	}
	return validateEach(l.Data)
}

func (s *dataBody[T]) validate() error {
	if s.Data == nil {
		return errNoData
	}
	if item, ok := any(s.Data).(validator); ok {
		return item.validate()
	}
	return nil
}

// validateEach validates all items, if *T is a validator.
func validateEach[T any](items []T) error {
	for i := range items {
		item, ok := any(&items[i]).(validator)
		if !ok {
			return nil
		}
		if err := item.validate(); err != nil {
			return fmt.Errorf("data[%d]: %w", i, err)
		}
	}
	return nil
}

// errorIf returns an error if failed is true.
func errorIf(failed bool, format string, values ...any) error {
	if !failed {
		return nil
	}
	return fmt.Errorf(format, values...)
}

func (r *Rate) validate() error {
	switch {
	case r.ID == "", r.InstitutionID == "", r.Currency == "":
		return errors.New("a rate without id, institution or currency")
	case r.QuoteCurrency != QuoteCurrency:
		return fmt.Errorf("%s is quoted in %q, not in %s", r.ID, r.QuoteCurrency, QuoteCurrency)
	case r.Buy == nil && r.Sell == nil:
		return fmt.Errorf("%s has neither buy nor sell", r.ID)
	}
	return errorIf(r.ExpiresAt.IsZero(), "%s does not say when it expires", r.ID)
}

func (c *Currency) validate() error        { return errorIf(c.Code == "", "a currency without code") }
func (i *InstitutionInfo) validate() error { return errorIf(i.ID == "", "an institution without id") }

func (i *InstitutionDetail) validate() error {
	return errors.Join(errorIf(i.Rates == nil, "an institution without its list of rates"), i.InstitutionInfo.validate(), validateEach(i.Rates))
}

func (e *HistoryEntry) validate() error {
	return errorIf(e.Date.IsZero() || e.InstitutionID == "" || e.Currency == "" || e.Buy == nil && e.Sell == nil,
		"a day of history without date, institution, currency or value")
}

func (c *Conversion) validate() error {
	if err := errorIf(c.AmountDOP == "" || c.Rate == "" || c.ForeignAmount == "", "a conversion without amount or rate"); err != nil {
		return err
	}
	return c.Quote.validate()
}
