package record

import (
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// snapshotVersion is the newest version of the snapshot format. Parts with accounts require version 2, because an older
// reader would skip the accounts and accept an incomplete snapshot.
const snapshotVersion = 2

const (
	partItemsMax = 256     // list elements in one part
	partBytesMax = 4 << 20 // of one part; 256 elements of the largest kind need far less
)

// part is a piece of a snapshot: of one currency, of the accounts or of the registry. A snapshot is a list of parts,
// each after its length as a varint. The parts of a currency are consecutive; the last part contains only the number
// of parts.
type part struct {
	requires         uint64
	currency         string
	lastQuarantineID uint64
	state            *engine.SavedCurrency // lists of a currency; nil while reading a part without them
	parts            uint64                // in the last part: number of parts before it
	last             bool
	accounts         [][]byte // see AppendAccount
	addresses        []account.AddressState
	sessions         []account.SessionState // in the order in which they were opened
	registry         *registry
	codes            []account.CodeState

	currencyState func(currency string) *engine.SavedCurrency // state to read the lists into
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

// history writes or reads the history, the longest list. When it is full, its capacity is at least doubled.
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

// isAccountPart reports whether a part has data of accounts or of the registry.
func (p *part) isAccountPart() bool {
	return len(p.accounts)+len(p.addresses)+len(p.sessions)+len(p.codes) > 0 || p.registry != nil
}
