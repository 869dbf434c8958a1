package actors

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

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
