package cmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
)

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
	var stdout, stderr bytes.Buffer
	p := &commands{&process.Process{
		Args: args, Stdin: silent(t), Stdout: &stdout, Stderr: &stderr, Clock: clockFrom(realNow), Seed: func() uint64 { return 1 },
	}}
	began := clockFrom("now")
	from := began()
	code := p.run(ctx)
	return result{args, code, stdout.String(), stderr.String()}, began().Sub(from)
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
