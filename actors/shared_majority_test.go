package actors

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/actors/dump"
	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

func codeOfError(err error) engine.Code {
	if err == nil {
		return ""
	}
	return accounts.AsEngineError(err).Code
}

func (s *clusterNode) condition() engine.Condition {
	all := s.Conditions()
	return all[len(all)-1]
}

// TestShared_A11_CutOff cuts a node off. It refuses changes at once and says why, answers reads, admits what it has
// leased and no more; what it had offered becomes true when it is back, and then all nodes are the same.
func TestShared_A11_CutOff(t *testing.T) { synctest.Test(t, cutOff) }

func cutOff(t *testing.T) {
	f := startCluster(t, 3, 1, Config{WriteTimeout: 50 * time.Millisecond})
	defer f.stop()
	observe(t, f.nodes[0].System, saying("infodolar", noon, "USD", "58", "60", "popular"))
	apart := f.nodes[2]
	_, key := apart.loginWithKey()
	f.sameStates()
	caller := account.Caller{Key: key, HasKey: true, Address: client(0)}
	if grant, err := apart.Admit(caller); err != nil || !grant.Admitted {
		t.Fatalf("admit: %+v, %v", grant, err)
	}
	f.settled()
	if c := apart.condition(); c.Name != "cluster" || c.State != engine.ConditionOK {
		t.Errorf("condition: %+v", c)
	}

	var late sync.WaitGroup
	f.log.with(func() { f.log.stuck = true }) // the majority is lost while a change is on its way
	late.Go(func() {
		if _, err := apart.Observe([]engine.Refresh{saying("infodolar", noon, "EUR", "63", "66", "bhd")}); !errors.Is(err, commitlog.ErrOutcomeUnknown) {
			t.Errorf("a change on its way: %v", err)
		}
	})
	f.nodes[0].offers() // which leads
	f.log.cut(apart.node, true)
	f.log.with(func() { f.log.stuck = false })
	late.Wait()
	apart.isCutOff(t, caller)
	observe(t, f.nodes[0].System, saying("infodolar", noon.Add(time.Second), "USD", "58.5", "60", "popular"))

	f.log.cut(apart.node, false)
	euro := func(s engine.SavedCurrency) bool { return s.Currency == "EUR" && len(s.SourceQuotes) == 1 }
	for !slices.ContainsFunc(states(t, f.nodes[0].System), euro) { // what was on its way comes true
		runtime.Gosched()
	}
	f.spread()
	if c := apart.condition(); c.State != engine.ConditionOK {
		t.Errorf("condition: %+v", c)
	}
	observe(t, apart.System, saying("infodolar", noon.Add(2*time.Second), "USD", "58.7", "60", "popular"))
	f.sameStates()
}

// isCutOff asks a node for everything while it has no majority.
func (s *clusterNode) isCutOff(t *testing.T, caller account.Caller) {
	t.Helper()
	if c := s.condition(); c.State != "no_majority" || c.Down || c.Since.IsZero() {
		t.Errorf("condition: %+v", c)
	}
	if got := best(t, s.System); got != "60" {
		t.Errorf("a read: %q", got)
	}
	if _, err := s.States(); err != nil {
		t.Errorf("an export: %v", err)
	}
	changes := map[string]func() error{
		"observe": func() error {
			_, err := s.Observe([]engine.Refresh{saying("infodolar", noon, "USD", "58", "60", "bhd")})
			return err
		},
		"request a code": func() error { return s.RequestCode(mustEmail(t, "two@example.com"), requester(2)) },
		"suspend":        func() error { return s.SuspendAccount(1, "test", "test") },
		"announce":       func() error { return s.WithdrawAnnouncement("test") },
	}
	for name, change := range changes {
		if err := change(); codeOfError(err) != engine.CodeNoMajority || !errors.Is(err, commitlog.ErrNoMajority) {
			t.Errorf("%s: %v", name, err)
		}
	}
	admitted, refused := 0, error(nil)
	for refused == nil && admitted <= account.MinuteLimitDefault {
		var grant account.Admission
		if grant, refused = s.Admit(caller); grant.Admitted {
			admitted++
		}
	}
	if codeOfError(refused) != engine.CodeNoMajority {
		t.Errorf("behind %d admissions from the lease: %v", admitted, refused)
	}
}

