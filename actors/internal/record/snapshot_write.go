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

// SnapshotWriter writes a snapshot in parts, so that it is never in memory as a whole. It keeps the first error.
type SnapshotWriter struct {
	w     io.Writer
	coder coder
	count uint64
	err   error
}

// NewSnapshotWriter writes to w. The snapshot is complete after End.
func NewSnapshotWriter(w io.Writer) *SnapshotWriter {
	return &SnapshotWriter{w: w, coder: coder{writing: true}}
}

// Currency writes the state of a currency, in at least one part.
func (w *SnapshotWriter) Currency(s engine.SavedCurrency) {
	write := func(lists engine.SavedCurrency) {
		w.write(&part{currency: s.Currency, lastQuarantineID: s.LastQuarantineID, state: &lists})
	}
	write(engine.SavedCurrency{})
	for offers := range slices.Chunk(s.SourceQuotes, partItemsMax) {
		write(engine.SavedCurrency{SourceQuotes: offers})
	}
	for suspects := range slices.Chunk(s.Pending, partItemsMax) {
		write(engine.SavedCurrency{Pending: suspects})
	}
	for rows := range slices.Chunk(s.History, partItemsMax) {
		write(engine.SavedCurrency{History: rows})
	}
	for held := range slices.Chunk(s.Quarantine, partItemsMax) {
		write(engine.SavedCurrency{Quarantine: held})
	}
	for slots := range slices.Chunk(s.Slots, partItemsMax) {
		write(engine.SavedCurrency{Slots: slots})
	}
}

// Accounts writes outputs of AppendAccount, each without its length.
func (w *SnapshotWriter) Accounts(all iter.Seq[[]byte]) {
	chunked(all, func(some [][]byte) { w.write(&part{requires: snapshotVersion, accounts: some}) })
}

// Registry writes the registry of logins, the key policy and the steady time of the snapshot.
func (w *SnapshotWriter) Registry(cut *account.RegistrySnapshot, transition account.KeyPolicy, steady time.Duration) {
	chunked(cut.Addresses(), func(some []account.AddressState) { w.write(&part{requires: snapshotVersion, addresses: some}) })
	rest := cut.WithoutAddresses()
	for sessions := range slices.Chunk(rest.Sessions, partItemsMax) {
		w.write(&part{requires: snapshotVersion, sessions: sessions})
	}
	for codes := range slices.Chunk(rest.SharedCodes, partItemsMax) {
		w.write(&part{requires: snapshotVersion, codes: codes})
	}
	w.write(&part{requires: snapshotVersion, registry: &registry{
		failedAttempts: rest.WrongTries, codesIssued: rest.CodesIssued, lastSweep: rest.LastSweep, lastID: rest.LastID, keyPolicy: transition, steady: steady,
	}})
}

// End writes the last part and returns the first error.
func (w *SnapshotWriter) End() error {
	w.write(&part{last: true, parts: w.count})
	return w.err
}

func (w *SnapshotWriter) write(p *part) {
	if w.err != nil {
		return
	}
	w.coder.bytes = w.coder.bytes[:0]
	lengthPrefixed(&w.coder, p, (*coder).part)
	w.count++
	if _, err := w.w.Write(w.coder.bytes); err != nil {
		w.err = fmt.Errorf("write snapshot: %w", err)
	}
}

// chunked calls write with up to partItemsMax elements at a time.
func chunked[T any](all iter.Seq[T], write func([]T)) {
	some := make([]T, 0, partItemsMax)
	for one := range all {
		if some = append(some, one); len(some) == partItemsMax {
			write(some)
			some = some[:0]
		}
	}
	if len(some) > 0 {
		write(some)
	}
}
