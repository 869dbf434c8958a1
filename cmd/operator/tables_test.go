package operator

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/admin"
)

// TestAdmin_Tables wants names that others chose to steer no terminal, and nothing to be cut off.
func TestAdmin_Tables(t *testing.T) {
	at := time.Date(2026, 6, 30, 15, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	printAccount(&out, &admin.Account{
		ID: 7, Email: "ana@example.com", CreatedAt: at, SuspendedAt: at, Reason: "a\x1b[2Jb", Limits: admin.Limits{Day: 20000, Minute: 60, Own: true},
		Day: account.Window{Limit: 20000, Remaining: 19990, Reset: at}, Minute: account.Window{Limit: 60, Remaining: 50, Reset: at},
		Keys: []account.KeyRecord{
			{ID: "key_1", Name: "\u202egnp.exe", Hint: "abcd", CreatedAt: at}, {ID: "key_2", Hint: "efgh", CreatedAt: at, RevokedAt: at, LastUsed: at},
		},
	})
	want := `account    7
e-mail     ana@example.com
since      2026-06-30T15:00:00Z
state      suspended since 2026-06-30T15:00:00Z: a?[2Jb
limits     20,000 a day, 60 in 60 seconds (its own)
day        19,990 left, until 2026-06-30T15:00:00Z
minute     50 left

KEY    NAME      ENDS IN  CREATED               LAST USED             STATE
key_1  ?gnp.exe  abcd     2026-06-30T15:00:00Z  -                     active
key_2  -         efgh     2026-06-30T15:00:00Z  2026-06-30T15:00:00Z  revoked 2026-06-30T15:00:00Z
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestCluster_StatusInWords prints nodes that are reachable, gone, or were never seen.
func TestCluster_StatusInWords(t *testing.T) {
	since := time.Unix(61, 0)
	shown := engine.Cluster{Cluster: "rates", Majority: true, Since: since, Leader: "node-2", Nodes: []engine.ClusterNode{
		{Name: "node-1", Address: "10.0.0.1:6222", Self: true, Member: true, Record: 62, Lag: 1},
		{Name: "node-2", Address: "10.0.0.2:6222", Member: true, Reachable: true, Leader: true, Current: true, OtherMembers: true, Record: 63},
		{Name: "node-3", Address: "10.0.0.3:6222", SeenAt: since, Lag: 63},
	}}
	var out strings.Builder
	printCluster(&out, &shown)
	const want = `rates: a majority of the nodes is there: changes are possible, since 1970-01-01T00:01:01Z

NODE    ADDRESS        STATE                                                         RECORD  LACKS  VERSION
node-1  10.0.0.1:6222  this one, its copy of the log is incomplete                   62      1      -
node-2  10.0.0.2:6222  reachable, leads, has another list of members                 63      0      -
node-3  10.0.0.3:6222  unreachable, last seen at 1970-01-01T00:01:01Z, not a member  0       63     -
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	shown.Majority = false
	out.Reset()
	if printCluster(&out, &shown); !strings.Contains(out.String(), "no majority: reads and leased requests go on") ||
		strings.Contains(out.String(), "incomplete") {
		t.Error(out.String())
	}
}
