package commitlog

import (
	"io"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine/account"
)

// RegistryCut is what the registrar hands over.
type RegistryCut struct {
	Registry   account.RegistryCut
	Transition account.Transition
	Steady     time.Duration // no event up to the cut is of a later one
}

// shareLedgers sends the owners of accounts their shares.
func (j *Actor) shareLedgers(c *Cut) {
	c.Ledgers = make([][][]byte, len(j.Shards))
	c.Missing.Add(int64(len(j.Shards)) + 1)
	for i, shard := range j.Shards {
		shard.Send(&Share{Cut: c, Index: i})
	}
	j.Registry.Send(&Share{Cut: c})
}

// ledgerBytes is how large the accounts are.
func (c *Cut) ledgerBytes() int64 {
	total := int64(0)
	for _, accounts := range c.Ledgers {
		for _, account := range accounts {
			total += int64(len(account))
		}
	}
	return total
}

// Write writes the whole cut as a snapshot holds it.
func (c *Cut) Write(to io.Writer) error {
	w := record.NewSnapshotWriter(to)
	for _, board := range c.Boards {
		w.Book(board.State())
	}
	for _, accounts := range c.Ledgers {
		w.Accounts(func(yield func([]byte) bool) {
			for _, account := range accounts {
				if state, _ := record.AccountParts(account); !yield(state) {
					return
				}
			}
		})
	}
	if c.Whole {
		w.Registry(&c.Registry.Registry, c.Registry.Transition, c.Registry.Steady)
	}
	return w.End()
}
