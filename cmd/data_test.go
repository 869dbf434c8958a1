package cmd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
)

// TestExport_RoundTrip wants a directory into which an export was imported to answer as the exported one does.
func TestExport_RoundTrip(t *testing.T) {
	t.Parallel()
	needReal(t)
	first, second := t.TempDir(), t.TempDir()
	mustRun(t, "import", "--data", first, realPart(t, sweep(5, 1)))
	exported := mustRun(t, "export", "--data", first, "--format", "ndjson")
	t.Log(strings.TrimSpace(mustRun(t, "import", "--data", second, writeFile(t, "all.ndjson", exported))))
	a, b := startNode(t, first), startNode(t, second)
	sameAnswers(t, answers(b), answers(a))
	a.signal(os.Interrupt)
	b.signal(os.Interrupt)
	if again := mustRun(t, "export", "--data", second, "--format", "ndjson"); again != exported {
		t.Error("the export of the import is another file")
	}
}

// TestImport_Outcomes wants every line that is not published to be reported, and the codes of the contract.
func TestImport_Outcomes(t *testing.T) {
	data := t.TempDir()
	heldLine, badLine := observation(3, "0", "60"), "x\n"
	got := run(t, nil, strings.NewReader(header+observation(1, "59", "60")+observation(2, "59", "60")+heldLine), "import", "--data", data, "-")
	if got.code != exit.OK {
		t.Errorf("exit code %d", got.code)
	}
	contains(t, got.stdout, "stdin: 3 lines in ", "2 accepted (1 new), 1 quarantined, 0 refused, 0 malformed; 1 of the accepted repeat a known value")
	oneLine(t, got.stderr, "stdin:4: quarantined as number 1: zero: ")

	file := writeFile(t, "o.csv", header+heldLine+badLine+strings.Replace(observation(4, "59", "60"), "popular", "nobody", 1))
	got = run(t, nil, nil, "import", "--data", data, file)
	if got.code != exit.Rejected {
		t.Errorf("exit code %d", got.code)
	}
	contains(t, got.stderr, "o.csv:2: quarantined as number 1: zero: ", "o.csv:3: malformed: ", "o.csv:4: refused: unknown_institution: ",
		"2 of 3 lines not imported: 1 refused, 1 malformed")

	got = run(t, nil, nil, "import", "--data", t.TempDir(), observationsFile(t, observation(1, "5800", "6100")))
	if got.code != exit.Rejected {
		t.Errorf("exit code %d", got.code)
	}
	contains(t, got.stderr, "nothing was published: every line was quarantined")
}

// realPart is a file with one in so many of the real observations.
func realPart(t *testing.T, step int) string {
	t.Helper()
	var part strings.Builder
	at := 0
	for line := range strings.Lines(readFile(t, realFile)) {
		if at == 0 || at%step == 0 {
			part.WriteString(line)
		}
		at++
	}
	return writeFile(t, "part.csv", part.String())
}

// TestImport_RealObservations wants all lines imported except the quarantined ones, each of which is reported, with
// the same output the second time. The clock stands still, so that no progress is printed.
func TestImport_RealObservations(t *testing.T) {
	t.Parallel()
	needReal(t)
	data := t.TempDir()
	now := clockFrom(realNow)()
	still := func() time.Time { return now }
	got := runAt(t, still, nil, nil, "import", "--data", data, realFile)
	if got.code != exit.OK || strings.Count(got.stderr, ": quarantined as number ") != strings.Count(got.stderr, "\n") {
		t.Errorf("exit code %d\n%s", got.code, got.stderr)
	}
	if again := runAt(t, still, nil, nil, "import", "--data", data, realFile); !strings.Contains(again.stdout, "(0 new)") || again.stderr != got.stderr {
		t.Errorf("the second time it says %s%s", again.stdout, again.stderr)
	}
}

