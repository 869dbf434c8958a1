package actors

import (
	"io"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine/account"
)

// registryCut is what the registrar hands over.
type registryCut struct {
	registry   account.RegistryCut
	transition account.Transition
	steady     time.Duration // no event up to the cut is of a later one
}

// shareLedgers sends the owners of accounts their shares.
func (j *journalActor) shareLedgers(c *cut) {
	c.ledgers = make([][][]byte, len(j.shards))
	c.missing.Add(int64(len(j.shards)) + 1)
	for i, shard := range j.shards {
		shard.Send(&share{cut: c, index: i})
	}
	j.registry.Send(&share{cut: c})
}

// ledgerBytes is how large the accounts are.
func (c *cut) ledgerBytes() int64 {
	total := int64(0)
	for _, accounts := range c.ledgers {
		for _, account := range accounts {
			total += int64(len(account))
		}
	}
	return total
}

// write writes the whole cut as a snapshot holds it.
func (c *cut) write(to io.Writer) error {
	w := record.NewSnapshotWriter(to)
	for _, board := range c.boards {
		w.Book(board.State())
	}
	for _, accounts := range c.ledgers {
		w.Accounts(func(yield func([]byte) bool) {
			for _, account := range accounts {
				if state, _ := record.AccountParts(account); !yield(state) {
					return
				}
			}
		})
	}
	if c.whole {
		w.Registry(&c.registry.registry, c.registry.transition, c.registry.steady)
	}
	return w.End()
}
