//go:build faults

package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/apitest"
)

// exitBadData is the exit code of a start that refuses its directory.
const exitBadData = 78

// writeDir writes the files of a directory, and removes others; putDir must succeed.
func writeDir(dir string, all map[string][]byte) error {
	err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
	for name, data := range all {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return err
}

func putDir(t *testing.T, dir string, all map[string][]byte) {
	t.Helper()
	noError(t, writeDir(dir, all))
}

// Sizes of goal W9.
const (
	manyRecords  = 100_000
	manyAccounts = 100_000
	startsTimed  = 5
	startMax     = time.Second
)

// firstAnswer returns the median duration of several starts until an answer with status 200, each of a node that was
// killed, and the size of an export: two exports must agree.
func firstAnswer(t *testing.T, dir string) (time.Duration, int) {
	t.Helper()
	var times []time.Duration
	for range startsTimed {
		began := time.Now()
		n := launch(t, nodeCommand{args: nodeArgs(dir)})
		if !n.Listens() {
			t.Fatal("it does not listen")
		}
		c := newHTTPClient("")
		took, err := within(waitTimeout, "an answer", func() (bool, error) {
			got, err := c.do(http.MethodGet, n.URL+"/v1/rates/best?currency=USD&operation=buy&limit=1", "", nil)
			return err == nil && got.status == http.StatusOK, err
		})
		c.close()
		if err != nil {
			t.Fatal(took, err)
		}
		times = append(times, time.Since(began))
		n.kill()
	}
	first, second := exported(t, dir), exported(t, dir)
	if first != second {
		t.Error("two replays of the same log give two states")
	}
	slices.Sort(times)
	return times[len(times)/2], len(first)
}

// exported returns everything in a directory, as text.
func exported(t *testing.T, dir string) string {
	t.Helper()
	return mustExec(t, builtProgram(t), "export", "--data", copied(t, dir))
}

// copied copies a directory on which no node runs, because a command that opens it writes a snapshot.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	putDir(t, to, readDir(t, dir))
	return to
}

// TestFaultsW9_Start measures starts from a long log, with many accounts, and with a year of a market, and replays each
// log twice.
func TestFaultsW9_Start(t *testing.T) {
	base := memoryDir(t)
	year := filepath.Join(base, "year")
	writeState(t, year, func(s *apitest.Server) {
		today := engine.DateOf(time.Now())
		history := append(simulated.NewMarket(demoSeed).History(today-demoDays, today-1), simulated.NewMarket(demoSeed).Refreshes(time.Now())...)
		for i := range history {
			history[i].SourceID = strings.TrimPrefix(history[i].SourceID, "demo-")
		}
		s.Observe(history...)
	})
	ofYear, _ := firstAnswer(t, year)
	accounts, records := filepath.Join(base, "accounts"), filepath.Join(base, "records")
	writeDataDir(t, accounts, manyAccounts)
	ofAccounts, _ := firstAnswer(t, accounts)
	progress(t, "%d accounts: %s", manyAccounts, ofAccounts.Round(time.Millisecond))
	writeState(t, records, observeMany)
	wantVerified(t, records)
	ofRecords, state := firstAnswer(t, records)
	figure(t, "from the start to the first 200, median of %d: %s after %d records, %s with %d accounts, %s with a year of a market; replayed twice: the same %d bytes",
		startsTimed, ofRecords.Round(time.Millisecond), manyRecords, ofAccounts.Round(time.Millisecond), manyAccounts, ofYear.Round(time.Millisecond), state)
	if max(ofRecords, ofAccounts, ofYear) > startMax {
		t.Errorf("a start took %s, %s and %s, want %s", ofRecords, ofAccounts, ofYear, startMax)
	}
}

// wantVerified wants the program to find nothing wrong with a log.
func wantVerified(t *testing.T, dir string) {
	t.Helper()
	contains(t, mustExec(t, builtProgram(t), "log", "verify", "--data", dir), "The log is whole.")
}

// observeMany gives a node many observations, each half a second later than the one before.
func observeMany(s *apitest.Server) {
	const each = 1000
	institutions := []string{"popular", "bhd", "caribe", "vimenca"}
	began := s.Clock.Now().Add(-manyRecords * time.Second / 2)
	for n := 0; n < manyRecords; n += each {
		var batch []engine.Refresh
		for i := n; i < n+each; i++ {
			id, cents := institutions[i%len(institutions)], i/len(institutions)%50
			batch = append(batch, engine.Refresh{SourceID: id + "-site", ObservedAt: began.Add(time.Duration(i) * time.Second / 2), Observations: []engine.Observation{
				{InstitutionID: id, Currency: "USD", Buy: fmt.Sprintf("58.%02d", cents), Sell: fmt.Sprintf("59.%02d", cents)},
			}})
		}
		s.Observe(batch...)
	}
}

