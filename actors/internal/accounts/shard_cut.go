package accounts

import "github.com/tasard/tasard/actors/internal/commitlog"

// surrender gives a cut the accounts, unless the node has stopped (see commitlog.Share).
func (s *ShardActor) surrender(m *commitlog.Share) {
	if s.stopped != nil {
		m.Reject(s.stopped)
		return
	}
	s.share(m.Cut, m.Index)
}

// share hands over the idle accounts and those whose actors do nothing (see mailbox.quiet), and asks the
// others for theirs: what these have been sent before they take in before.
func (s *ShardActor) share(c *commitlog.Cut, index int) {
	all := make([][]byte, len(s.idle)+len(s.Live))
	at := 0
	for _, state := range s.idle {
		all[at] = state
		at++
	}
	c.Ledgers[index] = all
	c.Missing.Add(int64(len(s.Live)))
	for _, one := range s.Live {
		p := &commitlog.Share{Cut: c, Index: index, Slot: at}
		if one.Ref.Idle() {
			p.HandAccount(PutAside(one.actor.Account))
		} else {
			one.Ref.Send(p)
		}
		at++
	}
	c.Arrived()
}

// census answers with all accounts of the shard.
func (s *ShardActor) census(m *Census) {
	c := &commitlog.Cut{Ledgers: make([][][]byte, 1)}
	c.Done = func(c *commitlog.Cut) {
		if err := c.Err.Load(); err != nil {
			m.Reject(err)
			return
		}
		m.Reply(c, nil)
	}
	c.Missing.Store(1)
	s.share(c, 0)
}