func TestLog_Whole(t *testing.T) {
	data := filledLog(t)
	got := mustRun(t, "log", "verify", "--data", data)
	if !strings.HasSuffix(got, "The log is whole.\n") || !regexp.MustCompile(`records   1 to \d+\nbatches   \d+\n`).MatchString(got) {
		t.Errorf("verify says %q", got)
	}
	last := uint64(0)
	for line := range strings.Lines(mustRun(t, "log", "dump", "--data", data)) {
		record := asJSON[struct {
			Sequence uint64          `json:"sequence"`
			Segment  string          `json:"segment"`
			Event    json.RawMessage `json:"event"`
		}](t, line)
		if record.Sequence != last+1 || record.Segment == "" || !strings.Contains(string(record.Event), "popular-site") {
			t.Errorf("after %d comes %s", last, line)
		}
		last = record.Sequence
	}
	if last == 0 {
		t.Error("dump printed nothing")
	}
	if got := mustRun(t, "log", "repair", "--data", data); !strings.Contains(got, "nothing to repair") {
		t.Errorf("repair says %q", got)
	}
	if got := mustRun(t, "log", "repair", "--data", data, "--yes"); !strings.Contains(got, "nothing was changed") {
		t.Errorf("repair --yes says %q", got)
	}
}

// filledLog is a data directory whose records are all in the log, as a kill leaves it.
func filledLog(t *testing.T) string {
	t.Helper()
	data, lines := t.TempDir(), make([]string, 50)
	for minute := range lines {
		lines[minute] = observation(minute, fmt.Sprintf("59.%02d", minute), "60.50")
	}
	startImported(t, serveArgs(data), lines...).signal(os.Kill)
	return data
}

// TestW5_DamagedLog wants damage to end every command with code 78 and one line, with nothing changed on disk, until
// the operator asks for a repair.
func TestW5_DamagedLog(t *testing.T) {
	data := filledLog(t)
	segment := data + "/00000000000000000001"
	content := []byte(readFile(t, segment))
	content[len(content)/2] ^= 1
	noError(t, os.WriteFile(segment, content, 0o600))
	before := fingerprint(t, data)
	for _, args := range [][]string{
		serveArgs(data), {"import", "--data", data, writeFile(t, "o.csv", header)}, {"export", "--data", data},
		{"log", "verify", "--data", data}, {"log", "dump", "--data", data}, {"log", "repair", "--data", data},
	} {
		promptly(t, args...).fails(t, exit.BadData, segment+" is damaged at offset ", "expected", "found")
		if after := fingerprint(t, data); after != before {
			t.Fatalf("%s changed the directory:\n%s\n%s", args[:2], before, after)
		}
	}
	run(t, nil, nil, serveArgs(data, "--log-format", "json")...).fails(t, exit.BadData, `"exitCode":78`, segment)
	contains(t, run(t, nil, nil, "log", "repair", "--data", data).stderr, "cut the log here with --yes: that keeps the records before this place")
	contains(t, mustRun(t, "log", "repair", "--data", data, "--yes"), "\nlost      ")
	mustRun(t, "log", "verify", "--data", data)
	startNode(t, data)
}

// fingerprint names every file of a directory with its hash.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() { // the socket of a node that was killed
			return err
		}
		fmt.Fprintf(&all, "%s %x\n", path, sha256.Sum256([]byte(readFile(t, path))))
		return nil
	})
	noError(t, err)
	return all.String()
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	noError(t, err)
	return string(text)
}

// TestOwner_RootChangesNothing wants root to change no directory of another user, by an import, a repair or a restore,
// and a message that says how to go on.
func TestOwner_RootChangesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give the directory to another user")
	}
	data, empty, backup := filledLog(t), t.TempDir(), filepath.Join(t.TempDir(), "b.zst")
	mustRun(t, "backup", "--data", importedData(t, observation(1, "59", "60")), "--to", backup)
	segment := data + "/00000000000000000001"
	content := []byte(readFile(t, segment))
	content[len(content)/2] ^= 1
	noError(t, os.WriteFile(segment, content, 0o600))
	for _, path := range append(filesOf(t, data), data, empty) {
		noError(t, os.Chown(path, 65532, 65532))
	}
	before := fingerprint(t, data)
	for _, args := range [][]string{
		{"log", "repair", "--data", data, "--yes"}, {"restore", "--data", empty, "--from", backup}, {"import", "--data", empty, observationsFile(t)},
	} {
		run(t, nil, nil, args...).fails(t, exit.BadData, "belongs to user 65532", "chown")
	}
	if fingerprint(t, data) != before || len(filesOf(t, empty)) > 0 {
		t.Error("files were changed")
	}
	run(t, nil, nil, "log", "repair", "--data", data).fails(t, exit.BadData, "is damaged at offset ") // reading is allowed
}

