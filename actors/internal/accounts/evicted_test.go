package accounts

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// clusterAccount is an account that node 1 keeps, of which nodes 1 to 3 have leased.
func clusterAccount(t testing.TB) *account.Account {
	a, now := testAccount(t, 9), account.ClockReading{Wall: noon, Monotonic: time.Hour}
	a.SetNode(1)
	a.Resume(now)
	a.ApplyRemote(&account.Leased{Account: 9, Day: engine.DateOf(noon), Count: 4, Unspent: 1, Monotonic: time.Minute, At: noon, Node: 3, RecentAdmitted: 7}, now)
	a.ApplyRemote(&account.Returned{Account: 9, Day: engine.DateOf(noon), Monotonic: time.Minute, Node: 2, RecentAdmitted: 5}, now)
	lease := a.NextLease(keyOf(9), now, account.QuotaPolicy{DefaultQuota: account.DefaultQuota(), LeaseSize: 16}, 6)
	if lease == nil || lease.Node != 1 {
		t.Fatalf("leased %+v", lease)
	}
	a.Apply(lease)
	return a
}

// The leases of all nodes of a cluster survive an eviction; a node that starts again counts them as having come now.
func TestDormantAccountsOfAClusterWakeAsTheyWere(t *testing.T) {
	a := clusterAccount(t)
	policy := account.QuotaPolicy{DefaultQuota: account.DefaultQuota(), LeaseSize: 16}
	later := account.ClockReading{Wall: noon.Add(time.Minute), Monotonic: time.Hour + 70*time.Second}
	if !a.Idle(later) {
		t.Fatal("not idle after a minute")
	}
	aside := EncodeEvicted(a)
	if !aside.hasEvictedState() {
		t.Fatal("it was not put aside")
	}
	awake, err := aside.load(1, account.ClockReading{Wall: noon})
	if err != nil || !reflect.DeepEqual(awake.State(), a.State()) {
		t.Errorf("woke as %+v, %v\nwas %+v", awake.State(), err, a.State())
	}
	if got, want := awake.Usage(later, policy), a.Usage(later, policy); got != want || want.Minute.Remaining != 60-5 {
		t.Errorf("windows %+v, were %+v", got, want)
	}
	cold := EncodeDurable(a)
	const left = 60 - (6 + 16) - 5 - (7 + 5) // node 1 had counted the 16 that were leased before there was a cluster
	for _, node := range []engine.NodeID{1, 2, 4} {
		restarted, err := cold.load(node, later)
		if err != nil {
			t.Fatal(err)
		}
		if got := restarted.Usage(later, policy).Minute.Remaining; got != left {
			t.Errorf("node %d: %d remain of the minute after a restart, want %d", node, got, left)
		}
	}
}

// An account that sleeps learns what others decided, whether it was put aside in this process or never awake in it;
// what it learnt counts from when it arrived, not from the start of the process.
func TestDormantAccountsLearn(t *testing.T) {
	start, arrival := account.ClockReading{Wall: noon, Monotonic: time.Hour}, account.ClockReading{Wall: noon.Add(10 * time.Minute), Monotonic: time.Hour + 10*time.Minute}
	leased := &account.Leased{Account: 9, Day: engine.DateOf(noon), Count: 20, Monotonic: time.Second, At: noon, Node: 2, RecentAdmitted: 15}
	policy := account.QuotaPolicy{DefaultQuota: account.DefaultQuota(), LeaseSize: 16}
	a := testAccount(t, 9)
	cold := EncodeDurable(a)
	a.SetNode(1)
	a.Resume(start)
	a.Apply(a.NextLease(keyOf(9), start, policy, 3))
	aside := EncodeEvicted(a)
	const ofDay = 1000 - 16 - 20 // 16 were leased before there was a cluster
	for name, asleep := range map[string]evictedAccount{"never awake": cold, "put aside": aside} {
		learnt, err := asleep.applyRemote(leased, arrival)
		if err != nil || learnt.hasEvictedState() != asleep.hasEvictedState() {
			t.Fatal(name, err)
		}
		awake, err := learnt.load(1, start)
		if err != nil {
			t.Fatal(err)
		}
		for after, want := range map[time.Duration]int{
			0: 60 - 35, 60 * time.Second: 60 - 35, 61 * time.Second: 60 - 20, 120 * time.Second: 60 - 20, 121 * time.Second: 60,
		} {
			now := account.ClockReading{Wall: arrival.Wall, Monotonic: arrival.Monotonic + after}
			if v := awake.Usage(now, policy); v.Minute.Remaining != want || v.Day.Remaining != ofDay {
				t.Errorf("%s, %s after the arrival: %+v, want %d of the minute, %d of the day", name, after, v, want, ofDay)
			}
		}
	}
	if _, err := evictedAccount([]byte{1, 0xff}).applyRemote(leased, arrival); err == nil {
		t.Error("garbage learns")
	}
}

func TestDormantAccountsWakeAsTheyWere(t *testing.T) {
	now := account.ClockReading{Wall: noon.Add(time.Minute), Monotonic: 2 * time.Hour}
	policy := account.QuotaPolicy{DefaultQuota: account.DefaultQuota(), LeaseSize: 16}
	a := testAccount(t, 9)
	a.Resume(account.ClockReading{Wall: noon, Monotonic: time.Hour})
	a.Apply(a.NextLease(keyOf(9), now, policy, 1))
	now.Wall = now.Wall.Add(time.Second)
	for range 5 {
		if verdict, needsLease := a.Admit(keyOf(9), now, policy); !verdict.Admitted || needsLease {
			t.Fatal(verdict, needsLease)
		}
	}
	later := account.ClockReading{Wall: noon.Add(time.Hour), Monotonic: 3 * time.Hour}
	if !a.Idle(later) {
		t.Fatal("not idle after an hour")
	}
	state := EncodeEvicted(a)
	awake, err := state.load(0, account.ClockReading{Wall: noon})
	if err != nil || !reflect.DeepEqual(awake.State(), a.State()) || !bytes.Equal(EncodeEvicted(awake), state) {
		t.Errorf("woke as %+v, %v\nwas %+v", awake, err, a)
	}
	cold := EncodeDurable(a)
	if cold.hasEvictedState() || !state.hasEvictedState() {
		t.Fatal("an account is not put aside, or one is that was not")
	}
	data, _ := record.SplitAccount(state)
	if again := evictedAccount(appendEvicted(nil, data)); !bytes.Equal(again, cold) {
		t.Errorf("the state of an account put aside is another one:\n%x\n%x", again, cold)
	}
	restored, err := cold.load(0, later)
	if err != nil {
		t.Fatal(err)
	}
	if windows := restored.Usage(later, policy); windows.Day.Remaining != 1000-32 {
		t.Errorf("after a restart %+v, want two leases spent", windows)
	}
}
