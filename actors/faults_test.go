//go:build faults

package actors

import (
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/tasard/tasard/engine/account"
)

func TestFaultsQ1_Histories(t *testing.T) {
	checkHistories(t, 10*histories, 10*historiesCrashed)
	t.Run("control", TestQ1_Control_LeaseThatIsNotDurableIsIllegal)
}

func TestFaultsQ1_ExactlyTheLimit(t *testing.T) { exactlyTheLimit(t, 1, 3, 16, 100) }

func TestFaultsQ1_Boards(t *testing.T) {
	checkBoards(t, 200)
	t.Run("control", TestQ1_Control_OlderRateIsIllegal)
}

func TestFaultsS2_OneRightAnswer(t *testing.T) {
	for range 20 {
		checkCodes(t)
	}
	t.Run("control", TestS2_Control)
}

func TestFaultsQ5_PanicsOverAnyMessage(t *testing.T) {
	t.Parallel()
	checkPanics(t, 8000, 2000)
	t.Run("control", TestQ5_Control_EmptyRestart)
}

// TestFaultsQ6_AccountsFollowTheContract is TestQ6_AccountsFollowTheContract over 100,000 sequences.
func TestFaultsQ6_AccountsFollowTheContract(t *testing.T) {
	t.Parallel()
	const sequences = 100_000
	c := &contractCheck{most: sequences / accountsInWorld}
	for round := 0; c.worlds < c.most && !t.Failed(); round++ {
		rapid.Check(t, c.play)
		if round%10 == 9 {
			t.Logf("PROGRESS %d sequences", c.worlds*accountsInWorld)
		}
	}
	c.report(t)
	t.Run("control", TestQ6_EachChangeIsDurable)
}

const bytesPerAccountMax = 1024 // F9

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestFaultsF9_Memory is what an account costs that is idle, the address that it logs in with included: when it has
// not asked in this process, and when it has and was put aside since.
func TestFaultsF9_Memory(t *testing.T) {
	const accounts = 100_000 // a node without accounts takes some megabytes as well
	journal := manyAccounts(t, accounts)
	journal.before = func([][]byte) error { return nil }
	before := heapInUse()
	n := startNode(t, Config{Journal: journal, SnapshotRecords: 1 << 40, SnapshotBytes: 1 << 60})
	check := func(what string) {
		each := (heapInUse() - before) / accounts
		t.Logf("FIGURE %d accounts %s: %d bytes each", accounts, what, each)
		if each > bytesPerAccountMax {
			t.Errorf("%d bytes an account %s, at most %d", each, what, bytesPerAccountMax)
		}
	}
	check("that have not asked")
	for id := uint64(1); id <= accounts; id++ {
		if grant := n.admit(keyOf(id)); !grant.Admitted || grant.Account != id || grant.Day.Remaining != 1000-16-1 {
			t.Fatalf("account %d: %+v", id, grant)
		}
		if id%4000 == 0 {
			n.pass(2 * account.MinuteSpan)
			journal.letGo()
		}
	}
	check("that have asked")
	runtime.KeepAlive(journal)
}

// letGo forgets the records, which a real journal has on disk.
func (m *memoryJournal) letGo() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropped += uint64(len(m.records))
	m.records = nil
}
