package record

import (
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// snapshotVersion is the newest version of snapshots that this program can read. A snapshot is a list of parts, and
// each part states its required version. Parts with accounts require version 2: a program of version 1 would skip their
// fields and accept an incomplete snapshot. Parts with grants require version 3.
const (
	snapshotVersion = 3
	accountsVersion = 2
)

const (
	partItemsMax = 256     // maximum number of list elements in a written part
	partBytesMax = 4 << 20 // maximum size of a part for the reader; partItemsMax elements need far less
	partSlotsMax = 15      // maximum number of slots in one part; each may have a large Baseline
	_            = uint(partBytesMax - partSlotsMax*(engine.BaselineBytesMax+1<<10))
)

// part is one message of a snapshot: data of one currency, of accounts or of the registry. A snapshot is a list of
// parts, each preceded by its length as a varint. All parts of a currency are adjacent. The final part contains only
// the fields last and parts.
type part struct {
	requires  uint64               // required version
	currency  engine.SavedCurrency // a chunk of each list
	parts     uint64               // number of parts before the final part
	last      bool
	accounts  [][]byte // encoded account.States
	addresses []account.AddressState
	sessions  []account.SessionState // in the order of opening
	registry  *registry
	codes     []account.CodeState
	grants    []account.DayGrant
	closed    engine.Date // account.DayGrants.ClosedUntil
}

func partFields(c *codec, p *part) {
	c.version(&p.requires, snapshotVersion)
	s := &p.currency
	c.internedText(2, &s.Currency)
	c.uint64(3, &s.LastQuarantineID)
	repeated(c, 4, &s.SourceQuotes, sourceQuoteFields)
	repeated(c, 5, &s.Pending, pendingConfirmationFields)
	repeated(c, 6, &s.History, historyEntryFields)
	repeated(c, 7, &s.Quarantine, quarantinedFields)
	c.uint64(8, &p.parts)
	c.bool(9, &p.last)
	c.byteStrings(10, &p.accounts)
	repeated(c, 11, &p.addresses, addressFields)
	repeated(c, 12, &p.sessions, sessionFields)
	if c.nextField == 13 {
		p.registry = &registry{}
	}
	if p.registry != nil {
		message(c, 13, p.registry, registryFields)
	}
	repeated(c, 14, &s.Slots, slotFields)
	repeated(c, 15, &p.codes, codeFields)
	repeated(c, 16, &p.grants, dayGrantFields)
	c.date(17, &p.closed)
}

// isAccountPart reports whether a part contains data of accounts or of the registry.
func (p *part) isAccountPart() bool {
	return len(p.accounts)+len(p.addresses)+len(p.sessions)+len(p.codes)+len(p.grants) > 0 || p.closed != 0 || p.registry != nil
}
