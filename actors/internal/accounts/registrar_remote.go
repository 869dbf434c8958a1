package accounts

import (
	"slices"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// remote applies events of another node. A decision has the events that one request causes. Decisions that are not
// durable yet were made without the events of the other node. Therefore remote reverts these decisions, newest first,
// and makes them again after it has applied the events.
func (r *RegistrarActor) remote(m *commitlog.RemoteEvents[any]) {
	defer m.Window.Release()
	if r.stopped != nil {
		return
	}
	r.remoteSeq++
	discarded := slices.Concat(r.inFlight, r.pending)
	r.inFlight, r.pending = nil, nil
	for _, d := range slices.Backward(discarded) {
		r.discard(d)
	}
	now := r.clock.Now()
	for _, event := range m.Events {
		r.applyRemote(event, now)
	}
	for _, d := range discarded {
		if d.request.Abandoned() {
			d.request.Reject(mailbox.ErrExpired)
			continue
		}
		r.queueDecision(d.request, d.decide, true)
	}
	r.write()
}

// discard reverts what a decision changed in the registry, because the decision is made again.
func (r *RegistrarActor) discard(d *decision) {
	for _, event := range d.events {
		if e, ok := event.(account.RegistryEvent); ok {
			r.registry.Rollback(e)
		}
	}
}

func (r *RegistrarActor) applyRemote(event any, now account.ClockReading) {
	if e, ok := event.(account.RegistryEvent); ok {
		r.registry.ApplyRemote(e, now)
		return
	}
	r.apply(&decision{events: []any{event}})
}
