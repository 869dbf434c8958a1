package accounts

import (
	"slices"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// remote applies a record of another node. Decisions that are not durable were made without it: all are taken back,
// newest first, and made again after it, as if the nodes had decided one after the other.
func (r *RegistrarActor) remote(m *commitlog.RemoteEvents[any]) {
	defer m.Window.Release()
	if r.stopped != nil {
		return
	}
	r.remoteSeq++
	void := slices.Concat(r.inFlight, r.pending)
	r.inFlight, r.pending = nil, nil
	for _, one := range slices.Backward(void) {
		r.discard(one)
	}
	now := r.clock.Now()
	for _, event := range m.Events {
		r.applyRemote(event, now)
	}
	for _, one := range void {
		if one.question.Abandoned() {
			one.question.Reject(mailbox.ErrExpired)
			continue
		}
		r.queueDecision(one.question, one.decide, true)
	}
	r.write()
}

// discard takes back what a decision has counted.
func (r *RegistrarActor) discard(one *decision) {
	for _, event := range one.events {
		if e, ok := event.(account.RegistryEvent); ok {
			r.registry.Rollback(e)
		}
	}
}

// applyRemote applies an event of another node.
func (r *RegistrarActor) applyRemote(event any, now account.ClockReading) {
	if e, ok := event.(account.RegistryEvent); ok {
		r.registry.ApplyRemote(e, now)
		return
	}
	r.apply(&decision{events: []any{event}})
}
