package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Limits of observations.
const (
	InstitutionIDMax = 80        // characters
	sideTextMax      = 64        // bytes of a text kept in quarantine; the text of a misread side may be a whole page
	BaselineBytesMax = 256 << 10 // far more than the collector needs for its largest Baseline
)

// Observation is a source's rate before validation. Buy and Sell are the source's texts, or "" if missing.
type Observation struct {
	InstitutionID string
	Currency      string
	Channel       Channel // "" = Unspecified
	Kind          Kind    // "" = Commercial
	Buy, Sell     string
	EffectiveDate Date      // zero = not stated
	PublishedAt   time.Time // zero = not stated
	ExpiresAt     time.Time // zero = not stated; ObservedAt plus Source.Lifetime applies
	Document      string    // digest of the source's document, "" = unknown; stored only in quarantine
}

// Refresh is all observations of one source at one time. They are checked together.
type Refresh struct {
	SourceID     string
	ObservedAt   time.Time
	Observations []Observation
	// Slot is the scheduled time of the refresh, or zero. A currency ignores a refresh unless its slot is later than
	// the last accepted slot of the source. An interrupted refresh can therefore be repeated after a crash.
	Slot time.Time
	// Baseline is the collector's history of the source up to Slot (collectors.Baseline). It is stored with Slot, and
	// has no effect on rates. A Baseline above BaselineBytesMax is not stored.
	Baseline   string
	By         string // name of the operator, or "" for a collected refresh
	currencies int    // number of currencies in the whole refresh; 0 = one
	// Complete means that the refresh should contain all quotes of the source. Only a complete refresh can be refused
	// for the reason ThinRefresh. Files of observations and manual rates are not complete.
	Complete bool
}

// Key returns the key of the observed quote, with the default channel and kind if they are missing.
func (o *Observation) Key() QuoteKey {
	key := QuoteKey{o.InstitutionID, o.Channel, o.Kind}
	if key.Channel == "" {
		key.Channel = Unspecified
	}
	if key.Kind == "" {
		key.Kind = Commercial
	}
	return key
}

// Reason is the reason for refusing an observation.
type Reason string

// The values of Reason. Observations refused for one of the first three are not stored. All others are kept in
// quarantine, where an operator can release them.
const (
	UnknownInstitution Reason = "unknown_institution"
	UnknownCurrency    Reason = "unknown_currency"
	BadField           Reason = "bad_field"

	Unparsable   Reason = "unparsable"   // a side is not a decimal
	Negative     Reason = "negative"     // a side is below zero
	Zero         Reason = "zero"         // a side is 0, for example because a page was read before its script ran
	NoSide       Reason = "no_side"      // neither side is given
	Crossed      Reason = "crossed"      // buy is above sell; sides are never swapped
	OutOfBand    Reason = "out_of_band"  // outside the plausible range, or too far from the reference rate
	Jump         Reason = "jump"         // too far from the source's last accepted value (Rules.JumpPermille)
	OffMarket    Reason = "off_market"   // too far from the median of the other institutions
	Contradicted Reason = "contradicted" // was published, until the market or the reference rate contradicted it
	SameSides    Reason = "same_sides"   // buy and sell are equal; probably one of them was read twice
	Disagreement Reason = "disagreement" // the refresh has two values for the quote
	Outdated     Reason = "outdated"     // effective before the source's newest quote, for example in yesterday's file
	FutureDate   Reason = "future_date"  // effective more than 7 days ahead, or observed in the future
	ThinRefresh  Reason = "thin_refresh" // the refresh lacks more than half of the source's current quotes
)

// Refusal is one refused observation.
type Refusal struct {
	Refresh, Index int // indexes of the refresh, and of the observation in it
	Observation    Observation
	Reason         Reason
	Detail         string // a sentence that explains Reason
	QuarantineID   uint64 // 0 if the observation is not in quarantine
}

// Receipt counts the results of an ingestion.
type Receipt struct {
	Accepted int // observations that became or confirmed a current value or a history row
	Changed  int // accepted observations that changed a value or its date
	Repeated int // observations ignored because a refresh for the same slot was accepted before
	Refused  []Refusal
	Notices  []Notice
}

// Notice draws the operator's attention to a decision about a published rate.
type Notice struct {
	RateID, SourceID string
	Text             string
}

func (n Notice) String() string { return "rate " + n.RateID + " of " + n.SourceID + " " + n.Text }

