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

// SnapshotWriter writes a snapshot in parts, so that neither writer nor reader has the whole of it in memory twice. It keeps the first
// error.
type SnapshotWriter struct {
	to    io.Writer
	coder coder
	count uint64
	err   error
}

// NewSnapshotWriter writes to w. What is written is whole after End.
func NewSnapshotWriter(w io.Writer) *SnapshotWriter {
	return &SnapshotWriter{to: w, coder: coder{writing: true}}
}

// Book writes at least one part, also of a book without facts.
func (w *SnapshotWriter) Book(s engine.BookState) {
	write := func(lists engine.BookState) {
		w.write(&part{currency: s.Currency, lastHeldID: s.LastHeldID, book: &lists})
	}
	write(engine.BookState{})
	for offers := range slices.Chunk(s.Offers, partItemsMax) {
		write(engine.BookState{Offers: offers})
	}
	for suspects := range slices.Chunk(s.Suspects, partItemsMax) {
		write(engine.BookState{Suspects: suspects})
	}
	for rows := range slices.Chunk(s.History, partItemsMax) {
		write(engine.BookState{History: rows})
	}
	for held := range slices.Chunk(s.Held, partItemsMax) {
		write(engine.BookState{Held: held})
	}
	for slots := range slices.Chunk(s.Slots, partItemsMax) {
		write(engine.BookState{Slots: slots})
	}
}

// Accounts writes accounts, each as AppendAccount has written it, but without its length.
func (w *SnapshotWriter) Accounts(all iter.Seq[[]byte]) {
	gathered(all, func(some [][]byte) { w.write(&part{requires: newestSnapshot, accounts: some}) })
}

// Registry writes the registry of logins, the announced transition and the steady time of the snapshot.
func (w *SnapshotWriter) Registry(cut *account.RegistryCut, transition account.Transition, steady time.Duration) {
	gathered(cut.Addresses(), func(some []account.AddressState) { w.write(&part{requires: newestSnapshot, addresses: some}) })
	rest := cut.Rest()
	for sessions := range slices.Chunk(rest.Sessions, partItemsMax) {
		w.write(&part{requires: newestSnapshot, sessions: sessions})
	}
	for codes := range slices.Chunk(rest.Shared, partItemsMax) {
		w.write(&part{requires: newestSnapshot, codes: codes})
	}
	w.write(&part{requires: newestSnapshot, registry: &registry{
		wrong: rest.Wrong, codes: rest.Codes, swept: rest.Swept, lastID: rest.LastID, transition: transition, steady: steady,
	}})
}

// End writes the end; the error is the first one.
func (w *SnapshotWriter) End() error {
	w.write(&part{last: true, parts: w.count})
	return w.err
}

func (w *SnapshotWriter) write(p *part) {
	if w.err != nil {
		return
	}
	w.coder.bytes = w.coder.bytes[:0]
	measured(&w.coder, p, (*coder).part)
	w.count++
	if _, err := w.to.Write(w.coder.bytes); err != nil {
		w.err = fmt.Errorf("write snapshot: %w", err)
	}
}

// gathered gives what comes one by one to write, as many at once as a part holds.
func gathered[T any](all iter.Seq[T], write func([]T)) {
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
