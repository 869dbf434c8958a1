//go:build faults

package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/apitest"
)

// writeDir writes the files of a directory, and removes others.
func writeDir(dir string, all map[string][]byte) error {
	err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
	for name, data := range all {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return err
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
		took, err := within(patience, "an answer", func() (bool, error) {
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
	noError(t, writeDir(to, readDir(t, dir)))
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
	for name, text := range all { // only fields that come from the log, not from the catalogue or the clock
		all[name], err = onlyFields(text, "data", "id", "institutionId", "currency", "channel", "kind", "buy", "sell", "sourceId", "date", "effectiveDate",
			"collectedAt", "lastCheckedAt", "email", "createdAt", "activeKeys", "suspended")
		noError(t, err)
	}
	all["export.csv"] = []byte(exported(t, dir))
	return all
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

// backupsWanted is how many backups taken under load are restored and checked.
const backupsWanted = 50

// smallLimits makes limits so small that snapshots are written and segments dropped all the time.
func smallLimits() []plant {
	return []plant{
		{"wal/options.go", "segmentBytesDefault = 4 << 20", "segmentBytesDefault = 16 << 10"},
		{"actors/config.go", "snapshotRecordsDefault = 50_000", "snapshotRecordsDefault = 300"},
		{"actors/internal/commitlog/snapshot.go", "accountsFraction = 4", "accountsFraction = 1 << 30"},
	}
}

// backupTest is a crashTest that is backed up meanwhile.
type backupTest struct {
	*crashTest
	place          string
	restored       int
	facts          int
	nodesKilled    int // backups during which the node was killed
	commandsKilled int // backup commands that were killed
	survived       int // of both kinds, those that had completed a file
	wrong          []string
}

func newBackupTest(t *testing.T, program string) *backupTest {
	t.Helper()
	return &backupTest{crashTest: newCrashTest(t, usualLimits(), t.TempDir(), program), place: t.TempDir()}
}

func (s *backupTest) fault(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// command runs tasard with arguments and returns its output.
func (s *backupTest) command(args ...string) *exec.Cmd { return exec.Command(s.program, args...) }

// cycleWithBackup is one cycle: load, a backup during it, a crash, then a check of the restored backup.
func (s *backupTest) cycleWithBackup(number int) {
	s.t.Helper()
	s.cycles++
	n := s.begin()
	to := filepath.Join(s.place, fmt.Sprintf("%d.zst", number))
	backup := s.command("backup", "--data", s.dir, "--admin-socket", s.socket, "--to", to)
	var said bytes.Buffer
	backup.Stdout, backup.Stderr = &said, &said
	chance := s.chance(loadWorkers)
	kind := number % 5 // 3: the node is killed in the middle; 4: the command is
	var before *checker
	var failed error
	s.load(n, 60*time.Millisecond, func(n *nodeProcess) {
		before = s.checker.snapshot()
		if failed = backup.Start(); failed != nil {
			n.kill()
			return
		}
		if kind >= 3 {
			wait(upTo(chance, 80*time.Millisecond))
		}
		switch kind {
		case 3:
			n.kill()
		case 4:
			_ = backup.Process.Kill() // it may have exited
		}
		failed = backup.Wait()
		if kind != 3 {
			wait(upTo(chance, 20*time.Millisecond)) // later changes must not matter
			n.kill()
		}
	})
	before.allowLater(s.checker)
	_, missing := os.Stat(to)
	_, stopping := n.FindNow("msg=stopping")
	switch {
	case kind == 3:
		s.nodesKilled++
	case kind == 4:
		s.commandsKilled++
	case backup.ProcessState.ExitCode() == exit.Busy && stopping: // the load stopped it, and its socket may be gone
		if missing == nil {
			s.fault("backup %d was ended by a node that stops, and is there", number)
		}
		return
	case failed != nil:
		s.fault("backup %d: %v\n%sthe node: %v\n%s", number, failed, &said, n.Cmd.ProcessState, n.Tail(10))
		return
	}
	if kind >= 3 && errors.Is(missing, fs.ErrNotExist) {
		if failed == nil {
			s.fault("backup %d says that it is there and is not: %s", number, &said)
		}
		return
	}
	if kind >= 3 {
		s.survived++
	}
	s.checkRestored(number, to, before)
}

// checkRestored restores a backup and checks it against what was known when it began; later changes may be there or
// not.
func (s *backupTest) checkRestored(number int, from string, before *checker) {
	s.t.Helper()
	dir := filepath.Join(s.place, fmt.Sprint("restored-", number))
	if said, err := s.command("restore", "--from", from, "--data", dir).CombinedOutput(); err != nil {
		s.fault("restore %d: %v\n%s", number, err, said)
		return
	}
	n := launch(s.t, nodeCommand{program: s.program, args: nodeArgs(dir, append(s.mail.args(), s.checker.limits.args()...)...)}).ready()
	admin := n.admin()
	defer func() {
		admin.close()
		n.kill()
		_ = os.RemoveAll(dir) // the test removes the rest
	}()
	before.check(checkScope{whole: true}, &endpoint{number: 1, url: n.URL, admin: admin})
	s.restored++
	s.facts += before.checks
	for _, words := range before.messages {
		s.fault("backup %d: %s", number, words)
	}
}

// String formats the figures.
func (s *backupTest) String() string {
	return fmt.Sprintf("%d backups under load, %d restored and %d facts held against the ledger, %d wrong; "+
		"%d nodes killed under a backup and %d commands killed, of which %d had made a whole file, %d none",
		s.cycles, s.restored, s.facts, len(s.wrong), s.nodesKilled, s.commandsKilled, s.survived, s.nodesKilled+s.commandsKilled-s.survived)
}

// TestFaultsBackup_UnderLoadWithKills backs a node up under load, while its log is snapshotted and dropped, and kills
// the node or the command. Every file under its final name restores to a node with everything that was acknowledged
// before.
func TestFaultsBackup_UnderLoadWithKills(t *testing.T) {
	s := newBackupTest(t, buildWith(t, "hurried", smallLimits()...))
	for number := 0; s.restored < backupsWanted && number < 2*backupsWanted && len(s.wrong) == 0; number++ {
		s.cycleWithBackup(number)
		if (number+1)%10 == 0 {
			progress(t, "%v", s)
		}
	}
	s.finish()
	s.checker.report(t)
	for _, words := range s.wrong {
		t.Error(words)
	}
	wantHalfDone(t, "backups", s.restored, backupsWanted)
	if s.restored < backupsWanted || s.facts == 0 || s.survived == s.nodesKilled+s.commandsKilled {
		t.Errorf("something was never done: %v", s)
	}
	figure(t, "%v", s)
}

// TestFaultsBackup_Control plants a backup that is whole but lacks the accounts of one shard.
func TestFaultsBackup_Control(t *testing.T) {
	s := newBackupTest(t, buildWith(t, "lacking", append(smallLimits(),
		plant{"actors/backup.go", "state, err := s.snapshot()", "state, err := s.snapshot()\n\tif err == nil {\n\t\tstate.Accounts = state.Accounts[1:]\n\t}"})...))
	for number := 0; number < backupsWanted && len(s.wrong) == 0; number++ {
		s.cycleWithBackup(5 * number) // no kill during the backup
	}
	figure(t, "control: a backup that leaves out a shard of accounts is caught after %d backups: %.120s", s.cycles, strings.Join(s.wrong, "; "))
	if len(s.wrong) == 0 {
		t.Error("a backup that lacks accounts is taken for a good one")
	}
}