// offers waits until an offer of the node waits for the log to go on.
func (s *clusterNode) offers() {
	for offered := false; !offered; runtime.Gosched() {
		s.node.log.with(func() { offered = s.node.log.offer != nil && s.node.log.leader == s.node })
	}
}

// TestShared_A11_BehindALease asks for a lease that is not decided, as while a leader is elected: the request is soon
// refused as overloaded, since a majority is there. When it is lost too, the next one is refused at once.
func TestShared_A11_BehindALease(t *testing.T) {
	f := startCluster(t, 3, 1, Config{})
	defer f.stop()
	_, key := f.nodes[0].loginWithKey()
	caller := account.Caller{Key: key, HasKey: true, Address: client(0)}
	f.log.with(func() { f.log.stuck = true })
	if _, err := f.nodes[2].Admit(caller); codeOfError(err) != engine.CodeOverloaded { // and not after seconds
		t.Errorf("behind a lease that is not decided: %v", err)
	}
	f.nodes[0].offers()
	ask, err := record.Encode(&account.Leased{Account: 1, Day: engine.DateOf(noon), Count: 1, Monotonic: 1, At: noon, Node: 2})
	must(t, err)
	if err := f.nodes[0].accounts.Grant([][]byte{ask})[0]; !errors.Is(err, commitlog.ErrNotLeader) {
		t.Errorf("L1: a lease of the account beside that of another node: %v", err)
	}
	f.log.cut(f.nodes[2].node, true)
	if _, err := f.nodes[2].Admit(caller); codeOfError(err) != engine.CodeNoMajority {
		t.Errorf("behind one who waits: %v", err)
	}
	f.log.with(func() { f.log.stuck = false })
	f.log.cut(f.nodes[2].node, false)
	if grant, err := f.nodes[2].Admit(caller); err != nil || !grant.Admitted {
		t.Errorf("when the log goes on: %+v, %v", grant, err)
	}
}

