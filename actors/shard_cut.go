package actors

// surrender gives a cut the accounts, unless the node has stopped (see currencyActor.share).
func (s *shardActor) surrender(m *share) {
	if s.stopped != nil {
		m.Reject(s.stopped)
		return
	}
	s.share(m.cut, m.index)
}

// share hands over the idle accounts and those whose actors do nothing (see mailbox.quiet), and asks the
// others for theirs: what these have been sent before they take in before.
func (s *shardActor) share(c *cut, index int) {
	all := make([][]byte, len(s.idle)+len(s.live))
	at := 0
	for _, state := range s.idle {
		all[at] = state
		at++
	}
	c.ledgers[index] = all
	c.missing.Add(int64(len(s.live)))
	for _, one := range s.live {
		p := &share{cut: c, index: index, slot: at}
		if one.ref.Idle() {
			p.handAccount(putAside(one.actor.account))
		} else {
			one.ref.Send(p)
		}
		at++
	}
	c.arrived()
}

// census answers with all accounts of the shard.
func (s *shardActor) census(m *census) {
	c := &cut{ledgers: make([][][]byte, 1)}
	c.done = func(c *cut) {
		if err := c.err.Load(); err != nil {
			m.Reject(err)
			return
		}
		m.Reply(c, nil)
	}
	c.missing.Store(1)
	s.share(c, 0)
}
