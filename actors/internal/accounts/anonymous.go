package accounts

import (
	"hash/maphash"
	"net/netip"
	"strconv"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// AnonymousTables is the number of AnonymousActors. A hash assigns each IP address to one of them.
const AnonymousTables = 16

type anonymousAdmission = mailbox.Request[anonymousQuery, account.Admission]

type anonymousQuery struct{ address netip.Addr }

// AnonymousActor counts the requests of clients without an API key, by IP address. The counts are in memory only.
type AnonymousActor struct {
	table *account.AnonymousTable
	quota account.Quota
	clock *monotonicClock
}

// Receive implements mailbox.Actor.
func (t *AnonymousActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *anonymousAdmission:
		t.admit(m)
	case *Refund:
		t.table.Refund(m.Query.Address, m.Query.At)
		m.Reply(struct{}{}, nil)
	}
}

func (t *AnonymousActor) admit(m *anonymousAdmission) {
	now, address := t.clock.Now(), m.Query.address
	result := t.table.Admit(address, now, t.quota)
	if !m.Reply(account.Admission{QuotaResult: result, Address: address, At: now}, nil) && result.Admitted {
		t.table.Refund(address, now)
	}
}

// FailsNode implements mailbox.Actor. A panic is not fatal: at most, one count is wrong by one.
func (t *AnonymousActor) FailsNode(mailbox.Message) bool { return false }

// RejectAll implements mailbox.Actor.
func (t *AnonymousActor) RejectAll(*engine.Error) {}

// anonymousTables holds the Refs of all AnonymousActors.
type anonymousTables struct {
	seed maphash.Seed // random, so that clients cannot fill one table with chosen addresses
	refs []*mailbox.Ref
}

// newAnonymousTables starts the actors. rows is the number of clients for all tables together.
func newAnonymousTables(actors *mailbox.System, kind *mailbox.Kind, rows int, quota account.Quota, clock *monotonicClock) (*anonymousTables, error) {
	t := &anonymousTables{seed: maphash.MakeSeed()}
	rowSeed := maphash.MakeSeed() // differs from t.seed, so that one table's addresses spread over all its rows
	for i := range AnonymousTables {
		table := account.NewAnonymousTable((rows+AnonymousTables-1)/AnonymousTables, func(key uint64) uint64 {
			return maphash.Comparable(rowSeed, key)
		})
		ref, err := actors.Spawn("anonymous-"+strconv.Itoa(i), kind, &AnonymousActor{table, quota, clock})
		if err != nil {
			return nil, err
		}
		t.refs = append(t.refs, ref)
	}
	return t, nil
}

// of returns the actor that counts an IP address. All addresses of one network (account.WidestPrefix) share an actor.
func (t *anonymousTables) of(address netip.Addr) *mailbox.Ref {
	client := account.WidestPrefix(address).Addr().As16()
	return t.refs[maphash.Comparable(t.seed, client)%uint64(len(t.refs))]
}

func (t *anonymousTables) stop() {
	for _, r := range t.refs {
		r.Stop()
	}
}
