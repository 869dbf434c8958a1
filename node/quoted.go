package node

import (
	"sync"
	"time"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
)

// quotedTexts passes collected rates on to a Sink, and keeps the texts from which they were read, for the pages. It has
// one for each quote of each source, and only those that this process has collected: they are not in the log.
type quotedTexts struct {
	sink     collectors.Sink
	archived bool // the documents are kept in an archive, where they are found by their digests

	mu    sync.Mutex
	texts map[quotedKey]quotedText
}

type quotedKey struct {
	source, currency string
	quote            engine.QuoteKey
}

type quotedText struct {
	observedAt time.Time
	buy, sell  string
	document   string // digest
}

func newQuotedTexts(sink collectors.Sink) *quotedTexts {
	return &quotedTexts{sink: sink, texts: map[quotedKey]quotedText{}}
}

// Observe implements collectors.Sink. The text of a refused rate is kept too: quoted never returns it, because no
// published rate was last checked at its time.
func (q *quotedTexts) Observe(refreshes []engine.Refresh) (engine.Receipt, error) {
	receipt, err := q.sink.Observe(refreshes)
	if err != nil {
		return receipt, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range refreshes {
		refresh := &refreshes[i]
		for j := range refresh.Observations {
			o := &refresh.Observations[j]
			key := quotedKey{refresh.SourceID, o.Currency, o.Key()}
			if !refresh.ObservedAt.Before(q.texts[key].observedAt) {
				q.texts[key] = quotedText{refresh.ObservedAt, o.BuyText, o.SellText, o.Document}
			}
		}
	}
	return receipt, nil
}

// quoted returns the texts from which the sides of a published rate were read, or "", and the digest of their archived
// document.
func (q *quotedTexts) quoted(r *engine.Rate) (buy, sell, document string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	text := q.texts[quotedKey{r.SourceID, r.Currency, engine.QuoteKey{Institution: r.InstitutionID, Channel: r.Channel, Kind: r.Kind}}]
	if !text.observedAt.Equal(r.LastCheckedAt) {
		return "", "", ""
	}
	if q.archived {
		document = text.document
	}
	return text.buy, text.sell, document
}
