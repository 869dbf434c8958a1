package client

import (
	"math/big"
	"time"
)

// QuoteCurrency is the currency of all rates.
const QuoteCurrency = "DOP"

// Operation is what the customer of an institution does with foreign currency.
type Operation string

// Operations.
const (
	Buy  Operation = "buy"  // the customer buys; Rate.Sell applies
	Sell Operation = "sell" // the customer sells; Rate.Buy applies
)

// Channel is the place where a rate applies, such as a branch or online.
type Channel string

// Channels.
const (
	Unspecified Channel = "unspecified"
	Branch      Channel = "branch"
	Digital     Channel = "digital"
	Cash        Channel = "cash"
	Transfer    Channel = "transfer"
)

// Kind is commercial (institutions trade at the rate) or reference (the official rate).
type Kind string

// Kinds.
const (
	Commercial Kind = "commercial"
	Reference  Kind = "reference"
)

// Rate is the rate of an institution for a currency in one channel.
type Rate struct {
	InstitutionID   string     `json:"institutionId"`
	Currency        string     `json:"currency"`
	QuoteCurrency   string     `json:"quoteCurrency"`
	Buy             *Decimal   `json:"buy"`  // compra, the price that the institution pays; nil = not published
	Sell            *Decimal   `json:"sell"` // venta, the price that the institution charges; nil = not published
	Channel         Channel    `json:"channel"`
	Kind            Kind       `json:"kind"`
	EffectiveDate   *string    `json:"effectiveDate"`
	PublishedAt     *time.Time `json:"publishedAt"`
	UpstreamSource  *string    `json:"upstreamSource"`
	ID              string     `json:"id"`
	InstitutionName string     `json:"institutionName"`
	InstitutionType string     `json:"institutionType"`
	Website         string     `json:"website"`
	SourceID        string     `json:"sourceId"`
	SourceName      string     `json:"sourceName"`
	SourceURL       string     `json:"sourceUrl"`
	CollectedAt     time.Time  `json:"collectedAt"`
	LastCheckedAt   time.Time  `json:"lastCheckedAt"`
	ExpiresAt       time.Time  `json:"expiresAt"`
	Priority        int64      `json:"priority"`
	Manual          bool       `json:"manual"`
	Stale           bool       `json:"stale"`
	DatePrecision   string     `json:"datePrecision"` // of the dates: datetime, day or unknown
}

// Side returns r.Sell for Buy, and r.Buy for Sell. The result is nil if that side is not published.
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

// InstitutionInfo contains the common fields of Institution and InstitutionDetail.
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

// HistoryEntry is the last rate of a day.
type HistoryEntry struct {
	Date          string   `json:"date"` // YYYY-MM-DD, in Santo Domingo
	InstitutionID string   `json:"institutionId"`
	Currency      string   `json:"currency"`
	Channel       Channel  `json:"channel"`
	Kind          Kind     `json:"kind"`
	Buy           *Decimal `json:"buy"`
	Sell          *Decimal `json:"sell"`
	SourceID      string   `json:"sourceId"`
	DatePrecision string   `json:"datePrecision"`
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

// Ranking is a page of rates, the best for the customer first.
type Ranking struct {
	Page[Rate]
	Operation Operation `json:"operation"`
}

// Decimal is a decimal number as text, such as 59.30. Calculate with Rat or a decimal library, never with a float.
type Decimal string

// Rat returns the exact value, or 0 if the text is not a number.
func (d Decimal) Rat() *big.Rat {
	if value, ok := new(big.Rat).SetString(string(d)); ok {
		return value
	}
	return new(big.Rat)
}

// Cmp compares values: 59.3 equals 59.30.
func (d Decimal) Cmp(other Decimal) int { return d.Rat().Cmp(other.Rat()) }

// CodeSent is the response to a request for a login code.
type CodeSent struct {
	ExpiresInSeconds   int `json:"expiresInSeconds"`
	ResendAfterSeconds int `json:"resendAfterSeconds"`
}

// Session is a login session of 15 minutes. Token is the credential for managing API keys; it is not an API key.
type Session struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Key is an API key without its secret.
type Key struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Hint       string     `json:"hint"`   // last characters of the secret
	Status     string     `json:"status"` // active or revoked
	CreatedAt  time.Time  `json:"createdAt"`
	RevokedAt  *time.Time `json:"revokedAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"`
}

// NewKey is a new key with its secret. The node does not show the secret again.
type NewKey struct {
	Key
	Secret string `json:"secret"`
}

// Window is the state of a quota window: a day or a minute.
type Window struct {
	Limit     int       `json:"limit"`
	Remaining int       `json:"remaining"`
	ResetAt   time.Time `json:"resetAt"`
}

// Usage is the state of the day and minute limits of an account.
type Usage struct {
	Day    Window `json:"day"`
	Minute Window `json:"minute"`
}