func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*")
	noError(t, err)
	return files
}

// TestCommands_LongDataPath wants commands that need no node to work although the path is too long for a socket.
func TestCommands_LongDataPath(t *testing.T) {
	data := filepath.Join(t.TempDir(), strings.Repeat("a", 80), strings.Repeat("b", 80))
	mustRun(t, "import", "--data", data, observationsFile(t, observation(1, "58", "61")))
	contains(t, mustRun(t, "export", "--data", data), "popular")
	contains(t, mustRun(t, "sources", "list", "--data", data), "No node is running")
	run(t, nil, nil, "admin", "accounts", "list", "--data", data).fails(t, exit.Unavailable, "no node listens on")
}

// fifo is a named pipe of the test's own.
func fifo(t *testing.T) string {
	t.Helper()
	path := t.TempDir() + "/pipe"
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	return path
}

// silent returns a reader that blocks, like a terminal without input; its writer is never used.
func silent(t *testing.T) io.Reader {
	t.Helper()
	read, write := io.Pipe()
	t.Cleanup(func() { _ = write.Close() }) // unblocks readers
	return read
}

// TestInput_WaitsNoLongerThanTheCommand wants an import that waits for input to end at once when it is asked to.
func TestInput_WaitsNoLongerThanTheCommand(t *testing.T) {
	pipe, open := fifo(t), fifo(t)
	writer, err := os.OpenFile(open, os.O_RDWR, 0)
	noError(t, err)
	defer writer.Close()
	for name, file := range map[string]string{"stdin": "-", "dev": "/dev/stdin", "no writer": pipe, "silent writer": open} {
		t.Run(name, func(t *testing.T) {
			for delay := 50 * time.Millisecond; ; delay *= 2 {
				got, took := interruptedRun(t, delay, "import", "--data", t.TempDir(), file)
				if strings.Contains(got.stderr, "while the log was being read") && delay < patience {
					continue // a slow machine had not come to the input yet
				}
				if took > delay+10*time.Second {
					t.Errorf("it took %s", took)
				}
				got.fails(t, exit.Interrupted, "interrupted after line 0")
				return
			}
		})
	}
}

// interruptedRun is run for a command that is interrupted after a while, with a stdin that is silent, and how long it
// took.
func interruptedRun(t *testing.T, delay time.Duration, args ...string) (result, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(delay, cancel)
	defer timer.Stop()
	began := clockFrom("now")
	from := began()
	got := execute(ctx, &process.Process{Args: args, Stdin: silent(t), Clock: clockFrom(realNow)})
	return got, began().Sub(from)
}

// TestServe_ImportsFromAPipe wants the node to answer while it waits for the writer, to take in what comes, and to
// stop in order when nothing comes.
func TestServe_ImportsFromAPipe(t *testing.T) {
	t.Parallel()
	pipe := fifo(t)
	p := start(t, realNow, serveArgs(t.TempDir(), "--import", pipe)...).listening()
	p.Await("recovered 0 rates")
	p.mustGet("/v1/institutions")
	noError(t, os.WriteFile(pipe, []byte(header+observation(1, "59", "60")), 0o600))
	p.Await("imported " + pipe + ": 1 line in ")
	p.mustGet("/v1/rates")
	p.stop(syscall.SIGTERM)
	again := start(t, realNow, serveArgs(t.TempDir(), "--import", pipe)...).listening()
	again.Await("recovered 0 rates")
	again.stop(syscall.SIGTERM)
	again.Await("stopped")
}

// endless is a stream of zeros.
type endless struct{}

func (endless) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}

