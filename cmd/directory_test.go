package cmd

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// TestData_NoLog wants commands that read a directory to refuse one without a log, in one line, and to create nothing.
func TestData_NoLog(t *testing.T) {
	empty := t.TempDir()
	none := empty + "/none/data"
	for _, command := range []string{"export", "log verify", "log dump", "log repair", "log repair --yes"} {
		for data, want := range map[string]string{empty: "there is no log in " + empty, none: none + " does not exist"} {
			run(t, nil, nil, append(strings.Fields(command), "--data", data)...).fails(t, exit.NoInput, "no data directory: "+want)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("created %v, %v", left, err)
	}
}

// TestData_NoDirectory wants a place that can be no data directory to be refused with one line.
func TestData_NoDirectory(t *testing.T) {
	file := writeFile(t, "file", "")
	places := []string{file, file + "/data", "/dev/null"}
	if _, err := os.Stat("/proc/self"); err == nil {
		places = append(places, "/proc", "/proc/none")
	}
	observations := observationsFile(t, observation(1, "59", "60"))
	for _, data := range places {
		for _, args := range [][]string{
			serveArgs(data), {"import", "--data", data, observations}, {"export", "--data", data},
			{"demo", "--listen", "127.0.0.1:0", "--log-format", "text", "--data", data},
		} {
			want := exit.CannotWrite
			if args[0] == "export" && data != file && data != "/dev/null" {
				want = exit.NoInput
			}
			got := run(t, nil, nil, args...)
			if got.code != want {
				t.Errorf("%s --data %s: exit code %d, want %d", args[0], data, got.code, want)
			}
			oneLine(t, lastLine(got.stderr), "tasard: ", "data directory", data)
		}
	}
}

// TestW4_CoveredSnapshot wants verify, a start and repair to agree on a damaged snapshot that the log covers: nothing is
// lost, and repair puts it aside with all its bytes.
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
	if err := os.WriteFile(newest, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"log verify", "log repair"} {
		got := mustRun(t, append(strings.Fields(command), "--data", data)...)
		for _, part := range []string{"warning   ", newest, "nothing is lost", "repair command puts it aside"} {
			if !strings.Contains(got, part) {
				t.Errorf("%s says %q, which lacks %q", command, got, part)
			}
		}
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