// CurrencyRefresh is one currency's part of a refresh (all observations of one source at one time).
type CurrencyRefresh struct {
	Refresh          Refresh
	RefreshIndex     int   // index of the whole refresh
	ObservationIndex []int // for each of Refresh.Observations, its index in the whole refresh
}

// SplitByCurrency groups the observations of refreshes by currency and keeps their order. It refuses observations of
// unknown institutions or currencies, and observations with malformed fields.
func SplitByCurrency(catalogue *Catalogue, refreshes []Refresh) (map[string][]CurrencyRefresh, []Refusal) {
	byCurrency := map[string][]CurrencyRefresh{}
	var refused []Refusal
	for i := range refreshes {
		refresh := &refreshes[i]
		parts := map[string]*CurrencyRefresh{}
		for index := range refresh.Observations {
			observation := &refresh.Observations[index]
			if reason, detail := invalid(catalogue, refresh, observation); reason != "" {
				refused = append(refused, Refusal{
					Refresh: i, Index: index, Observation: *observation, Reason: reason, Detail: detail,
				})
				continue
			}
			part := parts[observation.Currency]
			if part == nil {
				part = &CurrencyRefresh{Refresh: *refresh, RefreshIndex: i}
				part.Refresh.Observations = nil
				parts[observation.Currency] = part
			}
			part.Refresh.Observations = append(part.Refresh.Observations, *observation)
			part.ObservationIndex = append(part.ObservationIndex, index)
		}
		for i, currency := range slices.Sorted(maps.Keys(parts)) {
			part := parts[currency]
			part.Refresh.currencies = len(parts)
			if i > 0 {
				part.Refresh.Baseline = "" // the first currency keeps it
			}
			byCurrency[currency] = append(byCurrency[currency], *part)
		}
	}
	return byCurrency, refused
}

func invalid(catalogue *Catalogue, refresh *Refresh, o *Observation) (Reason, string) {
	if refresh.SourceID == "" || len(refresh.SourceID) > InstitutionIDMax {
		return BadField, fmt.Sprintf("sourceId must have 1 to %d characters", InstitutionIDMax)
	}
	if refresh.ObservedAt.IsZero() {
		return BadField, "observedAt is missing"
	}
	key := o.Key()
	if _, ok := ParseChannel(string(key.Channel)); !ok {
		return BadField, fmt.Sprintf("channel %q is unknown; use one of %v", o.Channel, Channels())
	}
	if _, ok := ParseKind(string(key.Kind)); !ok {
		return BadField, fmt.Sprintf("kind %q is unknown; use one of %v", o.Kind, Kinds())
	}
	if _, known := catalogue.Institution(o.InstitutionID); !known {
		return UnknownInstitution, fmt.Sprintf("institution %q is not in the catalogue; add it with a catalogue file", o.InstitutionID)
	}
	if _, known := catalogue.Currency(o.Currency); !known {
		return UnknownCurrency, fmt.Sprintf("currency %q is not in the catalogue; add it with a catalogue file", o.Currency)
	}
	return "", ""
}

// Event is a change of one currency's state. Decide returns events, the actor writes them to the log, and Apply changes
// the state. A replay of the log applies them again.
type Event interface {
	CurrencyCode() string
}

// Origin is the currency and the source of an event's values, and the time of their observation.
type Origin struct {
	Currency, SourceID string
	ObservedAt         time.Time
	Priority           int64
	Manual             bool
	UpstreamSource     string
}

// Refreshed is the result of one refresh (one source's observations at one time) for one currency.
type Refreshed struct {
	Origin
	Slot        time.Time // scheduled time of the refresh, or zero; an event may have a Slot but no Quotes
	By          string    // name of the operator, or "" for a collected refresh
	Currencies  int       // number of currencies in the whole refresh; set only with Slot
	Baseline    string    // see Refresh.Baseline; set only with Slot
	Quotes      []AcceptedQuote
	Quarantined []Quarantined
}

// AcceptedQuote is the value of an accepted observation.
type AcceptedQuote struct {
	Key           QuoteKey
	Buy, Sell     Decimal
	EffectiveDate Date
	PublishedAt   time.Time
	ExpiresAt     time.Time
	Backfill      bool // observed before the source's newest observation, so only added to history
}

// Quarantined is a refused observation, stored until an operator releases or rejects it.
type Quarantined struct {
	ID          uint64 // consecutive number in a currency, from 1
	SourceID    string
	ObservedAt  time.Time
	Observation Observation
	Reason      Reason
	Detail      string // a sentence that explains Reason
}

