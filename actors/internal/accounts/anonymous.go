package accounts

import (
	"hash/maphash"
	"net/netip"
	"strconv"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// AnonymousTables is how many actors share the anonymous clients.
const AnonymousTables = 16

// anonymousAdmission asks for one request of an address.
type anonymousAdmission = mailbox.Question[anonymousQuery, account.Admission]

type anonymousQuery struct{ from netip.Addr }

// AnonymousActor counts callers without a key, by address, in memory only.
type AnonymousActor struct {
	table *account.AnonymousTable
	quota account.Quota
	clock *steadyClock
}

// Receive implements mailbox.Actor.
func (s *AnonymousActor) Receive(l mailbox.Message) {
	switch m := l.(type) {
	case *anonymousAdmission:
		s.admit(m)
	case *Refund:
		s.table.Refund(m.Query.Address, m.Query.At)
		m.Reply(struct{}{}, nil)
	}
}

func (s *AnonymousActor) admit(m *anonymousAdmission) {
	now, from := s.clock.Now(), m.Query.from
	verdict := s.table.Admit(from, now, s.quota)
	if !m.Reply(account.Admission{QuotaResult: verdict, Address: from, At: now}, nil) && verdict.Admitted {
		s.table.Refund(from, now)
	}
}

// Fatal implements mailbox.Actor: a count that is wrong by one does not stop the node.
func (s *AnonymousActor) Fatal(mailbox.Message) bool { return false }

// Abort implements mailbox.Actor.
func (s *AnonymousActor) Abort(*engine.Error) {}

// anonymousTables are all tables. The seed is random, so that clients cannot choose addresses that crowd one table.
type anonymousTables struct {
	seed maphash.Seed
	refs []*mailbox.Ref
}

// newAnonymousTables spawns tables with so many rows in all.
func newAnonymousTables(actors *mailbox.System, kind *mailbox.Kind, rows int, quota account.Quota, clock *steadyClock) (*anonymousTables, error) {
	s := &anonymousTables{seed: maphash.MakeSeed()}
	inner := maphash.MakeSeed() // another seed, to spread the addresses of one table over its rows
	for i := range AnonymousTables {
		table := account.NewAnonymousTable((rows+AnonymousTables-1)/AnonymousTables, func(key uint64) uint64 {
			return maphash.Comparable(inner, key)
		})
		ref, err := actors.Spawn("anonymous-"+strconv.Itoa(i), kind, &AnonymousActor{table, quota, clock})
		if err != nil {
			return nil, err
		}
		s.refs = append(s.refs, ref)
	}
	return s, nil
}

// of returns the table of an address. All addresses of a client have the same table.
func (s *anonymousTables) of(from netip.Addr) *mailbox.Ref {
	client := account.ClientPrefix(from).Addr().As16()
	return s.refs[maphash.Comparable(s.seed, client)%uint64(len(s.refs))]
}

func (s *anonymousTables) stop() {
	for _, r := range s.refs {
		r.Stop()
	}
}
