package record

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// SnapshotWriter writes a snapshot as a list of parts (messages), with one encoded part in memory. After an error it
// writes nothing more; End returns the error.
type SnapshotWriter struct {
	w     io.Writer
	codec codec
	count uint64
	err   error
}

// NewSnapshotWriter returns a SnapshotWriter that writes to w. Call End to complete the snapshot.
func NewSnapshotWriter(w io.Writer) *SnapshotWriter {
	return &SnapshotWriter{w: w, codec: codec{writing: true}}
}

// Currency writes the state of a currency.
func (w *SnapshotWriter) Currency(s engine.SavedCurrency) {
	write := func(lists engine.SavedCurrency) {
		lists.Currency, lists.LastQuarantineID = s.Currency, s.LastQuarantineID
		w.write(&part{currency: lists})
	}
	write(engine.SavedCurrency{})
	for quotes := range slices.Chunk(s.SourceQuotes, partItemsMax) {
		write(engine.SavedCurrency{SourceQuotes: quotes})
	}
	for pending := range slices.Chunk(s.Pending, partItemsMax) {
		write(engine.SavedCurrency{Pending: pending})
	}
	for rows := range slices.Chunk(s.History, partItemsMax) {
		write(engine.SavedCurrency{History: rows})
	}
	for quarantined := range slices.Chunk(s.Quarantine, partItemsMax) {
		write(engine.SavedCurrency{Quarantine: quarantined})
	}
	for slots := range slices.Chunk(s.Slots, partSlotsMax) {
		write(engine.SavedCurrency{Slots: slots})
	}
}

// Accounts writes accounts. Each is an encoded account.State.
func (w *SnapshotWriter) Accounts(accounts iter.Seq[[]byte]) {
	chunked(accounts, func(chunk [][]byte) { w.write(&part{requires: accountsVersion, accounts: chunk}) })
}

// Grants writes the grants of days, which the accounts of a shard may have used without events of their own.
func (w *SnapshotWriter) Grants(grants []account.DayGrant, closedUntil engine.Date) {
	if len(grants) > 0 || closedUntil != 0 {
		w.write(&part{requires: snapshotVersion, state: &Snapshot{Grants: grants, GrantsClosedUntil: closedUntil}})
	}
}

// Registry writes the registry of logins, the key policy (the date from which API keys are required) and the monotonic
// time (account.ClockReading) of the snapshot.
func (w *SnapshotWriter) Registry(snapshot *account.RegistrySnapshot, policy account.KeyPolicy, monotonic time.Duration) {
	write := func(lists account.RegistryState) {
		w.write(&part{requires: accountsVersion, state: &Snapshot{Registry: lists}})
	}
	chunked(snapshot.Addresses(), func(chunk []account.AddressState) { write(account.RegistryState{Addresses: chunk}) })
	registry := snapshot.WithoutAddresses()
	for sessions := range slices.Chunk(registry.Sessions, partItemsMax) {
		write(account.RegistryState{Sessions: sessions})
	}
	for codes := range slices.Chunk(registry.SharedCodes, partItemsMax) {
		write(account.RegistryState{SharedCodes: codes})
	}
	registry.Sessions, registry.SharedCodes = nil, nil
	w.write(&part{requires: accountsVersion, hasRegistry: true, state: &Snapshot{Registry: registry, KeyPolicy: policy, Monotonic: monotonic}})
}

// End completes the snapshot. It returns the first error of all calls.
func (w *SnapshotWriter) End() error {
	w.write(&part{last: true, parts: w.count})
	return w.err
}

func (w *SnapshotWriter) write(p *part) {
	if w.err != nil {
		return
	}
	if p.state == nil {
		p.state = &Snapshot{}
	}
	w.codec.bytes = w.codec.bytes[:0]
	lengthPrefixed(&w.codec, p, partFields)
	w.count++
	if _, err := w.w.Write(w.codec.bytes); err != nil {
		w.err = fmt.Errorf("write snapshot: %w", err)
	}
}

// chunked calls write with consecutive chunks of at most partItemsMax elements.
func chunked[T any](elements iter.Seq[T], write func([]T)) {
	chunk := make([]T, 0, partItemsMax)
	for element := range elements {
		if chunk = append(chunk, element); len(chunk) == partItemsMax {
			write(chunk)
			chunk = chunk[:0]
		}
	}
	if len(chunk) > 0 {
		write(chunk)
	}
}
