package accounts

import (
	"slices"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// foreign takes in what another node has decided. Every ruling that is not durable was made without it: all are taken back, the newest
// first, and made again behind it, so that what nodes decide at the same time is as if they had done it one after another. Whoever
// is refused now is answered so.
func (r *RegistrarActor) foreign(m *commitlog.ForeignEvents[any]) {
	defer m.Credit.Release()
	if r.stopped != nil {
		return
	}
	r.heard++
	void := slices.Concat(r.flight, r.pending)
	r.flight, r.pending = nil, nil
	for _, one := range slices.Backward(void) {
		r.void(one)
	}
	now := r.clock.Now()
	for _, event := range m.Events {
		r.learn(event, now)
	}
	for _, one := range void {
		if one.question.Abandoned() {
			one.question.Reject(mailbox.ErrExpired)
			continue
		}
		r.rule(one.question, one.rule, true)
	}
	r.write()
}

// void takes back what a ruling has noted.
func (r *RegistrarActor) void(one *ruling) {
	for _, event := range one.events {
		if e, ok := event.(account.RegistryEvent); ok {
			r.registry.Void(e)
		}
	}
}

// learn makes an event of another node true.
func (r *RegistrarActor) learn(event any, now account.Moment) {
	if e, ok := event.(account.RegistryEvent); ok {
		r.registry.Learn(e, now)
		return
	}
	r.apply(&ruling{events: []any{event}})
}
