package client

import (
	"errors"
	"fmt"
	"time"
)

// QuoteCurrency is what every rate is quoted in.
const QuoteCurrency = "DOP"

// Operation is what the caller does with foreign currency (S1).
type Operation string

// The two operations.
const (
	Buy  Operation = "buy"  // the caller buys it: Rate.Sell is applied
	Sell Operation = "sell" // the caller sells it: Rate.Buy is applied
)

// Channel is where a rate holds.
type Channel string

// The channels.
const (
	Unspecified Channel = "unspecified"
	Branch      Channel = "branch"
	Digital     Channel = "digital"
	Cash        Channel = "cash"
	Transfer    Channel = "transfer"
)

// Kind tells what institutions offer from what is a reference.
type Kind string

// The kinds.
const (
	Commercial Kind = "commercial"
	Reference  Kind = "reference"
)

// DatePrecision is how well the time of a rate is known: datetime, day or unknown.
type DatePrecision string

// Rate is what an institution publishes for a currency (section 2.1).
type Rate struct {
	InstitutionID   string        `json:"institutionId"`
	Currency        string        `json:"currency"`
	QuoteCurrency   string        `json:"quoteCurrency"`
	Buy             *Decimal      `json:"buy"`  // compra: what the institution pays; nil = not published
	Sell            *Decimal      `json:"sell"` // venta: what it takes
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

// Side is what an operation applies (S1), nil when it is not published.
func (r *Rate) Side(operation Operation) *Decimal {
	if operation == Buy {
		return r.Sell
	}
	return r.Buy
}

// Currency is one of the catalogue (section 2.3).
type Currency struct {
	Code              string `json:"code"`
	Name              string `json:"name"`
	Symbol            string `json:"symbol"`
	QuoteCount        int    `json:"quoteCount"`        // published rates, expired ones too
	CurrentQuoteCount int    `json:"currentQuoteCount"` // those that have not expired
}

// InstitutionInfo is what the list and the detail of institutions share.
type InstitutionInfo struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Type        string `json:"type"`
	Website     string `json:"website"`
	Description string `json:"description"`
	Contact     string `json:"contact"`
	Active      bool   `json:"active"`
}

// Institution is an item of the list (section 2.4).
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

// HistoryEntry is the last rate of a day (section 2.5).
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

// Conversion is what an amount makes at one rate (section 2.6).
type Conversion struct {
	Quote         Rate      `json:"quote"`
	Operation     Operation `json:"operation"`
	ForeignAmount Decimal   `json:"foreignAmount"`
	Currency      string    `json:"currency"`
	AmountDOP     Decimal   `json:"amountDop"`
	Rate          Decimal   `json:"rate"`
	FeesIncluded  bool      `json:"feesIncluded"`
	FeeNotice     string    `json:"feeNotice"` // to be shown beside the amount
}

// Meta stands beside a page (section 2.2).
type Meta struct {
	Total         int       `json:"total"`
	NextCursor    *int      `json:"nextCursor"` // nil = this is the last page
	GeneratedAt   time.Time `json:"generatedAt"`
	QuoteCurrency string    `json:"quoteCurrency"`
}

// Page is some items of a list.
type Page[T any] struct {
	Data []T  `json:"data"`
	Meta Meta `json:"meta"`
}

// Ranking is a page of best rates.
type Ranking struct {
	Page[Rate]
	Operation Operation `json:"operation"`
}

// Answers without meta are wrapped in data alone.
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
	if item, is := any(s.Data).(validator); is {
		return item.validate()
	}
	return nil
}

// validateEach checks the items that have something to check.
func validateEach[T any](items []T) error {
	for i := range items {
		item, is := any(&items[i]).(validator)
		if !is {
			return nil
		}
		if err := item.validate(); err != nil {
			return fmt.Errorf("data[%d]: %w", i, err)
		}
	}
	return nil
}

// errorIf is an error of an item, where it has what it may not have.
func errorIf(broken bool, format string, values ...any) error {
	if !broken {
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