// TestInput_RefusesWholeFiles wants what is as a whole no file of observations to end an import, and a node without
// data, with code 66 and a line that says why. A node with data says so and goes on.
func TestInput_RefusesWholeFiles(t *testing.T) {
	t.Parallel()
	none, directory := filepath.Join(t.TempDir(), "none.csv"), t.TempDir()
	const device = "is not a file or pipe"
	reasons := map[string]string{none: "no such file", "/dev/zero": device, "/dev/null": device}
	for name, c := range map[string][2]string{
		"empty.csv": {"", "the file is empty"}, "header.csv": {"a,b\n", "found the header"}, "gzip.csv": {"\x1f\x8b\x08\x00\x00", "bytes that are not text"},
		"book.xls":  {"\xd0\xcf\x11\xe0\xa1\xb1", "save an old .xls as .xlsx first"},
		"book.xlsx": {"PK\x03\x04\x14\x00", "found a workbook or a zip file"},
	} {
		reasons[writeFile(t, name, c[0])] = c[1]
	}
	held := importedData(t, observation(1, "59", "60"))
	for file, reason := range reasons {
		data := filepath.Join(directory, filepath.Base(file))
		run(t, nil, nil, "import", "--data", data, file).fails(t, exit.NoInput, file, reason)
		got := run(t, nil, nil, serveArgs(data, "--import", file)...)
		if oneLine(t, lastLine(got.stderr), file, reason); got.code != exit.NoInput {
			t.Errorf("%s without data: exit code %d, %s", file, got.code, got.stderr)
		}
		if _, err := os.Stat(data); strings.HasPrefix(file, "/dev/") && err == nil {
			t.Errorf("%s: the data directory was made", file)
		}
		if !slices.Contains([]string{none, "/dev/zero"}, file) && filepath.Base(file) != "header.csv" && sweep(0, 1) == 0 {
			continue // a process for each takes long
		}
		p := start(t, realNow, serveArgs(held, "--import", file)...).listening()
		if line := p.Await("the node continues"); !strings.Contains(line, "ERROR") || !strings.Contains(line, reason) || strings.Count(line, file) != 1 {
			t.Errorf("%s with data: %s", file, line)
		}
		p.Await("recovered ") // before or after the import has failed
		p.mustGet("/v1/rates")
		p.stop(syscall.SIGTERM)
	}
	run(t, nil, endless{}, "import", "--data", t.TempDir(), "-").fails(t, exit.NoInput, "stdin", "a line is longer than 65536 bytes")
}

// TestData_NoDirectory wants a place that can be no data directory to be refused with one line; the golden file of
// bad input has more.
func TestData_NoDirectory(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skipf("needs /proc, in which no user can create a directory: %v", err)
	}
	places := []string{"/proc/none", writeFile(t, "file", "") + "/data"}
	if os.Geteuid() == 0 { // to others it is a directory of another user
		places = append(places, "/proc")
	}
	for _, data := range places {
		for _, args := range [][]string{
			serveArgs(data), {"import", "--data", data, observationsFile(t)},
			{"demo", "--listen", "127.0.0.1:0", "--log-format", "text", "--data", data},
		} {
			got := run(t, nil, nil, args...)
			if oneLine(t, lastLine(got.stderr), "tasard ", "data directory", data); got.code != exit.CannotWrite {
				t.Errorf("%s --data %s: exit code %d", args[0], data, got.code)
			}
		}
		run(t, nil, nil, "export", "--data", data).fails(t, exit.NoInput, "data directory", data)
	}
}

// TestW4_CoveredSnapshot wants verify, a start and repair to agree on a damaged snapshot that the log covers: nothing
// is lost, and repair puts it aside with all its bytes.
func TestW4_CoveredSnapshot(t *testing.T) {
	data := importedData(t, observation(1, "59", "60"))
	want := mustRun(t, "export", "--data", data)
	snapshots, err := filepath.Glob(data + "/snapshot-*")
	if err != nil || len(snapshots) == 0 {
		t.Fatalf("no snapshot: %v", err)
	}
	newest := snapshots[len(snapshots)-1]
	content := []byte(readFile(t, newest))
	content[len(content)/2] ^= 1
	noError(t, os.WriteFile(newest, content, 0o600))
	for _, command := range []string{"log verify", "log repair"} {
		got := mustRun(t, append(strings.Fields(command), "--data", data)...)
		contains(t, got, "warning   ", newest, "no record is lost", "tasard log repair moves it aside")
	}
	got := mustRun(t, "log", "repair", "--data", data, "--yes")
	if !strings.Contains(got, "lost      no record\n") || strings.Contains(got, "Import the lost") {
		t.Errorf("repair --yes says %q", got)
	}
	kept, err := filepath.Glob(newest + ".damaged-*")
	if err != nil || len(kept) != 1 || !bytes.Equal([]byte(readFile(t, kept[0])), content) {
		t.Errorf("kept %q, %v", kept, err)
	}
	if _, err := os.Stat(newest); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", newest, err)
	}
	if got := mustRun(t, "log", "verify", "--data", data); strings.Contains(got, "warning") {
		t.Errorf("after the repair verify says %q", got)
	}
	if got := mustRun(t, "export", "--data", data); got != want {
		t.Errorf("after the repair the data is\n%s, want\n%s", got, want)
	}
}

