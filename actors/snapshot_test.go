package actors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

func minutes(from, count int) []engine.Refresh {
	var out []engine.Refresh
	for i := from; i < from+count; i++ {
		out = append(out, saying("a", noon.Add(time.Duration(i-1000)*time.Minute), "USD", "57", fmt.Sprintf("60.%02d", i%50), "popular"))
	}
	return out
}

func TestSnapshotsFollowTheLog(t *testing.T) {
	for name, c := range map[string]Config{
		"by records": {SnapshotRecords: 10},
		"by bytes":   {SnapshotBytes: 400},
	} {
		t.Run(name, func(t *testing.T) {
			taken := make(chan string, 100)
			journal := &memoryJournal{around: func(what string) error { taken <- what; return nil }}
			c.Journal = journal
			s := start(t, c)
			observe(t, s, minutes(0, 9)...)
			observe(t, s, minutes(9, 9)...)
			if what := <-taken; what != "snapshot" {
				t.Errorf("first comes a %s", what)
			}
			if what := <-taken; what != "drop" {
				t.Errorf("after a snapshot comes a %s", what)
			}
			observe(t, s, minutes(18, 1)...)
			want := states(t, s)
			if again := start(t, Config{Journal: journal.crashed()}); !reflect.DeepEqual(states(t, again), want) {
				t.Error("snapshot and tail give another state")
			}
		})
	}
}

func TestFailedSnapshotCostsNothing(t *testing.T) {
	for _, failure := range []error{wal.ErrNoSpace, errors.New("planted")} {
		tried := make(chan struct{}, 10)
		journal := &memoryJournal{around: func(string) error { tried <- struct{}{}; return failure }}
		s := start(t, Config{Journal: journal, SnapshotRecords: 5})
		for i := range 2 {
			observe(t, s, minutes(10*i, 10)...)
			<-tried
		}
		if err := s.Close(); err != nil || s.Err() != nil {
			t.Errorf("%v: %v, Err %v", failure, err, s.Err())
		}
		if len(journal.records) != 20 {
			t.Errorf("%v: %d records, want all 20", failure, len(journal.records))
		}
	}
}

func TestPoisonedJournalStopsTheNode(t *testing.T) {
	for _, at := range []string{"snapshot", "drop"} {
		journal := &memoryJournal{around: func(what string) error {
			if what == at {
				return fmt.Errorf("planted: %w", wal.ErrPoisoned)
			}
			return nil
		}}
		s := start(t, Config{Journal: journal, SnapshotRecords: 5})
		_, _ = s.Observe(minutes(0, 10))
		<-s.Done()
		if !errors.Is(s.Err(), wal.ErrPoisoned) {
			t.Errorf("%s: Err %v", at, s.Err())
		}
		if _, err := s.Observe(minutes(10, 1)); !isCode(err, engine.CodeReadOnly) {
			t.Errorf("%s: a later write: %v", at, err)
		}
		if _, err := s.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 1}}); err != nil {
			t.Errorf("%s: a read: %v", at, err)
		}
	}
}

// An event that cannot be applied at recovery stops the node like one at work.
func TestPanicWhileReplayingIsAnError(t *testing.T) {
	r := newReplayer(&System{accounts: &accounts.Accounts{}, config: Config{Catalogue: engine.DefaultCatalogue(), Rules: engine.DefaultRules()}})
	if err := r.apply([]any{unknownMessage{&engine.Rejected{Currency: "USD"}}}); err == nil {
		t.Error("no error")
	}
}

// haltOwners halts all actors but the journal and waits until they have stopped: as when a panic
// stops it while a batch is with the writer.
func haltOwners(s *System) {
	owners := slices.Concat(s.kinds.currency.Refs(), s.accounts.Kinds.Registrar.Refs(), s.accounts.Kinds.Shard.Refs())
	for _, owner := range owners {
		owner.Send(&mailbox.NodeFailed{Err: commitlog.ReadOnly(errors.New("planted"))})
	}
	for _, owner := range owners {
		for !isIdle(owner) {
			runtime.Gosched()
		}
	}
}