// keptDirectory is the directory left by releases with format 1: the data directory of a node that was stopped, started
// again and killed, with two accounts with keys, one of them suspended, and the node's answers. It stays for ever.
const keptDirectory = "cmd/testdata/directory-v1"

// goldenAnswers returns the program's answers for a directory, except for what depends on the time.
func goldenAnswers(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	n := startBuilt(t, copied(t, dir))
	defer n.kill()
	for name, path := range map[string]string{
		"rates.json":   "/v1/rates?limit=200",
		"history.json": "/v1/rates/history?from=2026-06-01&to=2026-06-30&limit=200",
	} {
		all[name] = []byte(n.mustGet(path))
	}
	got, err := n.admin().do(http.MethodGet, "http://node/accounts", "", nil)
	if err != nil || !got.good() {
		t.Fatalf("accounts: %d, %v", got.status, err)
	}
	all["accounts.json"] = []byte(got.body)
	for name, text := range all {
		all[name], err = onlyFields(text, keptFields()...)
		noError(t, err)
	}
	all["export.csv"] = []byte(exported(t, dir))
	return all
}

// keptFields are the fields of an answer that come from the log, not from the catalogue or the clock.
func keptFields() []string {
	return []string{
		"data", "id", "institutionId", "currency", "channel", "kind", "buy", "sell", "sourceId", "date", "effectiveDate",
		"collectedAt", "lastCheckedAt", "email", "createdAt", "activeKeys", "suspended",
	}
}

// onlyFields indents an answer, of one value or one a line, with only some fields.
func onlyFields(text []byte, fields ...string) ([]byte, error) {
	var value []any
	for decoder := json.NewDecoder(bytes.NewReader(text)); decoder.More(); {
		var one any
		if err := decoder.Decode(&one); err != nil {
			return nil, err
		}
		if list, isList := one.([]any); isList { // as its elements, one after the other
			value = append(value, list...)
			continue
		}
		value = append(value, one)
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			maps.DeleteFunc(v, func(name string, _ any) bool { return !slices.Contains(fields, name) })
			for _, inner := range v {
				strip(inner)
			}
		case []any:
			for _, inner := range v {
				strip(inner)
			}
		}
	}
	strip(any(value))
	indented, err := json.MarshalIndent(value, "", "  ")
	return append(indented, '\n'), err
}

// TestFaultsW11_KeptDirectory opens the directory that earlier releases wrote, and compares the answers with those of
// then.
func TestFaultsW11_KeptDirectory(t *testing.T) {
	data := filepath.Join(keptDirectory, "data")
	wantVerified(t, copied(t, data))
	answers := goldenAnswers(t, data)
	for file, got := range answers {
		want, err := os.ReadFile(filepath.Join(keptDirectory, file))
		noError(t, err)
		if string(got) != string(want) {
			t.Errorf("%s is another one:\n%s\nwant\n%s", file, got, want)
		}
	}
	checkKeptKeys(t, data)
	left := readDir(t, data)
	figure(t, "%s: %d files, %d bytes of answers as they were, keys as they were", keptDirectory, len(left), len(answers["export.csv"])+len(answers["rates.json"]))
	if len(segments(left)) == 0 || left["mark"] == nil || len(left) < 3 {
		t.Errorf("it has %d files", len(left))
	}
}

// checkKeptKeys wants the keys of a directory to be accepted or rejected as they were.
func checkKeptKeys(t *testing.T, data string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(keptDirectory, "keys.json"))
	noError(t, err)
	var keys struct{ Active, Revoked, Suspended string } // worthless anywhere else
	noError(t, json.Unmarshal(text, &keys))
	n, c := startBuilt(t, copied(t, data)), newHTTPClient("")
	defer c.close()
	defer n.kill()
	for key, want := range map[string]string{keys.Active: "", keys.Revoked: "revoked_key", keys.Suspended: "account_suspended"} {
		got, err := c.do(http.MethodGet, n.URL+"/v1/account/usage", key, nil)
		if err != nil || got.code != want {
			t.Errorf("a key: status %d %s, want %q, %v", got.status, got.code, want, err)
		}
	}
}
