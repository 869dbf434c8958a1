package apitest

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tasard/tasard/actors"
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

// TestWrite writes a state as a data directory, starts a node on it, and checks that nothing is overwritten.
func TestWrite(t *testing.T) {
	srv := Start(t, Rates(standardRate), Limits())
	keys := srv.Keys(5)
	state := srv.Snapshot()
	dir := filepath.Join(t.TempDir(), "data", "node")
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
	files, err := readFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	other := Start(t, FromState(&State{files: files, clock: Epoch(), random: state.random}), KeysRequired())
	for _, key := range keys {
		mustAnswer(t, other, other.Client, key, http.StatusOK, "")
	}
	if _, body, _ := get(t, other.Client, other.URL+best, "Authorization", "Bearer "+keys[0]); len(rateIDs(t, body)) != 1 {
		t.Error(body)
	}
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

// TestBatchingJournal checks that acknowledged records are in the log after Close, in order, and that a wrong position
// is refused.
func TestBatchingJournal(t *testing.T) {
	dir := t.TempDir()
	open := func() *batchingJournal {
		log, err := wal.Open(dir, wal.Options{ReserveBytes: diskReserveOff, Clock: Epoch})
		if err != nil {
			t.Fatal(err)
		}
		return &batchingJournal{Log: log}
	}
	h := open()
	var want, found []string
	for i := range pendingRecordsMax + 10 {
		want = append(want, strconv.Itoa(i))
		if last, err := h.Append(uint64(i), [][]byte{[]byte(want[i])}); err != nil || last != uint64(i+1) || h.Last() != last {
			t.Fatal(i, last, err)
		}
	}
	if _, err := h.Append(7, [][]byte{[]byte("x")}); !errors.Is(err, actors.ErrPosition) {
		t.Error(err)
	}
	err := h.Close()
	h = open()
	err = errors.Join(err, h.Read(1, func(_ uint64, record []byte) error {
		found = append(found, string(record))
		return nil
	}), h.Close())
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("%d records of %d, %v", len(found), len(want), err)
	}
}
