package actors

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// backupOf is a backup of a system, and what a survey of it finds.
func backupOf(t *testing.T, s *System) ([]byte, wal.BackupInfo, BackupContents) {
	t.Helper()
	var stream, file bytes.Buffer
	if _, err := s.Backup(&stream, wal.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	survey := NewBackupCounter()
	info, err := wal.PackBackup(&stream, &file, survey.Visitor())
	if err != nil {
		t.Fatal(err)
	}
	return file.Bytes(), info, survey.Contents()
}

// TestBackup_IsTheStateOfItsMoment takes backups between writes and while some are under way, with snapshots and
// dropped segments in between. Each becomes a system with the same state, and the survey counts what is in it.
func TestBackup_IsTheStateOfItsMoment(t *testing.T) {
	config := Config{Dir: t.TempDir(), SnapshotRecords: 20, Log: LogConfig{SegmentBytes: 4096, ReserveBytes: -1}}
	s := start(t, config)
	withSnapshot := 0
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
		backup, info, holds := backupOf(t, s)
		if err := <-going; err != nil {
			t.Fatal(err)
		}
		if info.Snapshot > 0 {
			withSnapshot++
		}
		fresh := Config{Dir: filepath.Join(t.TempDir(), "fresh")}
		if _, err := wal.RestoreBackup(bytes.NewReader(backup), "b", fresh.Dir, wal.Options{Clock: s.config.Clock}, wal.BackupVisitor{}); err != nil {
			t.Fatal(err)
		}
		again := start(t, fresh)
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
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if withSnapshot == 0 {
		t.Error("no backup had a snapshot in it")
	}
}

func TestBackup_CountsAccounts(t *testing.T) {
	survey := NewBackupCounter()
	created := func(id uint64) []byte {
		return mustEncode(t, &account.Created{Account: id, At: noon})
	}
	for id := range uint64(3) {
		if err := survey.Record(id+1, created(id+1)); err != nil {
			t.Fatal(err)
		}
	}
	if got := survey.Contents(); got.Accounts != 3 {
		t.Errorf("%+v", got)
	}
	survey.snapshotSequence = 5 // as after a snapshot of all of them
	if err := survey.Record(4, created(4)); err != nil || survey.Contents().Accounts != 3 {
		t.Errorf("a record that the snapshot covers is counted again: %+v, %v", survey.Contents(), err)
	}
	if err := survey.Record(6, []byte{0xff, 0xff}); err == nil {
		t.Error("bytes that are no record pass")
	}
	if err := survey.Snapshot(7, bytes.NewReader([]byte("no snapshot"))); err == nil {
		t.Error("bytes that are no snapshot pass")
	}
}

func TestBackup_Refused(t *testing.T) {
	s := start(t, Config{Journal: &memoryJournal{}})
	if _, err := s.Backup(io.Discard, wal.BackupOptions{}); !errors.Is(err, errNoBackup) {
		t.Errorf("%v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Backup(io.Discard, wal.BackupOptions{}); !isCode(err, engine.CodeDataUnavailable) {
		t.Errorf("of a closed system: %v", err)
	}
}
