package cmd

import (
	"bytes"
	"context"
	"io"
	"net/http"
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

// silent is a reader that never gives anything, as a terminal at which nobody types; its writer is never used.
func silent(t *testing.T) io.Reader {
	t.Helper()
	read, write := io.Pipe()
	t.Cleanup(func() { _ = write.Close() }) // lets go of whoever still reads
	return read
}

// TestInput_WaitsNoLongerThanTheCommand wants an import that waits for input to end at once when it is asked to.
func TestInput_WaitsNoLongerThanTheCommand(t *testing.T) {
	pipe, open := fifo(t), fifo(t)
	writer, err := os.OpenFile(open, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	for name, file := range map[string]string{"stdin": "-", "dev": "/dev/stdin", "no writer": pipe, "silent writer": open} {
		t.Run(name, func(t *testing.T) {
			for delay := 50 * time.Millisecond; ; delay *= 2 {
				got, took := interruptedRun(t, delay, "import", "--data", t.TempDir(), file)
				if strings.Contains(got.stderr, "while the log was replayed") && delay < patience {
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

// interruptedRun is run for a command that is interrupted after a while, with a stdin that is silent, and how long it took.
func interruptedRun(t *testing.T, delay time.Duration, args ...string) (outcomeOf, time.Duration) {
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
	return outcomeOf{args, code, stdout.String(), stderr.String()}, began().Sub(from)
}

// TestServe_ImportsFromAPipe wants the node to answer while it waits for the writer, to take in what comes, and to stop in
// order when nothing comes.
func TestServe_ImportsFromAPipe(t *testing.T) {
	t.Parallel()
	pipe := fifo(t)
	p := start(t, realNow, serveArgs(t.TempDir(), "--import", pipe)...).listening()
	p.await("recovered 0 rates")
	p.mustGet("/v1/institutions")
	if err := os.WriteFile(pipe, []byte(header+observation(1, "59", "60")), 0o600); err != nil {
		t.Fatal(err)
	}
	p.await("imported " + pipe + ": 1 line in ")
	p.mustGet("/v1/rates")
	p.stop(syscall.SIGTERM)
	again := start(t, realNow, serveArgs(t.TempDir(), "--import", pipe)...).listening()
	again.await("recovered 0 rates")
	again.stop(syscall.SIGTERM)
	again.await("stopped")
}

// endless is a stream of zeros.
type endless struct{}

func (endless) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}

// badWhole are files that are refused as a whole: what stands in them, and a part of the reason.
func badWhole() map[string][2]string {
	return map[string][2]string{
		"empty.csv":  {"", "the file is empty"},
		"header.csv": {"a,b\n", "the header lacks"},
		"gzip.csv":   {"\x1f\x8b\x08\x00\x00", "found a gzip file"},
		"book.xls":   {"\xd0\xcf\x11\xe0\xa1\xb1", "found a workbook (xls)"},
		"book.xlsx":  {"PK\x03\x04\x14\x00", "found a zip file or a workbook (xlsx)"},
	}
}

// TestImport_RefusesWholeFiles wants code 66 and one line for what is as a whole no file of observations.
func TestImport_RefusesWholeFiles(t *testing.T) {
	for name, c := range badWhole() {
		run(t, nil, nil, "import", "--data", t.TempDir(), writeFile(t, name, c[0])).fails(t, exit.NoInput, name, c[1])
	}
	for _, device := range []string{"/dev/zero", "/dev/null"} {
		for _, args := range [][]string{{"import", "--data", t.TempDir() + "/new", device}, serveArgs(t.TempDir()+"/new", "--import", device)} {
			got := run(t, nil, nil, args...)
			if _, err := os.Stat(args[len(args)-2]); got.code != exit.NoInput || err == nil {
				t.Errorf("%s: exit code %d, %v", args[0], got.code, err)
			}
			oneLine(t, got.stderr, device+" is neither a file nor a pipe")
		}
	}
	run(t, nil, endless{}, "import", "--data", t.TempDir(), "-").fails(t, exit.NoInput, "stdin", "a line goes on for more than 16 MiB")
}

// TestServe_RefusesWholeFiles wants a node without data to end with code 66, and one with data to say so and to go on.
func TestServe_RefusesWholeFiles(t *testing.T) {
	t.Parallel()
	data := importedData(t, observation(1, "59", "60"))
	reasons := map[string]string{filepath.Join(t.TempDir(), "none.csv"): "there is no such file", "/dev/zero": "neither a file nor a pipe"}
	for name, c := range badWhole() {
		reasons[writeFile(t, name, c[0])] = c[1]
	}
	for file, reason := range reasons {
		got := run(t, nil, nil, serveArgs(t.TempDir(), "--import", file)...)
		if got.code != exit.NoInput || !strings.Contains(lastLine(got.stderr), reason) {
			t.Errorf("%s without data: exit code %d, %s", file, got.code, got.stderr)
		}
		if sweep(0, 1) == 0 && slices.Contains([]string{"empty.csv", "gzip.csv", "book.xls", "book.xlsx"}, filepath.Base(file)) {
			continue // a process for each takes long
		}
		p := start(t, realNow, serveArgs(data, "--import", file)...).listening()
		if line := p.await("the node goes on"); !strings.Contains(line, "ERROR") || !strings.Contains(line, reason) {
			t.Errorf("%s with data: %s", file, line)
		}
		if status, _ := p.ask(http.MethodGet, "/v1/rates"); status != http.StatusOK {
			t.Errorf("%s with data: status %d", file, status)
		}
		if code := p.signal(syscall.SIGTERM); code != exit.Done {
			t.Errorf("%s with data: exit code %d", file, code)
		}
	}
}
