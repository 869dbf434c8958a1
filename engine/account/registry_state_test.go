package account

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

func numberedID(number int) EmailID { return idOf(fmt.Sprintf("%d@b.do", number)) }

// randomLogins are events of a few thousand addresses over some days.
func randomLogins(seed uint64, count int) []RegistryEvent {
	random := rand.New(rand.NewPCG(5, seed))
	var events []RegistryEvent
	for i := range count {
		email, monotonic := numberedID(random.IntN(3000)), time.Duration(i)*2*time.Minute
		at := noon.Add(monotonic)
		switch random.IntN(5) {
		case 0:
			events = append(events, &CodeFailed{Email: email, At: at, Monotonic: monotonic})
		case 1:
			account := uint64(1 + random.IntN(3000))
			events = append(events, &SessionOpened{account, true, email, digestOf(fmt.Sprint(i)), at.Add(SessionLifetime), at, monotonic, Digest{}})
		case 2:
			events = append(events, &SessionClosed{digestOf(fmt.Sprint(i - random.IntN(4)))})
		default:
			events = append(events, &CodeIssued{email, at, monotonic, random.IntN(2) == 0, CodeSeal{}, Digest{}})
		}
	}
	return events
}

// A snapshot does not change with the registry, and taking one changes nothing.
func TestRegistrySnapshotsStay(t *testing.T) {
	other, plain := NewRegistry([32]byte{1}), NewRegistry([32]byte{1})
	type taken struct {
		snapshot RegistrySnapshot
		want     RegistryState
	}
	var all []taken
	forgotten := 0
	for i, event := range randomLogins(1, 20_000) {
		before := len(other.addresses)
		other.Apply(event)
		plain.Apply(event)
		forgotten += max(0, before-len(other.addresses))
		if i%1777 == 0 {
			all = append(all, taken{other.Snapshot(), plain.Snapshot().State()})
		}
	}
	for i, one := range all {
		if !reflect.DeepEqual(one.snapshot.State(), one.want) {
			t.Errorf("snapshot %d is not what the registry was", i)
		}
	}
	if !reflect.DeepEqual(other.Snapshot().State(), plain.Snapshot().State()) {
		t.Error("cuts have changed the registry")
	}
	if forgotten == 0 {
		t.Error("no address was forgotten")
	}
}

// Addresses are restored in any order.
func TestRegistryIsRestoredInAnyOrder(t *testing.T) {
	r := NewRegistry([32]byte{1})
	for _, event := range randomLogins(2, 5000) {
		r.Apply(event)
	}
	want := r.Snapshot().State()
	turned := want
	turned.Addresses = slices.Clone(want.Addresses)
	slices.Reverse(turned.Addresses)
	if got := RestoreRegistry(turned, [32]byte{2}).Snapshot().State(); !reflect.DeepEqual(got, want) {
		t.Errorf("%d addresses, want %d", len(got.Addresses), len(want.Addresses))
	}
}
