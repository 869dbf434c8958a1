package record

import (
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// snapshotVersion is the newest version of snapshots that this program can read. A snapshot is a list of parts, each of
// which states the version that it requires of its reader. Parts with accounts require version 2. A program that knows
// only version 1 does not know the fields of accounts: it would skip them and accept an incomplete snapshot.
const snapshotVersion = 2

const (
	partItemsMax = 256     // maximum number of list elements that the writer puts in one part
	partBytesMax = 4 << 20 // maximum size that the reader accepts; partItemsMax elements need far less
	partSlotsMax = 15      // maximum number of slots in one part; each may have a large Baseline
	_            = uint(partBytesMax - partSlotsMax*(engine.BaselineBytesMax+1<<10))
)

// part is a message with some data of one currency, of accounts or of the registry. A snapshot is a list of parts. The
// length of each part, as a varint, precedes the part. All parts of a currency follow each other. The final part of a
// snapshot has only the fields last and parts.
type part struct {
	requires         uint64 // required version
	currency         string
	lastQuarantineID uint64
	state            *engine.SavedCurrency // the other data of the currency, or nil
	parts            uint64                // number of parts before the final part
	last             bool
	accounts         [][]byte // encoded account.States
	addresses        []account.AddressState
	sessions         []account.SessionState // in the order in which they were opened
	registry         *registry
	codes            []account.CodeState

	currencyState func(currency string) *engine.SavedCurrency // returns the state that the reader adds lists to
}

func (c *codec) part(p *part) {
	c.version(&p.requires, snapshotVersion)
	c.internedText(2, &p.currency)
	c.uint64(3, &p.lastQuarantineID)
	if p.state == nil && (c.nextField >= 4 && c.nextField <= 7 || c.nextField == 14) {
		p.state = p.currencyState(p.currency)
	}
	if b := p.state; b != nil {
		repeated(c, 4, &b.SourceQuotes, (*codec).sourceQuote)
		repeated(c, 5, &b.Pending, (*codec).pendingConfirmation)
		c.history(6, b)
		repeated(c, 7, &b.Quarantine, (*codec).quarantined)
	}
	c.uint64(8, &p.parts)
	c.bool(9, &p.last)
	c.byteStrings(10, &p.accounts)
	repeated(c, 11, &p.addresses, (*codec).address)
	repeated(c, 12, &p.sessions, (*codec).session)
	if c.once(13); c.nextField == 13 {
		p.registry = &registry{}
	}
	if p.registry != nil {
		message(c, 13, p.registry, (*codec).registry)
	}
	if b := p.state; b != nil {
		repeated(c, 14, &b.Slots, (*codec).slot)
	}
	repeated(c, 15, &p.codes, (*codec).code)
}

// history writes or reads the history, which is the longest list. When reading, it at least doubles the capacity of a
// full list, so that few parts copy the list.
func (c *codec) history(n fieldNumber, state *engine.SavedCurrency) {
	start := len(state.History)
	if c.nextField == n {
		if more := c.countRun(); cap(state.History)-start < more {
			grown := make([]engine.HistoryEntry, start, start+max(more, start))
			copy(grown, state.History)
			state.History = grown
		}
	}
	repeated(c, n, &state.History, (*codec).historyEntry)
	if !c.writing {
		for i := range state.History[start:] {
			state.History[start+i].Currency = state.Currency
		}
	}
}

// isAccountPart reports whether a part has data of accounts or of the registry, and not of a currency.
func (p *part) isAccountPart() bool {
	return len(p.accounts)+len(p.addresses)+len(p.sessions)+len(p.codes) > 0 || p.registry != nil
}
