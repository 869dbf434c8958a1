package cmd

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
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

func TestExport_Lines(t *testing.T) {
	data := t.TempDir()
	file := observationsFile(t, observation(1, "59", "60"), observation(2, "59.5", "60"), observation(3, "59.5", "60"))
	mustRun(t, "import", "--data", data, file)
	line := func(minute int, buy string) string {
		return fmt.Sprintf("2026-06-30T14:%02d:00Z,popular,USD,unspecified,commercial,%s,60,popular-site,,\n", minute, buy)
	}
	want := header + line(2, "59.5") + line(3, "59.5") // when it was new, and its last confirmation
	if got := mustRun(t, "export", "--data", data); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestImport_Outcomes wants every line that is not published to be reported, and the codes of the contract.
func TestImport_Outcomes(t *testing.T) {
	data := t.TempDir()
	heldLine, badLine := observation(2, "0", "60"), "x\n"
	got := run(t, nil, strings.NewReader(header+observation(1, "59", "60")+heldLine), "import", "--data", data, "-")
	if got.code != exit.OK || !strings.Contains(got.stdout, "stdin: 2 lines in ") || !strings.Contains(got.stdout, "1 accepted (1 new), 1 quarantined, 0 refused, 0 malformed") {
		t.Errorf("exit code %d, %s", got.code, got.stdout)
	}
	oneLine(t, got.stderr, "stdin:3: quarantined as number 1: zero: ")

	file := writeFile(t, "o.csv", header+heldLine+badLine+strings.Replace(observation(4, "59", "60"), "popular", "nobody", 1))
	got = run(t, nil, nil, "import", "--data", data, file)
	if got.code != exit.Rejected {
		t.Errorf("exit code %d", got.code)
	}
	contains(t, got.stderr, "o.csv:2: quarantined as number 1: zero: ", "o.csv:3: malformed: ", "o.csv:4: refused: unknown_institution: ",
		"2 of 3 lines not imported: 1 refused, 1 malformed")
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
	segment := segmentOf(t, data)
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

// segmentOf is the file of the log's records.
func segmentOf(t *testing.T, data string) string {
	t.Helper()
	names, err := filepath.Glob(data + "/[0-9]*")
	if err != nil || len(names) == 0 {
		t.Fatalf("no segment in %s: %v", data, err)
	}
	return names[0]
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
