package accounts

import "github.com/tasard/tasard/actors/internal/commitlog"

func (s *ShardActor) addToSnapshot(m *commitlog.SnapshotRequest) {
	if s.stopped != nil {
		m.Reject(s.stopped)
		return
	}
	s.share(m.Snapshot, m.Index)
}

// share adds the accounts of the shard to a snapshot. The shard has the evicted accounts encoded, and adds them itself.
// It asks the actor of each loaded account to add its account.
func (s *ShardActor) share(c *commitlog.StateSnapshot, index int) {
	accounts := make([][]byte, len(s.evicted)+len(s.Loaded))
	position := 0
	for _, state := range s.evicted {
		accounts[position] = state
		position++
	}
	c.Accounts[index] = accounts
	c.Pending.Add(int64(len(s.Loaded)))
	for _, acct := range s.Loaded {
		acct.Ref.Deliver(&commitlog.SnapshotRequest{Snapshot: c, Index: index, Position: position})
		position++
	}
	c.PartDone()
}

func (s *ShardActor) list(m *ListRequest) {
	c := &commitlog.StateSnapshot{Accounts: make([][][]byte, 1)}
	c.Done = func(c *commitlog.StateSnapshot) {
		if err := c.Err.Load(); err != nil {
			m.Reject(err)
			return
		}
		m.Reply(c, nil)
	}
	c.Pending.Store(1)
	s.share(c, 0)
}
