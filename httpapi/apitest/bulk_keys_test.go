package apitest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// TestKeys_Bulk checks that each of many keys has an account of its own, next to keys that were created one by one.
func TestKeys_Bulk(t *testing.T) {
	srv := Start(t, Rates(standardRate), Quota(2, 1), KeysRequired())
	keys := append([]string{srv.Key()}, srv.Keys(40)...)
	keys = append(append(keys, srv.Key()), srv.Keys(3)...)
	for _, key := range keys {
		mustAnswer(t, srv, srv.Client, key, http.StatusOK, "")
		mustAnswer(t, srv, srv.Client, key, http.StatusTooManyRequests, "")
	}
	srv.SetQuota(keys[20], 5, 5)
	srv.Crash()
	srv.Suspend("key-22@apitest.example")
	if header := mustAnswer(t, srv, srv.Client, keys[20], http.StatusOK, ""); header.Get("X-RateLimit-Limit") != "5" {
		t.Errorf("%v", header)
	}
	mustAnswer(t, srv, srv.Client, keys[21], http.StatusUnauthorized, "account_suspended")
	if got := srv.Keys(0); len(got) != 0 {
		t.Error(got)
	}
}

// TestKeys_Same: the same seed makes the same keys; another one makes others.
func TestKeys_Same(t *testing.T) {
	first, second, other := Start(t).Keys(20), Start(t).Keys(20), Start(t, RandomSeed(2)).Keys(20)
	if !slices.Equal(first, second) || first[0] == other[0] {
		t.Errorf("%s %s %s", first[0], second[0], other[0])
	}
}

// TestKeys_Many creates more accounts than the limit of login codes an hour, and than one batch of the log, while the
// clock stands still.
func TestKeys_Many(t *testing.T) {
	const count = 5100
	srv := Start(t, Rates(standardRate), Limits())
	keys := srv.Keys(count)
	if len(keys) != count || !srv.Clock.Now().Equal(Epoch()) {
		t.Errorf("%d keys at %s", len(keys), srv.Clock.Now())
	}
	mustAnswer(t, srv, srv.Client, keys[count-1], http.StatusOK, "")
}

// TestWrite writes states as data directories: of a new node, and of one with a snapshot and records after it. A system
// on the directory has the state of the node, and nothing is overwritten.
func TestWrite(t *testing.T) {
	srv := Start(t, Rates(standardRate), Limits())
	for _, add := range []func(){func() {}, func() { srv.Keys(5) }, func() { srv.Key() }} {
		add()
		state, dir := srv.Snapshot(), filepath.Join(t.TempDir(), "data", "node")
		if err := state.Write(dir); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) == 0 {
			t.Fatal(entries, err)
		}
		for _, entry := range entries {
			if info, err := entry.Info(); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %v %v", entry.Name(), info.Mode(), err)
			}
		}
		checkDirectory(t, srv, dir)
		err = state.Write(dir)
		if err == nil || !strings.Contains(err.Error(), "empty directory") {
			t.Errorf("over a data directory: %v", err)
		}
		if err := state.Write(filepath.Join(dir, "mark")); err == nil {
			t.Error("into a file")
		}
		if err := state.Write(t.TempDir()); err != nil {
			t.Errorf("into an empty directory: %v", err)
		}
	}
}

// checkDirectory checks that a system on a data directory has the state of the node.
func checkDirectory(t *testing.T, srv *Server, dir string) {
	t.Helper()
	config := srv.systemConfig(nil)
	config.Journal, config.Dir, config.Log.ReserveBytes = nil, dir, -1
	system, err := openSystem(&config)
	if err != nil {
		t.Fatal(err)
	}
	want, err := readLoggedState(srv.instance.system)
	found, foundErr := readLoggedState(system)
	if err = errors.Join(err, foundErr, system.Close()); err == nil {
		err = checkReplay(want, found, account.LeaseSizeDefault)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestAdmin_Backup restores a backup that the management API has made.
func TestAdmin_Backup(t *testing.T) {
	srv := Start(t, Rates(standardRate))
	srv.Restart() // takes a snapshot
	srv.Key()
	response := httptest.NewRecorder()
	srv.Admin().ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/backup", http.NoBody))
	var file bytes.Buffer
	archive, err := wal.NewBackupFile(&file)
	if err == nil {
		_, err = io.Copy(archive, response.Body)
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	if _, err := wal.RestoreBackup(&file, "backup", dir, wal.Options{Clock: Epoch}, wal.BackupVisitor{}); err != nil {
		t.Fatal(response.Code, err)
	}
	checkDirectory(t, srv, dir)
}

// TestMemoryJournal checks the promises of actors.Journal: the position of Append, copies of records, one snapshot in
// place of the records before it, and that stored data does not change.
func TestMemoryJournal(t *testing.T) {
	journal := &memoryJournal{}
	appendText := func(expected uint64, text string) error {
		record := []byte(text)
		_, err := journal.Append(expected, [][]byte{record})
		record[0] = '!'
		return err
	}
	read := func(data journalData, from uint64) (text string) {
		err := (&memoryJournal{data: data}).Read(from, func(sequence uint64, record []byte) error {
			text += strconv.FormatUint(sequence, 10) + string(record) + " "
			return nil
		})
		if err != nil {
			return "error"
		}
		return text
	}
	snapshot := func(sequence uint64) error {
		return journal.WriteSnapshot(sequence, func(w io.Writer) error { _, err := io.WriteString(w, "state"); return err })
	}
	if err := errors.Join(appendText(0, "a"), appendText(1, "b"), appendText(2, "c")); err != nil {
		t.Fatal(err)
	}
	if err := appendText(7, "x"); !errors.Is(err, actors.ErrPosition) {
		t.Error(err)
	}
	before := journal.stored()
	if err := errors.Join(snapshot(2), appendText(3, "d")); err != nil {
		t.Fatal(err)
	}
	if err := snapshot(5); err == nil {
		t.Error("a snapshot after a record that is missing")
	}
	after := journal.stored()
	for i, pair := range [][2]string{
		{read(before, 1), "1a 2b 3c "}, {read(before, 4), ""}, {read(after, 3), "3c 4d "}, {read(after, 2), "error"}, {string(after.snapshot), "state"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%d: %q, want %q", i, pair[0], pair[1])
		}
	}
}
