package accounts

import (
	"hash/maphash"
	"net/netip"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// AnonymousTables is how many actors share the callers without a key, so that these do not all wait for one.
const AnonymousTables = 4

// anonymousAdmission asks for a request of an address. A refund is the same as that of an account.
type anonymousAdmission = mailbox.Question[anonymousQuery, account.Admission]

type anonymousQuery struct{ from netip.Addr }

// AnonymousActor counts callers without a key, by client address. It keeps nothing: a restart forgets them.
type AnonymousActor struct {
	table     *account.AnonymousTable
	allowance account.Quota
	clock     *steadyClock
}

// Receive is one line for each message.
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
	verdict := s.table.Admit(from, now, s.allowance)
	if !m.Reply(account.Admission{QuotaResult: verdict, Address: from, At: now}, nil) && verdict.Admitted {
		s.table.Refund(from, now)
	}
}

// Fatal is mailbox.Actor: a count that is wrong by one is no reason to stop.
func (s *AnonymousActor) Fatal(mailbox.Message) bool { return false }

// Abort is mailbox.Actor: no question is kept.
func (s *AnonymousActor) Abort(*engine.Error) {}

// anonymous are the tables together. The seed is of chance, so that nobody can choose addresses that crowd
// one table or each other's rows.
type anonymousTables struct {
	seed maphash.Seed
	refs []*mailbox.Ref
}

// newAnonymousTables spawns the tables with so many rows in all.
func newAnonymousTables(actors *mailbox.System, kind *mailbox.Kind, rows int, allowance account.Quota, clock *steadyClock) (*anonymousTables, error) {
	s := &anonymousTables{seed: maphash.MakeSeed()}
	inner := maphash.MakeSeed() // another one: what shares a table must not share rows
	for i := range AnonymousTables {
		table := account.NewAnonymousTable((rows+AnonymousTables-1)/AnonymousTables, func(key uint64) uint64 {
			return maphash.Comparable(inner, key)
		})
		ref, err := actors.Spawn("strangers-"+string(rune('0'+i)), kind, &AnonymousActor{table, allowance, clock})
		if err != nil {
			return nil, err
		}
		s.refs = append(s.refs, ref)
	}
	return s, nil
}

// of is the table that counts an address; all addresses of a client share it.
func (s *anonymousTables) of(from netip.Addr) *mailbox.Ref {
	client := account.ClientPrefix(from).Addr().As16()
	return s.refs[maphash.Comparable(s.seed, client)%uint64(len(s.refs))]
}

func (s *anonymousTables) stop() {
	for _, r := range s.refs {
		r.Stop()
	}
}
