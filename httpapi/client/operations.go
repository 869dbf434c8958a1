package client

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/big"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Filter contains the common parameters of all lists of rates. Parameters that are zero are not sent.
type Filter struct {
	Currency    string // three capital letters
	Institution string // id of an institution
	Channel     Channel
	Kind        Kind
	Limit       int // maximum number of items of a page, 1 to 200; 0 = 100, or 200 for iterators
	Cursor      int // number of items to skip
}

// BestQuery contains the parameters of Client.Best. Currency and Operation are required.
type BestQuery struct {
	Filter
	Operation Operation
}

// ConvertQuery contains the parameters of Client.Convert. Currency, Operation and Amount are required.
type ConvertQuery struct {
	Filter
	Operation Operation
	Amount    Decimal // in foreign currency, up to twelve digits and two decimals
}

// HistoryQuery contains the parameters of Client.History. Without From and To the range is the last seven days. If only
// one is given, the node computes the other.
type HistoryQuery struct {
	Filter
	From, To string // inclusive, YYYY-MM-DD
}

// values returns the parameters that are not empty. extra contains more names and values, alternately.
func (f *Filter) values(extra ...string) url.Values {
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	pairs := append(extra, "currency", f.Currency, "institution", f.Institution, "channel", string(f.Channel), "kind", string(f.Kind),
		"limit", number(f.Limit), "cursor", number(f.Cursor))
	params := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			params.Set(pairs[i], pairs[i+1])
		}
	}
	return params
}

// get requests data with Config.Key.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	var result T
	err := c.do(ctx, &call{method: http.MethodGet, path: path, query: query, secret: c.config.Key, idempotent: true}, &result)
	return result, err
}

// body is a response with only the field data.
type body[T any] struct {
	Data T `json:"data"`
}

// Currencies returns all currencies, sorted by code, including those without rates.
func (c *Client) Currencies(ctx context.Context) ([]Currency, error) {
	list, err := get[body[[]Currency]](ctx, c, "/v1/currencies", nil)
	return list.Data, err
}

// Institutions returns a page of the active institutions, sorted by id. q may have Currency, Limit and Cursor.
func (c *Client) Institutions(ctx context.Context, q Filter) (*Page[Institution], error) {
	return get[*Page[Institution]](ctx, c, "/v1/institutions", q.values())
}

// Institution returns an institution with its rates. If the institution is unknown or inactive, the error has the code
// CodeInstitutionNotFound.
func (c *Client) Institution(ctx context.Context, id string) (*InstitutionDetail, error) {
	detail, err := get[body[*InstitutionDetail]](ctx, c, "/v1/institutions/"+url.PathEscape(id), nil)
	return detail.Data, err
}

// Rates returns a page of the published rates, sorted by currency and institution. It includes expired and reference
// rates.
func (c *Client) Rates(ctx context.Context, q Filter) (*Page[Rate], error) {
	return get[*Page[Rate]](ctx, c, "/v1/rates", q.values())
}

// Best returns a page of the current commercial rates, the best for the customer first.
func (c *Client) Best(ctx context.Context, q BestQuery) (*Ranking, error) {
	return get[*Ranking](ctx, c, "/v1/rates/best", q.values("operation", string(q.Operation)))
}

// History returns a page of daily rates, oldest first.
func (c *Client) History(ctx context.Context, q HistoryQuery) (*Page[HistoryEntry], error) {
	return get[*Page[HistoryEntry]](ctx, c, "/v1/rates/history", q.values("from", q.From, "to", q.To))
}

// Convert returns a page of conversions, the best for the customer first. Amounts do not include fees: show FeeNotice
// with them.
func (c *Client) Convert(ctx context.Context, q ConvertQuery) (*Page[Conversion], error) {
	return get[*Page[Conversion]](ctx, c, "/v1/convert", q.values("operation", string(q.Operation), "amount", string(q.Amount)))
}

// pageLimitMax is the maximum number of items of a page. It is the default of iterators, because each page counts
// as a request against the quota.
const pageLimitMax = 200