// A batch that becomes durable while the node stops is in the log and in no actor's state. No snapshot is taken without
// it.
func TestNoSnapshotWithoutWhatBecameDurableAtTheEnd(t *testing.T) {
	type change struct {
		make func(n *node, m *testMember) error
		kept func(n *node, m *testMember) bool
	}
	for what, c := range map[string]change{
		"a rate": {
			func(n *node, _ *testMember) error { _, err := n.Observe(minutes(0, 1)); return err },
			func(n *node, _ *testMember) bool { return best(t, n.System) == "60.00" },
		},
		"a lease": {
			func(n *node, m *testMember) error { _, err := n.Admit(key(m.keys[0])); return err },
			func(n *node, m *testMember) bool { return n.spent(m.token) == account.LeaseSizeDefault },
		},
		"a session that was closed": {
			func(n *node, m *testMember) error { return n.CloseSession(m.token) },
			func(n *node, m *testMember) bool {
				_, err := n.Keys(m.token)
				return isCode(err, engine.CodeInvalidSession)
			},
		},
	} {
		n := startNode(t, Config{SnapshotRecords: 1})
		m := n.join(1, 1)
		n.journal.before = func([][]byte) error { haltOwners(n.System); return nil }
		if err := c.make(n, m); !isCode(err, engine.CodeReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
		if n.restart(); !c.kept(n, m) {
			t.Errorf("%s is lost after a restart", what)
		}
	}
}

func act(t *rapid.T, s *System, now time.Time) {
	currency := rapid.SampledFrom([]string{"USD", "EUR"})
	institution := rapid.SampledFrom([]string{"popular", "bhd", "caribe", "vimenca", "bcrd"})
	source := rapid.SampledFrom([]string{"a", "infodolar", "manual", "past"})
	switch rapid.IntRange(0, 9).Draw(t, "action") {
	case 0:
		key := engine.QuoteKey{Institution: institution.Draw(t, "of"), Channel: engine.Branch, Kind: engine.Commercial}
		_, _ = s.Execute(currency.Draw(t, "in"), engine.Withdraw{Key: key, SourceID: source.Draw(t, "from"), By: "ana"})
		return
	case 1, 2:
		all, _ := s.Quarantine("")
		if len(all) == 0 {
			return
		}
		one := rapid.SampledFrom(all).Draw(t, "held")
		order := engine.Command(engine.Reject{QuarantineID: one.ID, By: "ana"})
		if rapid.Bool().Draw(t, "release") {
			order = engine.Release{QuarantineID: one.ID, By: "ana"}
		}
		_, _ = s.Execute(one.Observation.Currency, order)
		return
	}
	side := rapid.SampledFrom([]string{"", "0", "56", "57", "57.0", "57.25", "58.949999999999996", "60", "64", "6.09", "x\xff"})
	slot, day := now.Truncate(8*time.Hour), engine.DateOf(now)
	var refreshes []engine.Refresh
	for range rapid.IntRange(1, 3).Draw(t, "refreshes") {
		refresh := engine.Refresh{
			SourceID:   source.Draw(t, "source"),
			ObservedAt: now.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "age")) * time.Hour),
			Complete:   rapid.Bool().Draw(t, "complete"),
			Slot:       rapid.SampledFrom([]time.Time{{}, slot, slot.Add(-8 * time.Hour), slot.Add(8 * time.Hour)}).Draw(t, "slot"),
		}
		for range rapid.IntRange(0, 5).Draw(t, "observations") {
			refresh.Observations = append(refresh.Observations, engine.Observation{
				InstitutionID: institution.Draw(t, "institution"), Currency: currency.Draw(t, "currency"),
				Channel: rapid.SampledFrom([]engine.Channel{"", engine.Branch, engine.Digital}).Draw(t, "channel"),
				Kind:    rapid.SampledFrom([]engine.Kind{"", engine.Reference}).Draw(t, "kind"),
				Buy:     side.Draw(t, "buy"), Sell: side.Draw(t, "sell"),
				EffectiveDate: rapid.SampledFrom([]engine.Date{0, 0, day, day - 1, 730_000}).Draw(t, "date"),
				Document:      rapid.SampledFrom([]string{"", "5e1f", "\xff"}).Draw(t, "document"),
				PublishedAt:   rapid.SampledFrom([]time.Time{{}, now.Add(-time.Hour), now.Add(-time.Second / 3)}).Draw(t, "published"),
			})
		}
		refreshes = append(refreshes, refresh)
	}
	observe(t, s, refreshes...)
}

