package dump

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
)

// Record formats a record of the log as one line of JSON: the name of the event and its fields that are not empty. A
// record of a cluster node can have several events. Such a record is formatted as the number of the node and the list
// of the events.
func Record(data []byte) (string, error) {
	d := record.NewDecoder()
	b, err := d.Bundle(data)
	if err != nil {
		return "", err
	}
	events, err := d.Events(data, nil)
	if err != nil {
		return "", err
	}
	var lines []any
	for _, event := range events {
		if rateEvent, ok := event.(engine.Event); ok {
			lines = append(lines, describeEvent(rateEvent))
		} else {
			lines = append(lines, describeAccount(event))
		}
	}
	line := any(bundleLine{Event: "bundle", Node: b.Node, Records: lines})
	if b.Node == 0 && len(lines) == 1 { // a single event of a node without a cluster
		line = lines[0]
	}
	text, err := json.Marshal(line)
	if err != nil {
		return "", fmt.Errorf("describe record: %w", err)
	}
	return string(text), nil
}

// bundleLine is the JSON of a bundle: the events that a cluster node wrote as one record.
type bundleLine struct {
	Event   string        `json:"event"`
	Node    engine.NodeID `json:"node"`
	Records []any         `json:"records"`
}

// eventLine is the JSON of an event of a currency. All kinds of events use this struct. The JSON leaves out empty
// fields.
type eventLine struct {
	Event          string            `json:"event"`
	Currency       string            `json:"currency"`
	SourceID       string            `json:"sourceId,omitempty"`
	ObservedAt     string            `json:"observedAt,omitempty"`
	Priority       int64             `json:"priority,omitempty"`
	Manual         bool              `json:"manual,omitempty"`
	UpstreamSource string            `json:"upstreamSource,omitempty"`
	ScheduledAt    string            `json:"slot,omitempty"`
	Baseline       string            `json:"baseline,omitempty"`
	Quotes         []quoteLine       `json:"quotes,omitempty"`
	Quarantined    []quarantinedLine `json:"held,omitempty"`
	QuarantineID   uint64            `json:"heldId,omitempty"`
	Quote          *quoteLine        `json:"quote,omitempty"`
	At             string            `json:"at,omitempty"`
	By             string            `json:"by,omitempty"`
}

type quoteLine struct {
	InstitutionID string `json:"institutionId"`
	Channel       string `json:"channel,omitempty"`
	Kind          string `json:"kind,omitempty"`
	Buy           string `json:"buy,omitempty"`
	Sell          string `json:"sell,omitempty"`
	EffectiveDate string `json:"effectiveDate,omitempty"`
	PublishedAt   string `json:"publishedAt,omitempty"`
	ExpiresAt     string `json:"expiresAt,omitempty"`
	Backfill      bool   `json:"backfill,omitempty"`
}

type quarantinedLine struct {
	ID     uint64 `json:"id"`
	Reason string `json:"reason"`
	Detail string `json:"detail"`
	quoteLine
	Document string `json:"document,omitempty"`
}

func describeEvent(event engine.Event) eventLine {
	line := eventLine{Currency: event.CurrencyCode()}
	switch e := event.(type) {
	case *engine.Refreshed:
		line.Event, line.SourceID, line.ObservedAt = "refreshed", e.SourceID, formatTime(e.ObservedAt)
		line.Priority, line.Manual, line.UpstreamSource = e.Priority, e.Manual, e.UpstreamSource
		line.ScheduledAt, line.Baseline, line.By = formatTime(e.Slot), e.Baseline, e.By
		line.Quotes, line.Quarantined = mapSlice(e.Quotes, describeQuote), mapSlice(e.Quarantined, describeQuarantined)
	case *engine.Released:
		quote := describeQuote(&e.Quote)
		line.Event, line.SourceID, line.ObservedAt = "released", e.SourceID, formatTime(e.ObservedAt)
		line.Priority, line.Manual, line.UpstreamSource = e.Priority, e.Manual, e.UpstreamSource
		line.QuarantineID, line.Quote, line.At, line.By = e.QuarantineID, &quote, formatTime(e.At), e.By
	case *engine.Rejected:
		line.Event, line.QuarantineID, line.At, line.By = "rejected", e.QuarantineID, formatTime(e.At), e.By
	case *engine.Withdrawn:
		line.Event, line.SourceID, line.At, line.By = "withdrawn", e.SourceID, formatTime(e.At), e.By
		line.Quote = &quoteLine{InstitutionID: e.Key.Institution, Channel: string(e.Key.Channel), Kind: string(e.Key.Kind)}
	}
	return line
}

func describeQuote(q *engine.AcceptedQuote) quoteLine {
	return quoteLine{
		InstitutionID: q.Key.Institution, Channel: string(q.Key.Channel), Kind: string(q.Key.Kind),
		Buy: q.Buy.String(), Sell: q.Sell.String(), EffectiveDate: q.EffectiveDate.String(),
		PublishedAt: formatTime(q.PublishedAt), ExpiresAt: formatTime(q.ExpiresAt), Backfill: q.Backfill,
	}
}

func describeQuarantined(q *engine.Quarantined) quarantinedLine {
	o := &q.Observation
	return quarantinedLine{ID: q.ID, Reason: string(q.Reason), Detail: q.Detail, Document: o.Document, quoteLine: quoteLine{
		InstitutionID: o.InstitutionID, Channel: string(o.Channel), Kind: string(o.Kind), Buy: o.Buy, Sell: o.Sell,
		EffectiveDate: o.EffectiveDate.String(), PublishedAt: formatTime(o.PublishedAt), ExpiresAt: formatTime(o.ExpiresAt),
	}}
}

// formatTime returns the time as text, or "" for the zero time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func mapSlice[T, R any](in []T, convert func(*T) R) []R {
	out := make([]R, len(in))
	for i := range in {
		out[i] = convert(&in[i])
	}
	return out
}
