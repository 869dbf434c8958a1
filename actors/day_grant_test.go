package actors

import (
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// grantNode is a node with one shard and keys of so many accounts. snapshotRecords is Config.SnapshotRecords.
func grantNode(t *testing.T, accounts, snapshotRecords int) (*node, []*testMember) {
	t.Helper()
	n := startNode(t, Config{AccountShards: 1, SnapshotRecords: snapshotRecords})
	members := make([]*testMember, accounts)
	for i := range members {
		members[i] = n.join(i+1, 1)
	}
	return n, members
}

// wantSpent compares what accounts have spent of the day.
func wantSpent(t *testing.T, n *node, when string, members []*testMember, want ...int) {
	t.Helper()
	for i, m := range members {
		if m.token = login(t, n.System, n.mail, m.email, client(100+i)); n.spent(m.token) != want[i] {
			t.Errorf("%s: account %d has spent %d, want %d", when, i+1, n.spent(m.token), want[i])
		}
	}
	n.pass(2 * time.Minute) // so that codes can be asked for again
}

// grants are those in the log.
func (n *node) grants(t *testing.T) (grants []account.DayGranted) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, data := range n.all {
		events, err := new(record.Decoder).Events(data, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events {
			if e, is := event.(*account.DayGranted); is {
				grants = append(grants, *e)
			}
		}
	}
	return grants
}

func (n *node) recordCount() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.all)
}

// The first request of an account on a day makes a grant for its shard. The first requests of the other accounts then
// need no record.
func TestL1_GrantOfADay_OneRecord(t *testing.T) {
	n, members := grantNode(t, 3, 0)
	n.admitted(members[0].keys[0], 1)
	countAccounts(t, n.System) // the shard has taken the result of its write
	before := n.recordCount()
	if got := n.admitted(members[1].keys[0], 7) + n.admitted(members[2].keys[0], 7); got != 14 || n.recordCount() != before {
		t.Errorf("%d of 14 admitted, with %d records", got, n.recordCount()-before)
	}
	want := account.DayGranted{Shards: 1, Day: engine.DateOf(noon), Size: account.LeaseSizeDefault}
	got := n.grants(t)
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	if got[0].Monotonic = 0; got[0] != want {
		t.Errorf("%+v, want %+v", got[0], want)
	}
	if got := n.admitted(members[1].keys[0], 20); got != 20 {
		t.Errorf("%d of 20 admitted with more than the grant", got)
	}
}

// After a crash each account without an event of the day counts the grant as spent, whether or not a snapshot has it.
func TestL1_GrantOfADay_CrashCostsALease(t *testing.T) {
	for name, snapshotRecords := range map[string]int{"log": 0, "snapshot": 1} {
		n, members := grantNode(t, 3, snapshotRecords)
		n.admitted(members[0].keys[0], 2)
		countAccounts(t, n.System)
		n.admitted(members[1].keys[0], 3)
		n.crash()
		n.pass(2 * time.Minute)
		const lease = account.LeaseSizeDefault
		wantSpent(t, n, name, members, lease, lease, lease)
		if got := n.admitted(members[1].keys[0], 1); got != 1 {
			t.Errorf("%s: nothing is admitted after the crash", name)
		}
		n.crash()
		n.pass(2 * time.Minute)
		wantSpent(t, n, name+", again", members, lease, 2*lease, lease)
	}
}

// The minute counts what may have been spent of a grant just before a crash.
func TestL2_GrantOfADay_CrashKeepsTheMinute(t *testing.T) {
	n := startNode(t, Config{AccountShards: 1, QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: 1000, Minute: 16}, LeaseSize: 16}})
	first, second := n.join(1, 1), n.join(2, 1)
	n.admitted(first.keys[0], 1)
	countAccounts(t, n.System)
	n.admitted(second.keys[0], 7)
	n.crash()
	if got := n.admitted(second.keys[0], 1); got != 0 {
		t.Error("a request is admitted right after a crash with a grant in use")
	}
	n.pass(time.Minute)
	if got := n.admitted(second.keys[0], 17); got != 16 {
		t.Errorf("%d of 17 admitted a minute later", got)
	}
}

// A clean stop writes what accounts have spent of the grant, and takes the grant back.
func TestL1_GrantOfADay_CleanStopCostsNothing(t *testing.T) {
	n, members := grantNode(t, 3, 0)
	n.admitted(members[0].keys[0], 2)
	countAccounts(t, n.System)
	n.admitted(members[1].keys[0], 3)
	n.restart()
	n.pass(2 * time.Minute)
	wantSpent(t, n, "stopped", members, 2, 3, 0)
	n.crash()
	n.pass(2 * time.Minute)
	wantSpent(t, n, "crashed without a grant", members, 2, 3, 0)
	n.admitted(members[2].keys[0], 1)
	n.restart()
	wantSpent(t, n, "stopped again", members, 2, 3, 1)
	got := n.grants(t)
	if len(got) != 4 || got[0].TakenBack || !got[1].TakenBack || got[2].TakenBack || !got[3].TakenBack {
		t.Errorf("%+v", got)
	}
}