// AllRates iterates over the rates selected by a filter, like All.
func (c *Client) AllRates(ctx context.Context, q Filter) iter.Seq2[Rate, error] {
	return All(q, func(f Filter) (*Page[Rate], error) { return c.Rates(ctx, f) })
}

// All iterates over the items of all pages of a list, from f.Cursor on. page requests one of them, for example with
// Client.History.
//
// An iterator ends after an error; the last pair is then a zero item and the error. It requests one page after the
// other. If the list changes in between, an item may occur twice or not at all. A node returns at most 100,200 items of
// a list; beyond that the iteration ends with an error.
func All[T any](f Filter, page func(Filter) (*Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		f, zero := f, *new(T) // a copy of f, because an iterator can be used again
		for f.Limit = cmp.Or(f.Limit, pageLimitMax); ; {
			p, err := page(f)
			if err != nil {
				yield(zero, err)
				return
			}
			for _, item := range p.Data {
				if !yield(item, nil) {
					return
				}
			}
			f.Cursor += len(p.Data)
			if p.Meta.NextCursor == nil && len(p.Data) > 0 && f.Cursor < p.Meta.Total {
				yield(zero, fmt.Errorf("the list has %d items, but the node gives no cursor after item %d: ask for one currency, one institution or fewer days", p.Meta.Total, f.Cursor))
			}
			if p.Meta.NextCursor == nil || len(p.Data) == 0 {
				return
			}
		}
	}
}

// RequestCode asks the node to send a login code to an e-mail address. The request is not retried after a broken
// connection, because a new code invalidates the previous one.
func (c *Client) RequestCode(ctx context.Context, email string) (*CodeSent, error) {
	return send[*CodeSent](ctx, c, &call{method: http.MethodPost, path: "/v1/account/codes", body: map[string]string{"email": email}})
}

// SignIn opens a session with a login code, and creates the account if it is new.
func (c *Client) SignIn(ctx context.Context, email, code string) (*Session, error) {
	return send[*Session](ctx, c, &call{method: http.MethodPost, path: "/v1/account/sessions", body: map[string]string{"email": email, "code": code}})
}

// SignOut ends a session.
func (c *Client) SignOut(ctx context.Context, session string) error {
	return c.do(ctx, &call{method: http.MethodDelete, path: "/v1/account/sessions", secret: session}, nil)
}

// Keys lists the keys of an account, including revoked ones.
func (c *Client) Keys(ctx context.Context, session string) ([]Key, error) {
	return send[[]Key](ctx, c, &call{method: http.MethodGet, path: "/v1/account/keys", secret: session, idempotent: true})
}

// CreateKey creates a key. The name is a label and may be "". If the account already has two active keys, the error has
// CodeKeyLimitReached.
func (c *Client) CreateKey(ctx context.Context, session, name string) (*NewKey, error) {
	body := map[string]string{}
	if name != "" {
		body["name"] = name
	}
	return send[*NewKey](ctx, c, &call{method: http.MethodPost, path: "/v1/account/keys", secret: session, body: body})
}

// RevokeKey revokes a key. The node rejects the key from the next request on.
func (c *Client) RevokeKey(ctx context.Context, session, id string) error {
	return c.do(ctx, &call{method: http.MethodDelete, path: "/v1/account/keys/" + url.PathEscape(id), secret: session, idempotent: true}, nil)
}

// Usage returns the state of an account's limits. secret is a session token or an API key of the account; "" means
// Config.Key. The request does not count against the limits.
func (c *Client) Usage(ctx context.Context, secret string) (*Usage, error) {
	return send[*Usage](ctx, c, &call{method: http.MethodGet, path: "/v1/account/usage", secret: cmp.Or(secret, c.config.Key), idempotent: true})
}

// send sends a call and returns the field data of the response.
func send[T any](ctx context.Context, c *Client, q *call) (T, error) {
	var response body[T]
	err := c.do(ctx, q, &response)
	return response.Data, err
}

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
