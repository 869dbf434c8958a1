package accounts

import (
	"fmt"
	"sync"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// remote forwards events of another node to the actors of their accounts.
func (s *ShardActor) remote(m *commitlog.RemoteEvents[account.Event]) {
	defer m.Window.Release()
	if s.stopped != nil || s.Accounts == nil {
		return // the node or the accounts of the shard have stopped
	}
	s.remoteSeq++
	byAccount := map[uint64][]account.Event{}
	for _, event := range m.Events {
		id := event.AccountID()
		byAccount[id] = append(byAccount[id], event)
	}
	for _, event := range m.Events {
		id := event.AccountID()
		if events := byAccount[id]; events != nil {
			delete(byAccount, id)
			s.remoteAccount(id, events, m.Window)
		}
	}
}

func (s *ShardActor) remoteAccount(id uint64, events []account.Event, window *commitlog.WindowEntry) {
	if created, ok := events[0].(*account.Created); ok {
		s.created([]*account.Created{created})
		events = events[1:]
	}
	if len(events) == 0 {
		return
	}
	acct := s.Accounts[id]
	if acct == nil {
		panic(fmt.Errorf("apply an event of account %d, which was never created", id))
	}
	acct.remoteSent++
	acct.Ref.Send(&commitlog.RemoteEvents[account.Event]{Events: events, Window: window.Retain()})
}

// remote applies events of another node. An event that this node has decided but not yet written then conflicts with
// them: its write fails with ErrConflict, unless the event is unconditional (pendingEvent.unconditional).
func (a *AccountActor) remote(m *commitlog.RemoteEvents[account.Event]) {
	defer m.Window.Release()
	a.remoteSeq++
	now := a.clock.Now()
	for _, event := range m.Events {
		a.Account.ApplyRemote(event, now)
		a.indexKey(event)
	}
}

// CheckReturns tells a shard to send checkReturn to all its accounts.
type CheckReturns struct{ mailbox.OneWay }

// checkReturn tells an account to return its quota lease if the account does not need the lease. Other nodes can then
// use that part of the quota.
type checkReturn struct{ mailbox.OneWay }

// checkReturnsInterval is the time between two CheckReturns messages in a cluster.
const checkReturnsInterval = 5 * time.Second

// returnChecker is the goroutine that sends CheckReturns.
type returnChecker struct {
	stop chan struct{}
	done sync.WaitGroup
}

func startReturnChecker(shards []*mailbox.Ref) *returnChecker {
	c := &returnChecker{stop: make(chan struct{})}
	c.done.Add(1)
	go c.run(shards)
	return c
}

func (c *returnChecker) run(shards []*mailbox.Ref) {
	defer c.done.Done()
	ticker := time.NewTicker(checkReturnsInterval)
	defer ticker.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-ticker.C:
		}
		for _, shard := range shards {
			shard.Send(&CheckReturns{})
		}
	}
}

func (c *returnChecker) end() {
	close(c.stop)
	c.done.Wait()
}

func (s *ShardActor) checkReturns() {
	for _, acct := range s.Accounts {
		acct.Ref.Send(&checkReturn{})
	}
}

func (a *AccountActor) checkReturn() {
	if a.stopped != nil || a.stopping {
		return
	}
	event := a.Account.NextReturn(a.clock.Now())
	if event == nil {
		return
	}
	record, err := record.Encode(event)
	if err != nil {
		a.Account.AbortReturn(event)
		return
	}
	a.outbox.post(pendingEvent{account: a, event: event, record: record, unconditional: true}, false)
}
