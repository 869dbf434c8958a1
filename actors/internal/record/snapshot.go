package record

import (
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// snapshotVersion is the newest version of the snapshot format. Parts with accounts require 2, so that older readers
// do not take the rest for the whole.
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

func (c *coder) part(p *part) {
	c.version(&p.requires, snapshotVersion)
	c.text(2, &p.currency)
	c.uint64(3, &p.lastQuarantineID)
	if p.state == nil && (c.nextField >= 4 && c.nextField <= 7 || c.nextField == 14) {
		p.state = p.currencyState(p.currency)
	}
	if b := p.state; b != nil {
		repeated(c, 4, &b.SourceQuotes, (*coder).sourceQuote)
		repeated(c, 5, &b.Pending, (*coder).pendingConfirmation)
		c.history(6, b)
		repeated(c, 7, &b.Quarantine, (*coder).quarantined)
	}
	c.uint64(8, &p.parts)
	c.bool(9, &p.last)
	c.byteStrings(10, &p.accounts)
	repeated(c, 11, &p.addresses, (*coder).address)
	repeated(c, 12, &p.sessions, (*coder).session)
	if c.once(13); c.nextField == 13 {
		p.registry = &registry{}
	}
	if p.registry != nil {
		message(c, 13, p.registry, (*coder).registry)
	}
	if b := p.state; b != nil {
		repeated(c, 14, &b.Slots, (*coder).slot)
	}
	repeated(c, 15, &p.codes, (*coder).code)
}

// history is the longest list; it grows to twice its size.
func (c *coder) history(n fieldNumber, b *engine.SavedCurrency) {
	from := len(b.History)
	if c.nextField == n {
		if more := c.countRun(); cap(b.History)-from < more {
			grown := make([]engine.HistoryEntry, from, from+max(more, from))
			copy(grown, b.History)
			b.History = grown
		}
	}
	repeated(c, n, &b.History, (*coder).historyEntry)
	if !c.writing {
		for i := range b.History[from:] {
			b.History[from+i].Currency = b.Currency
		}
	}
}

// isAccountPart reports whether a part has accounts or registry and no currency.
func (p *part) isAccountPart() bool {
	return len(p.accounts)+len(p.addresses)+len(p.sessions)+len(p.codes) > 0 || p.registry != nil
}
