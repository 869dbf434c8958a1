package accounts

import "github.com/tasard/tasard/actors/internal/commitlog"

// handOff gives a snapshot the accounts, unless the node has stopped (see commitlog.SnapshotRequest).
func (s *ShardActor) handOff(m *commitlog.SnapshotRequest) {
	if s.stopped != nil {
		m.Reject(s.stopped)
		return
	}
	s.share(m.Snapshot, m.Index)
}

// share gives a snapshot the evicted accounts, and sends the others a request for theirs, after earlier messages.
func (s *ShardActor) share(c *commitlog.StateSnapshot, index int) {
	all := make([][]byte, len(s.evicted)+len(s.Loaded))
	at := 0
	for _, state := range s.evicted {
		all[at] = state
		at++
	}
	c.Accounts[index] = all
	c.Pending.Add(int64(len(s.Loaded)))
	for _, one := range s.Loaded {
		one.Ref.Deliver(&commitlog.SnapshotRequest{Snapshot: c, Index: index, Position: at})
		at++
	}
	c.PartDone()
}

// list answers with all accounts of the shard.
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