// After any run the state that is built only from the journal, and the one from a snapshot and the
// records after it, are the state that was live; also after further runs on top of them.
func TestReplayedStateIsLiveState(t *testing.T) {
	snapshots, events, left := 0, 0, cases(25, 100)
	rapid.Check(t, func(r *rapid.T) {
		if left == 0 {
			return
		}
		left--
		clock := &testClock{Now: noon}
		journal := &keepingJournal{memoryJournal: &memoryJournal{}}
		for range rapid.IntRange(1, 3).Draw(r, "lives") {
			s := live(r, Config{Journal: journal, Clock: clock.Read, SnapshotRecords: rapid.IntRange(1, 9).Draw(r, "every")})
			for range rapid.IntRange(1, 9).Draw(r, "steps") {
				clock.advance(time.Duration(rapid.IntRange(0, 40).Draw(r, "hours")) * time.Hour)
				act(r, s, clock.Read())
			}
			want := states(r, s)
			same(r, "snapshot and tail", want, journal.crashed(), clock)
			same(r, "the log only", want, &memoryJournal{records: journal.all}, clock)
			if rapid.Bool().Draw(r, "orderly") {
				_ = s.Close()
				same(r, "an orderly end", want, journal.crashed(), clock)
			}
			_ = s.Close() // what it adds is not a fact
			journal = &keepingJournal{memoryJournal: journal.crashed(), all: journal.all}
		}
		events += len(journal.all)
		if journal.snapshot != nil {
			snapshots++
		}
	})
	t.Logf("%d events, %d runs with a snapshot", events, snapshots)
	if events == 0 || snapshots == 0 {
		t.Error("nothing happened")
	}
}

type keepingJournal struct {
	*memoryJournal
	all [][]byte
}

func (k *keepingJournal) Append(expected uint64, records [][]byte) (uint64, error) {
	last, err := k.memoryJournal.Append(expected, records)
	if err == nil {
		k.all = append(k.all, k.records[len(k.records)-len(records):]...)
	}
	return last, err
}

func live(t panicStops, c Config) *System {
	c.Catalogue = testCatalogue()
	s, err := Open(c)
	must(t, err)
	awaitReady(t, s)
	return s
}

func same(t panicStops, what string, want []engine.SavedCurrency, journal *memoryJournal, clock *testClock) {
	t.Helper()
	s := live(t, Config{Journal: journal, Clock: clock.Read})
	defer func() { _ = s.Close() }()
	if got := states(t, s); !reflect.DeepEqual(normal(want), normal(got)) {
		t.Fatalf("%s gives another state:\nwant %+v\ngot  %+v", what, want, got)
	}
}

// normal makes no difference between an empty and an absent quarantine.
func normal(all []engine.SavedCurrency) []engine.SavedCurrency {
	for i := range all {
		if len(all[i].Quarantine) == 0 {
			all[i].Quarantine = nil
		}
	}
	return all
}

func TestUnknownRecordIsRefused(t *testing.T) {
	known := mustEncode(t, &engine.Rejected{Currency: "USD", QuarantineID: 1, At: noon, By: "ana"})
	for name, record := range map[string][]byte{
		"an unknown kind":     {0xfa, 0x01, 0x00}, // field 31, empty
		"not protobuf at all": []byte("hello"),
	} {
		s := open(t, Config{Journal: &memoryJournal{records: [][]byte{known, record}}})
		<-s.Done()
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), "record 2") || name != "not protobuf at all" && !errors.Is(err, ErrUnknownRecord) {
			t.Errorf("%s: %v", name, err)
		}
		_, err := s.Rates(engine.RatesQuery{})
		if !isCode(err, engine.CodeDataUnavailable) {
			t.Errorf("%s: an answer after a replay that failed: %v", name, err)
		}
	}
	s := start(t, Config{Journal: &memoryJournal{records: [][]byte{append(known, 0xfa, 0x01, 0x00)}}}) // an unknown field beside a known kind
	if s.Err() != nil {
		t.Errorf("an unknown field: %v", s.Err())
	}
}

// snapshotOfAccounts is a journal with a snapshot of accounts.
func snapshotOfAccounts(t *testing.T, all ...*account.Account) *memoryJournal {
	t.Helper()
	c := &commitlog.StateSnapshot{Accounts: make([][][]byte, 1)}
	for _, account := range all {
		state := account.State()
		c.Accounts[0] = append(c.Accounts[0], record.AppendAccount(nil, &state))
	}
	var buffer bytes.Buffer
	must(t, c.Write(&buffer))
	return &memoryJournal{sequence: 1, dropped: 1, snapshot: buffer.Bytes()}
}