// realWorkbook is a workbook of the central bank beside the repository; the test is skipped where it is not.
func realWorkbook(t *testing.T, pattern string) string {
	t.Helper()
	names, err := filepath.Glob("../shared/data/" + pattern)
	if err != nil || len(names) == 0 {
		t.Skipf("../shared/data/%s is not here", pattern)
	}
	return names[0]
}

// TestImport_Workbooks wants the real workbook of the central bank for the dollar in history, each day as of its own; a
// second reading changes nothing.
func TestImport_Workbooks(t *testing.T) {
	t.Parallel()
	args := []string{"import", "--data", t.TempDir(), "--source", "bcrd-usd", realWorkbook(t, "*TASA_DOLAR_REFERENCIA_MC*.xlsx")}
	data := args[2]
	got := run(t, nil, nil, args...)
	if got.code != exit.OK || !strings.Contains(got.stdout, ": 8,111 accepted (8,111 new), 1 quarantined, 0 refused, 0 malformed") {
		t.Errorf("exit code %d: %s", got.code, got.stdout)
	}
	oneLine(t, got.stderr, ": bcrd USD 1991-01-25: quarantined as number 1: crossed: ")
	before := mustRun(t, "export", "--data", data)
	contains(t, mustRun(t, args...), "(0 new)")
	if mustRun(t, "export", "--data", data) != before {
		t.Error("the second reading changed something")
	}
	contains(t, startNode(t, data).mustGet("/v1/rates/history?currency=USD&institution=bcrd&from=2023-04-20&to=2023-04-20"),
		`"date":"2023-04-20"`, `"buy":"54.4749","sell":"54.6807"`, `"sourceId":"bcrd-usd"`)
}

// bhdPage is a document of bhd-site, made up after its shape: it says no date.
const bhdPage = `{"data":{"attributes":{"exchangeRates":[{"currency":"USD","buyingRate":50.10,"sellingRate":52.20},` +
	`{"currency":"EUR","buyingRate":60.10,"sellingRate":64.20}]}}}`

// TestImport_UndatedDocument wants a page without a date to be one of the instant at which it was saved, and to
// expire from then on; the golden file of bad input has what is refused.
func TestImport_UndatedDocument(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "rates.json", bhdPage)
	for saved, stale := range map[string]bool{"2022-01-01T10:00:00-04:00": true, "2026-06-30T10:00:00-04:00": false} {
		data := t.TempDir()
		mustRun(t, "import", "--data", data, "--source", "bhd-site", "--saved", saved, file)
		p := startNode(t, data)
		at, err := time.Parse(time.RFC3339, saved)
		if rate := rateOf(t, p, "USD", "bhd"); rate == nil || err != nil || rate.Stale != stale || !rate.LastCheckedAt.Equal(at) {
			t.Errorf("saved at %s: %+v", saved, rate)
		}
		p.signal(syscall.SIGTERM)
	}
}

// TestImport_DocumentOfToday wants a page of today to be taken in without further words.
func TestImport_DocumentOfToday(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	got := mustRun(t, "import", "--data", data, "--source", "lafise-site", writeFile(t, "rates.json", lafisePage))
	if !strings.Contains(got, ": 2 rows in ") || !strings.Contains(got, ": 2 accepted (2 new), 0 quarantined") {
		t.Errorf("taken in: %s", got)
	}
	p := startNode(t, data)
	if rate := rateOf(t, p, "USD", "lafise"); rate == nil || rate.Buy != "58.10" || rate.SourceID != "lafise-site" || rate.Stale {
		t.Errorf("published %+v", rate)
	}
}
