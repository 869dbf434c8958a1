package actors

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// A disk that takes nothing: what is leased is spent, then the answer is read_only, and all is well when
// there is room again.
func TestReadOnlyDiskAndBack(t *testing.T) {
	n := startNode(t, Config{})
	m := n.join(1, 1)
	n.admitted(m.keys[0], 1)
	n.fault(fmt.Errorf("planted: %w", wal.ErrNoSpace))
	admitted, refused := 0, 0
	for range 30 {
		switch grant, err := n.Admit(account.Caller{Key: m.keys[0], HasKey: true}); {
		case err == nil && grant.Admitted:
			admitted++
		case isCode(err, engine.CodeReadOnly):
			refused++
		default:
			t.Fatal(grant, err)
		}
	}
	if admitted != account.LeaseSizeDefault-1 || refused != 30-admitted {
		t.Errorf("%d admitted, %d refused", admitted, refused)
	}
	_, _, err := n.CreateKey(m.token, "second")
	if !isCode(err, engine.CodeReadOnly) || n.RequestCode(m.email, requester(9)) == nil {
		t.Errorf("a key is made on a full disk: %v", err)
	}
	_, err = n.Observe([]engine.Refresh{saying("a", noon, "USD", "57", "61", "popular")})
	if e := accounts.AsEngineError(err); err == nil || e.Code != engine.CodeReadOnly || e.RetryAfter <= 0 || !strings.Contains(e.Message, "nearly full") {
		t.Errorf("a rate on a full disk: %v, want %s with a Retry-After", err, engine.CodeReadOnly)
	}
	n.fault(nil)
	if got := n.admitted(m.keys[0], 10); got != 10 {
		t.Errorf("%d of 10 admitted when there is room again", got)
	}
	if _, _, err := n.CreateKey(m.token, "second"); err != nil {
		t.Errorf("a key that was lost counts against the limit: %v", err)
	}
	observe(t, n.System, saying("a", noon, "USD", "57", "61", "popular"))
	n.restart()
	if got := best(t, n.System); got != "61" {
		t.Errorf("the best is %q", got)
	}
	if spent := n.spent(m.token); spent != account.LeaseSizeDefault+10 {
		t.Errorf("%d spent", spent)
	}
}

// A node that fails while a snapshot waits for an account's part is closed only after that account, which may begin to
// write the snapshot.
func TestClose_WaitsForEveryAccount(t *testing.T) { synctest.Test(t, closeOrder) }

func closeOrder(t *testing.T) {
	n := startNode(t, Config{AccountShards: 1})
	m := n.join(1, 1)
	n.admitted(m.keys[0], 1)
	shard := n.accounts.Shards[0]
	synctest.Wait()
	if !isIdle(shard) {
		t.Fatal("the shard is still at work")
	}
	var account *mailbox.Ref
	for _, one := range stateOf(shard).(*accounts.ShardActor).Accounts {
		account = &one.Ref
	}
	busy := make(chan struct{})
	c := &commitlog.StateSnapshot{Accounts: [][][]byte{make([][]byte, 1)}, Done: func(*commitlog.StateSnapshot) { <-busy }}
	c.Pending.Store(1)
	account.Send(&commitlog.SnapshotRequest{Snapshot: c})
	n.System.fail(errors.New("the disk is gone"))
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		n.stop()
	}()
	synctest.Wait()
	select {
	case <-closed:
		t.Error("the node is closed while an account is at work")
	default:
	}
	close(busy)
	<-closed
}