// A snapshot or a log that contradicts itself stops the node, as damage does.
func TestContradictionsOfAccountsStopTheNode(t *testing.T) {
	thief := account.New(8)
	thief.Apply(&account.Created{Account: 8, Email: mustEmail(t, "thief@example.com").ID(), At: noon}, account.ClockReading{})
	thief.Apply(&account.KeyCreated{Account: 8, Key: account.KeyRecord{ID: "key_8", Digest: keyOf(7), CreatedAt: noon}}, account.ClockReading{})
	stray := mustEncode(t, &account.KeyRevoked{Account: 5, KeyID: "key_5", At: noon, By: "owner"})
	for want, journal := range map[string]*memoryJournal{
		"account 5, which was never created":                {records: [][]byte{stray}},
		"the snapshot has account 7 twice":                  snapshotOfAccounts(t, testAccount(t, 7), testAccount(t, 9), testAccount(t, 7)),
		"two accounts have a key with the same fingerprint": snapshotOfAccounts(t, testAccount(t, 7), thief),
	} {
		s := open(t, Config{Journal: journal})
		select {
		case <-s.Done():
		case <-s.Ready():
		}
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// backupOf is a backup of a system, and the counts of its contents.
func backupOf(t *testing.T, s *System) ([]byte, BackupContents) {
	t.Helper()
	var file bytes.Buffer
	written, err := s.Backup(&file, "v1")
	must(t, err)
	r, err := wal.OpenBackup(bytes.NewReader(file.Bytes()), "b")
	if err != nil || r.Info != written {
		t.Fatal(r, written, err)
	}
	defer r.Close()
	contents, err := CountBackup(r.Info.Sequence, r)
	must(t, err)
	return file.Bytes(), contents
}

// restored starts a system on a log that is made of a backup.
func restored(t *testing.T, s *System, backup []byte) *System {
	t.Helper()
	r, err := wal.OpenBackup(bytes.NewReader(backup), "b")
	must(t, err)
	defer r.Close()
	dir := filepath.Join(t.TempDir(), "fresh")
	if err := wal.Create(dir, wal.Options{Clock: s.config.Clock}, r.Info.Sequence, func(w io.Writer) error { _, err := io.Copy(w, r); return err }); err != nil {
		t.Fatal(err)
	}
	return start(t, Config{Dir: dir})
}

// TestBackup_IsTheStateOfItsMoment takes backups between writes and while some are under way, with snapshots and
// dropped segments in between. Each becomes a system with the same state, and the survey counts what is in it.
func TestBackup_IsTheStateOfItsMoment(t *testing.T) {
	config := Config{Dir: t.TempDir(), SnapshotRecords: 20, Log: LogConfig{SegmentBytes: 4096, ReserveBytes: -1}}
	s := start(t, config)
	for round := range 6 {
		observe(t, s, minutes(round*10, 10)...)
		want := states(t, s)
		going := make(chan error, 1)
		go func() {
			var failed error
			for i := range 5 {
				_, err := s.Observe([]engine.Refresh{saying("a", noon, "EUR", "63", "66.0"+string(rune('0'+i)), "popular")})
				failed = errors.Join(failed, err)
			}
			going <- failed
		}()
		backup, holds := backupOf(t, s)
		must(t, <-going)
		again := restored(t, s, backup)
		got := states(t, again)
		isDollar := func(s engine.SavedCurrency) bool { return s.Currency == "USD" }
		if !reflect.DeepEqual(got[slices.IndexFunc(got, isDollar)], want[slices.IndexFunc(want, isDollar)]) {
			t.Errorf("round %d: the dollar of the backup is not that of its moment", round)
		}
		quotes, days := 0, 0
		for i := range got {
			seen := map[engine.QuoteKey]bool{}
			for _, offer := range got[i].SourceQuotes {
				seen[offer.Key] = true
			}
			quotes, days = quotes+len(seen), days+len(got[i].History)
		}
		if holds.Rates != quotes || holds.HistoryRows != days || holds.Rates == 0 {
			t.Errorf("round %d: the survey counts %+v, there are %d rates and %d days", round, holds, quotes, days)
		}
		must(t, again.Close())
	}
}

// TestBackup_Accounts: the accounts and keys are those of the moment.
func TestBackup_Accounts(t *testing.T) {
	n := startNode(t, Config{})
	if _, contents := backupOf(t, n.System); contents != (BackupContents{}) {
		t.Errorf("a node without a record: %+v", contents)
	}
	member := n.join(1, 1)
	backup, contents := backupOf(t, n.System)
	if contents.Accounts != 1 {
		t.Errorf("%+v", contents)
	}
	later := n.join(2, 1)
	again := restored(t, n.System, backup)
	for key, want := range map[account.Digest]bool{member.keys[0]: true, later.keys[0]: false} {
		if grant, err := again.Admit(account.Caller{Key: key, HasKey: true, Address: client(0)}); err != nil || (grant.Account != 0) != want {
			t.Errorf("%+v, %v, want the account: %v", grant, err, want)
		}
	}
}

func TestBackup_Refused(t *testing.T) {
	s := start(t, Config{Journal: &memoryJournal{}})
	must(t, s.Close())
	if _, err := s.Backup(io.Discard, ""); !isCode(err, engine.CodeDataUnavailable) {
		t.Errorf("of a closed system: %v", err)
	}
	if _, err := CountBackup(7, strings.NewReader("no snapshot")); err == nil {
		t.Error("bytes that are no snapshot pass")
	}
}
