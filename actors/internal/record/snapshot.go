package record

import (
	"time"

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

// Snapshot is the contents of a snapshot except the accounts.
type Snapshot struct {
	Currencies        []engine.SavedCurrency // in the order of writing
	Registry          account.RegistryState
	KeyPolicy         account.KeyPolicy // the date from which API keys are required
	Grants            []account.DayGrant
	GrantsClosedUntil engine.Date   // account.DayGrants.ClosedUntil
	Monotonic         time.Duration // monotonic time of the snapshot, not earlier than that of any event in it
}

// part is one message of a snapshot. A snapshot is a list of parts, each preceded by its length as a varint. All parts
// of a currency are adjacent. The final part contains only the fields last and parts.
type part struct {
	requires    uint64               // required version
	currency    engine.SavedCurrency // a chunk of each list; without a code in a part without a currency
	parts       uint64               // number of parts before the final part
	last        bool
	accounts    [][]byte // encoded account.States
	hasRegistry bool     // the part contains what occurs once: counters of the registry, KeyPolicy and Monotonic
	state       *Snapshot
}

func partFields(c *codec, p *part) {
	c.version(&p.requires, snapshotVersion)
	currency, s := &p.currency, p.state
	c.internedText(2, &currency.Currency)
	c.uint64(3, &currency.LastQuarantineID)
	repeated(c, 4, &currency.SourceQuotes, sourceQuoteFields)
	repeated(c, 5, &currency.Pending, pendingConfirmationFields)
	repeated(c, 6, &currency.History, historyEntryFields)
	repeated(c, 7, &currency.Quarantine, quarantinedFields)
	c.uint64(8, &p.parts)
	c.bool(9, &p.last)
	c.byteStrings(10, &p.accounts)
	repeated(c, 11, &s.Registry.Addresses, addressFields)
	repeated(c, 12, &s.Registry.Sessions, sessionFields) // in the order of opening
	if !c.writing || p.hasRegistry {
		message(c, 13, s, registryFields)
	}
	repeated(c, 14, &currency.Slots, slotFields)
	repeated(c, 15, &s.Registry.SharedCodes, codeFields)
	repeated(c, 16, &s.Grants, dayGrantFields)
	c.date(17, &s.GrantsClosedUntil)
}
