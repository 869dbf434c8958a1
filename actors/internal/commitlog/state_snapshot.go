package commitlog

import (
	"io"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine/account"
)

// RegistrySnapshot is what the registrar hands over.
type RegistrySnapshot struct {
	Registry  account.RegistrySnapshot
	KeyPolicy account.KeyPolicy
	Steady    time.Duration // no event up to the cut is of a later one
}

// requestAccounts sends the owners of accounts their shares.
func (j *Actor) requestAccounts(c *StateSnapshot) {
	c.Accounts = make([][][]byte, len(j.Shards))
	c.Pending.Add(int64(len(j.Shards)) + 1)
	for i, shard := range j.Shards {
		shard.Send(&SnapshotRequest{Snapshot: c, Index: i})
	}
	j.Registry.Send(&SnapshotRequest{Snapshot: c})
}

// accountBytes is how large the accounts are.
func (c *StateSnapshot) accountBytes() int64 {
	total := int64(0)
	for _, accounts := range c.Accounts {
		for _, account := range accounts {
			total += int64(len(account))
		}
	}
	return total
}

// Write writes the whole cut as a snapshot holds it.
func (c *StateSnapshot) Write(to io.Writer) error {
	w := record.NewSnapshotWriter(to)
	for _, board := range c.Currencies {
		w.Currency(board.Saved())
	}
	for _, accounts := range c.Accounts {
		w.Accounts(func(yield func([]byte) bool) {
			for _, account := range accounts {
				if state, _ := record.SplitAccount(account); !yield(state) {
					return
				}
			}
		})
	}
	if c.Full {
		w.Registry(&c.Registry.Registry, c.Registry.KeyPolicy, c.Registry.Steady)
	}
	return w.End()
}
