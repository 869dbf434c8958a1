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
	"testing/synctest"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// TestKeys_Crowd: each of many keys is an account of its own, before and behind keys that were made one by one.
func TestKeys_Crowd(t *testing.T) {
	srv := Start(t, Rates(standardRate), Quota(2, 1), KeysRequired())
	keys := append([]string{srv.Key()}, srv.Keys(40)...)
	keys = append(append(keys, srv.Key()), srv.Keys(3)...)
	if distinct := slices.Compact(slices.Sorted(slices.Values(keys))); len(distinct) != 45 {
		t.Errorf("%d keys, %d of them distinct", len(keys), len(distinct))
	}
	for _, key := range keys {
		for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
			if status, body, _ := get(t, srv.Client, srv.URL+best, "Authorization", "Bearer "+key); status != want {
				t.Fatalf("%d, want %d: %s", status, want, body)
			}
		}
	}
	srv.SetQuota(keys[20], 5, 5)
	srv.Crash()
	srv.Suspend("key-22@apitest.example")
	if status, _, header := get(t, srv.Client, srv.URL+best, "Authorization", "Bearer "+keys[20]); status != http.StatusOK || header.Get("X-RateLimit-Limit") != "5" {
		t.Errorf("%d %v", status, header)
	}
	if status, _, _ := get(t, srv.Client, srv.URL+best, "Authorization", "Bearer "+keys[21]); status != http.StatusUnauthorized {
		t.Error(status)
	}
	if got := srv.Keys(0); len(got) != 0 {
		t.Error(got)
	}
	if _, err := srv.Node.Keys(-1); err == nil {
		t.Error("less than no account")
	}
}

// TestKeys_Same: the same seed makes the same keys; another one makes others.
func TestKeys_Same(t *testing.T) {
	first, second, other := Start(t).Keys(20), Start(t).Keys(20), Start(t, WithChance(2)).Keys(20)
	if !slices.Equal(first, second) || first[0] == other[0] {
		t.Errorf("%s %s %s", first[0], second[0], other[0])
	}
}

// crowdLarge is more than the brake on logins lets pass in an hour, and than one batch of the log.
const crowdLarge = 6000

// TestKeys_Many: neither the brake on logins nor the disk holds up a crowd, and the clock stands.
func TestKeys_Many(t *testing.T) {
	count := crowdLarge
	if raceEnabled {
		count = crowdLarge / 10
	}
	srv := Start(t, Rates(standardRate), Limits())
	began := now()
	keys := srv.Keys(count)
	t.Logf("%d accounts in %s", count, now().Sub(began))
	if len(keys) != count || !srv.Clock.Now().Equal(Epoch()) {
		t.Errorf("%d keys at %s", len(keys), srv.Clock.Now())
	}
	if status, body, _ := get(t, srv.Client, srv.URL+best, "Authorization", "Bearer "+keys[count-1]); status != http.StatusOK || len(ids(t, body)) != 1 {
		t.Errorf("%d %s", status, body)
	}
}

// TestKeys_Bubble: a crowd in a bubble of testing/synctest.
func TestKeys_Bubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t, Follow(now), Rates(standardRate))
		if keys := srv.Keys(10); len(keys) != 10 {
			t.Error(keys)
		}
	})
}

// TestWrite: what a state holds is a data directory on which a real node starts, with its rates and its keys, for nobody else's
// eyes; nothing is ever written over.
func TestWrite(t *testing.T) {
	srv := Start(t, Rates(standardRate), Limits())
	keys := srv.Keys(5)
	state := srv.Snapshot()
	dir := filepath.Join(t.TempDir(), "data", "node")
	if err := state.Write(dir); err != nil {
		t.Fatal(err)
	}
	checkPrivate(t, dir)
	system, err := actors.Open(actors.Config{Dir: dir, Clock: Epoch})
	if err != nil {
		t.Fatal(err)
	}
	<-system.Ready()
	accounts, err := system.ListAccounts()
	if err != nil || len(accounts) != len(keys) {
		t.Errorf("%v %v", accounts, err)
	}
	for _, key := range keys {
		grant, err := system.Admit(engine.Caller{Key: engine.SecretOf(key).Digest(), HasKey: true, Address: home()})
		if err != nil || grant.Account == 0 {
			t.Errorf("%+v %v", grant, err)
		}
	}
	page, err := system.Ranking(engine.RankingQuery{Filter: engine.Filter{Currency: "USD"}, Cut: engine.Cut{Limit: 10}, Operation: engine.Buy})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("%v %v", page, err)
	}
	if err := system.Close(); err != nil {
		t.Fatal(err)
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

func checkPrivate(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatal(entries, err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v %v", entry.Name(), info.Mode(), err)
		}
	}
}

// TestHeap: what was said to be kept is in the log at its end, in order; a place that is taken is refused.
func TestHeap(t *testing.T) {
	dir := t.TempDir()
	h := openHeap(t, dir)
	want := []string{}
	for i := range 2*heapRecords + 10 {
		record := strconv.Itoa(i)
		want = append(want, record)
		if last, err := h.Append(uint64(i), [][]byte{[]byte(record)}); err != nil || last != uint64(i+1) || h.Last() != last {
			t.Fatal(i, last, err)
		}
	}
	if _, err := h.Append(7, [][]byte{[]byte("x")}); !errors.Is(err, actors.ErrPosition) {
		t.Error(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = openHeap(t, dir)
	var found []string
	err := h.Read(1, func(_ uint64, record []byte) error {
		found = append(found, string(record))
		return nil
	})
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("%d records of %d, %v", len(found), len(want), err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func openHeap(t *testing.T, dir string) *heap {
	t.Helper()
	log, err := wal.Open(dir, wal.Options{ReserveBytes: reserveOff, Clock: Epoch})
	if err != nil {
		t.Fatal(err)
	}
	return &heap{Log: log}
}