// TestShared_A11_CloseWithoutMajority closes a node that has an undecided offer: it does not wait for it.
func TestShared_A11_CloseWithoutMajority(t *testing.T) {
	f := startCluster(t, 3, 1, Config{})
	f.log.with(func() { f.log.stuck = true })
	var asking sync.WaitGroup
	asking.Go(func() {
		_, err := f.nodes[0].Observe([]engine.Refresh{saying("infodolar", noon, "USD", "58", "60", "popular")})
		if !errors.Is(err, commitlog.ErrOutcomeUnknown) {
			t.Errorf("a change on its way: %v", err)
		}
	})
	f.nodes[0].offers()
	f.log.cut(f.nodes[0].node, true)
	if err := f.nodes[0].Close(); err != nil {
		t.Error(err)
	}
	asking.Wait()
	for _, s := range f.nodes[1:] {
		f.log.with(func() { f.log.stuck = false })
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestShared_S15_OneCause: a change that waits for the other nodes does not mean a slow disk. A full disk of one node
// is named as such, by its condition and by the errors of its changes, and not as a lost majority.
func TestShared_S15_OneCause(t *testing.T) { synctest.Test(t, oneCause) }

func oneCause(t *testing.T) {
	f := startCluster(t, 3, 1, Config{})
	defer f.stop()
	node, second := f.nodes[0], 0
	change := func() error {
		second++
		_, err := node.Observe([]engine.Refresh{saying("infodolar", bubbleNow(), "USD", fmt.Sprint(57+second), "63", "popular")})
		return err
	}
	pass := func(d time.Duration) {
		for range d / (100 * time.Millisecond) {
			node.monotonic.mu.Lock()
			node.monotonic.now += 100 * time.Millisecond
			node.monotonic.mu.Unlock()
			after(100 * time.Millisecond)
		}
	}
	f.log.with(func() { f.log.stuck = true })
	var waiting sync.WaitGroup
	waiting.Go(func() { _ = change() })
	node.offers()
	pass(2 * time.Second)
	wantState(t, node, "disk", engine.ConditionOK)
	f.log.with(func() { f.log.stuck = false })
	waiting.Wait()

	f.log.with(func() { node.node.full = true })
	if err := change(); codeOfError(err) != engine.CodeReadOnly || !errors.Is(err, wal.ErrNoSpace) {
		t.Errorf("a change on a full disk: %v", err)
	}
	pass(showsWithin)
	wantState(t, node, "disk", "read_only")
	wantState(t, node, "cluster", engine.ConditionOK)
	wantState(t, f.nodes[1], "disk", engine.ConditionOK)
	f.log.with(func() { node.node.full = false })
	pass(goesWithin)
	wantState(t, node, "disk", engine.ConditionOK)
	if err := change(); err != nil {
		t.Error(err)
	}
}

func TestShared_GapStopsTheNode(t *testing.T) {
	f := startCluster(t, 3, 1, Config{})
	defer func() {
		for _, s := range f.nodes {
			_ = s.Close()
		}
	}()
	observe(t, f.nodes[0].System, saying("infodolar", noon, "USD", "58", "60", "popular"))
	f.sameStates()
	s := f.nodes[1]
	f.log.with(func() { s.node.held = true })
	s.node.deliver(f.log.end()+2, []byte{1})
	<-s.Done()
	if s.Err() == nil {
		t.Error("the node goes on behind a gap")
	}
	if got := best(t, s.System); got != "60" {
		t.Errorf("a read of a node that has stopped: %q", got)
	}
}

// TestShared_A12_UnknownCurrency has a node write about a currency that another one lacks: that one stops, and knows
// it when it is started again.
func TestShared_A12_UnknownCurrency(t *testing.T) {
	f := startCluster(t, 1, 1, Config{})
	catalogue, err := testCatalogue().Extend(strings.NewReader(
		`{"currencies":[{"code":"XTS","name":"Test","symbol":"X","lowest":"1","highest":"100"}]}`), "own.json")
	must(t, err)
	f.config.Catalogue = catalogue
	wide := f.join(&memoryJournal{})
	f.log.elect(wide.node)
	observe(t, wide.System, saying("infodolar", noon, "XTS", "58", "60", "popular"))
	narrow := f.nodes[0]
	<-narrow.Done()
	if narrow.Err() == nil {
		t.Error("the node goes on")
	}
	_ = narrow.Close() // it has stopped
	f.config.Catalogue = nil
	narrow.boot()
	f.sameStates()
	f.stop()
}

func (f *testCluster) command(s *clusterNode, random *rand.Rand, tokens []account.Digest, round int) error {
	institutions := []string{"popular", "banreservas", "bhd", "scotiabank"}
	switch token := tokens[random.IntN(len(tokens))]; random.IntN(6) {
	case 0, 1:
		at := noon.Add(time.Duration(round-1000) * time.Second)
		_, err := s.Observe([]engine.Refresh{saying("infodolar", at, []string{"USD", "EUR"}[random.IntN(2)],
			fmt.Sprintf("58.%02d", random.IntN(100)), "60.50", institutions[random.IntN(len(institutions))])})
		return err
	case 2:
		_, _, err := s.CreateKey(token, "")
		return err
	case 3:
		keys, err := s.Keys(token)
		if err != nil || len(keys) == 0 {
			return err
		}
		return s.RevokeKey(token, keys[random.IntN(len(keys))].ID)
	case 4:
		return s.SuspendAccount(uint64(1+random.IntN(len(tokens))), "test", "test")
	default:
		return s.RestoreAccount(uint64(1+random.IntN(len(tokens))), "test")
	}
}

// sendAtOnce gives every node commands at once, and another node leads after each. Those that others made impossible
// are refused, and of those in progress when their leader changes the outcome is unknown.
func (f *testCluster) sendAtOnce(seed uint64, tokens []account.Digest, rounds int) {
	f.allAccounts(2, func(s *clusterNode, time int) {
		random := rand.New(rand.NewPCG(seed, uint64(s.node.id)*10+uint64(time)))
		for round := range rounds {
			err := f.command(s, random, tokens, round)
			f.log.elect(f.nodes[random.IntN(len(f.nodes))].node)
			switch codeOfError(err) {
			case engine.CodeInternalError:
				if !errors.Is(err, commitlog.ErrOutcomeUnknown) {
					f.t.Fatalf("node %d: %v", s.node.id, err)
				}
			case "", engine.CodeKeyLimitReached, engine.CodeNotFound, engine.CodeAccountSuspended:
			default:
				f.t.Fatalf("node %d: %v", s.node.id, err)
			}
		}
	})
}

func (f *testCluster) spread() {
	f.t.Helper()
	f.sameStates()
	if different := f.differs(); different != "" {
		f.t.Fatalf("seed %d: %s", f.seed, different)
	}
}

// anyCommands gives three nodes commands at once, stops one of them in the middle, starts it again from its own copy,
// and lets a fourth one join from a snapshot: all are the same in the end.
func anyCommands(t panicStops, seed uint64) {
	f := startCluster(t, 3, seed, Config{SnapshotRecords: 30})
	var tokens []account.Digest
	for i := range 3 {
		tokens = append(tokens, login(t, f.nodes[i].System, f.mail, mustEmail(t, fmt.Sprintf("user%d@example.com", i)), client(i)))
		f.settled()
	}
	f.sendAtOnce(seed, tokens, 10)
	f.spread()

	gone := f.nodes[1]
	must(t, gone.Close())
	f.nodes = []*clusterNode{f.nodes[0], f.nodes[2]}
	f.sendAtOnce(seed+1, tokens, 10)
	gone.boot()
	f.nodes = append(f.nodes, gone)
	f.sendAtOnce(seed+2, tokens, 10)
	f.spread()

	f.join(lateCopy(t, f.nodes[0].System))
	f.sendAtOnce(seed+3, tokens, 5)
	f.spread()
	f.stop()
}

func TestShared_AnyCommands(t *testing.T) {
	for seed := range uint64(cases(3, 10)) {
		anyCommands(t, seed)
	}
}

// TestShared_SnapshotsAreTheStateOfTheirRecord holds the snapshots that nodes take while all of them write against a
// replay of the log up to the same record.
func TestShared_SnapshotsAreTheStateOfTheirRecord(t *testing.T) {
	compared := 0
	for seed := range uint64(cases(3, 10)) {
		f := startCluster(t, 3, seed, Config{SnapshotRecords: 7})
		tokens := []account.Digest{f.nodes[0].login()}
		f.sendAtOnce(seed, tokens, 15)
		f.settled()
		for _, s := range f.nodes {
			image := s.node.copy.crashed()
			if image.snapshot == nil {
				continue
			}
			compared++
			cut := &memoryJournal{dropped: image.sequence, sequence: image.sequence, snapshot: image.snapshot}
			replayed := &memoryJournal{records: f.log.records[:image.sequence]}
			got, want := start(t, Config{Journal: cut}), start(t, Config{Journal: replayed})
			if a, b := states(t, got), states(t, want); !reflect.DeepEqual(a, b) {
				t.Errorf("seed %d, node %d: the snapshot at %d:\n%+v\nwant\n%+v", seed, s.node.id, image.sequence, a, b)
			}
			a, _, errA := got.ShowAccount(1)
			b, _, errB := want.ShowAccount(1)
			if !reflect.DeepEqual(a, b) || errA != nil || errB != nil {
				t.Errorf("seed %d, node %d: the account in the snapshot at %d:\n%+v\nwant\n%+v", seed, s.node.id, image.sequence, a, b)
			}
		}
		f.stop()
	}
	if compared == 0 {
		t.Error("there was no snapshot")
	}
}

func TestShared_DescribesBundles(t *testing.T) {
	f := startCluster(t, 3, 1, Config{})
	defer f.stop()
	observe(t, f.nodes[1].System, saying("infodolar", noon, "USD", "58", "60", "popular"))
	f.settled()
	line, err := dump.Record(f.log.records[0])
	if err != nil || !strings.HasPrefix(line, `{"event":"bundle","node":1,"records":[{"currency":"USD"`) {
		t.Errorf("%s, %v", line, err)
	}
	if stats := f.nodes[0].Stats(); stats.Sequence != f.log.end() {
		t.Errorf("sequence %d, want %d", stats.Sequence, f.log.end())
	}
}