// Withdrawn removes a source's value: a rate withdrawn by an operator, or contradicted by the market.
type Withdrawn struct {
	Currency string
	SourceID string
	Key      QuoteKey
	At       time.Time
	By       string
	// HistorySince is the first day from which the source's history rows with this value are removed, up to the day of
	// At. Zero: no row is removed, but any other value may replace the row of the day of At.
	HistorySince Date
	// HistoryOnly keeps the current value, and removes only the row of the day HistorySince.
	HistoryOnly bool
}

// Released publishes an observation from quarantine.
type Released struct {
	Origin
	QuarantineID uint64
	Quote        AcceptedQuote
	At           time.Time
	By           string
}

// Rejected removes an observation from quarantine.
type Rejected struct {
	Currency     string
	QuarantineID uint64
	At           time.Time
	By           string
}

// CurrencyCode returns the currency.
func (o *Origin) CurrencyCode() string { return o.Currency }

// CurrencyCode returns the currency.
func (e *Withdrawn) CurrencyCode() string { return e.Currency }

// CurrencyCode returns the currency.
func (e *Rejected) CurrencyCode() string { return e.Currency }

// SourceQuote is the newest accepted value of one source for a key (institution, channel and kind). Of several sources
// with the same key, the one with the highest precedence is published.
type SourceQuote struct {
	Key            QuoteKey
	SourceID       string
	Buy, Sell      Decimal
	EffectiveDate  Date
	PublishedAt    time.Time
	UpstreamSource string
	CollectedAt    time.Time
	LastCheckedAt  time.Time
	ExpiresAt      time.Time
	Priority       int64
	Manual         bool
	Released       bool // released from quarantine by an operator, so not compared with the market
}

// PendingConfirmation is a value refused as implausible. It is accepted if the source repeats it and another
// institution has a similar value.
type PendingConfirmation struct {
	Key        QuoteKey
	SourceID   string
	ObservedAt time.Time // of the newest observation
	Buy, Sell  Decimal   // of the first observation
	Since      time.Time // time of the first observation
	Sightings  int       // number of observations within sightingPermille of the first
}

// SavedCurrency is the complete state of one currency, for snapshots and backups. Its lists are sorted, so that equal
// states have equal contents: source quotes and pending confirmations by key and source, history by date and key, slots
// by source, and the quarantine by id.
type SavedCurrency struct {
	Currency         string
	SourceQuotes     []SourceQuote
	Pending          []PendingConfirmation
	History          []HistoryEntry
	Quarantine       []Quarantined
	LastQuarantineID uint64
	Slots            []AnsweredSlot
}

// Command asks for a change of one currency's state.
type Command interface{ command() }

// Observe adds the observations of refreshes, in the given order. All observations must be of the CurrencyState's
// currency.
type Observe struct{ Refreshes []Refresh }

// Withdraw removes one source's value for a key (institution, channel and kind).
type Withdraw struct {
	Key      QuoteKey
	SourceID string
	By       string
}

// Release publishes a refused observation from quarantine.
type Release struct {
	QuarantineID uint64
	By           string
}

// Reject removes an observation from quarantine.
type Reject struct {
	QuarantineID uint64
	By           string
}

func (Observe) command()  {}
func (Withdraw) command() {}
func (Release) command()  {}
func (Reject) command()   {}

// Rules are the limits for observations.
type Rules struct {
	// JumpPermille is the maximum change of a side (buy or sell price) from the last good value, in thousandths. The
	// last good value is the newest accepted value of the source.
	JumpPermille int64
	// MedianPermille is the maximum distance of a side from the median of the other institutions' fresh (not expired)
	// quotes, in thousandths.
	MedianPermille int64
	// MedianQuotesMin is the minimum number of other institutions for a median.
	MedianQuotesMin int
	// ReferencePermille is the maximum distance of a commercial side from the reference rate of its currency, in
	// thousandths. 0 turns the comparison off.
	ReferencePermille int64
	// LastGoodAgeMax is the maximum age of a last good value. Older ones are not used.
	LastGoodAgeMax time.Duration
	// FutureDaysMax is the maximum number of days from an observation to its effective date.
	FutureDaysMax int
	// EqualSides accepts commercial quotes with equal sides. Normally they are refused, because probably one side was
	// read twice.
	EqualSides bool
	// HistoryDays is the number of days of commercial history to keep, at least HistoryDaysMin. Reference history is
	// never dropped.
	HistoryDays int
}

// HistoryDaysMin is the number of days of history that the API promises.
const HistoryDaysMin = 366
