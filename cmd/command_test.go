package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	printVersion(&out, &debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.modified", Value: "true"},
		},
	})
	contains(t, out.String(), "tasard    v1.2.3\n", "commit    0123abcd, with changes\n", "contract  /v1, 1.0.0\n", "log       format 1\n")
	out.Reset()
	printVersion(&out, nil)
	if !strings.Contains(out.String(), "tasard    (unknown)\n") {
		t.Errorf("without build information: %q", out.String())
	}
	if got, want := mustRun(t, "--version"), mustRun(t, "version"); got != want || got == "" {
		t.Errorf("--version says %q, version %q", got, want)
	}
}

// TestExit_FullOutput wants a command whose output cannot be written to say so.
func TestExit_FullOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no full device: %v", err)
	}
	defer full.Close()
	data := importedData(t, observation(1, "59", "60"))
	for args, want := range map[string]int{
		"version": exit.IOError, "log verify --data DIR": exit.IOError, "export --data DIR": exit.CannotWrite, "--help": exit.IOError,
	} {
		var stderr bytes.Buffer
		p := &commands{&process.Process{
			Args: commandIn(data, args), Stdin: strings.NewReader(""), Stdout: full, Stderr: &stderr,
			Clock: clockFrom(realNow), Seed: func() uint64 { return 1 },
		}}
		if code := p.run(t.Context()); code != want {
			t.Errorf("%s: exit code %d, want %d", args, code, want)
		}
		oneLine(t, stderr.String(), "no space left on device")
	}
}

func TestExit_Codes(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("open: %w", err) }
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, exit.OK},
		{errors.New("anything"), exit.FailStop},
		{wrapped(&wal.DamageError{}), exit.BadData},
		{wrapped(&wal.FormatError{}), exit.BadData},
		{wrapped(actors.ErrUnknownRecord), exit.BadData},
		{wrapped(wal.ErrLocked), exit.Busy},
		{wrapped(wal.ErrNoSpace), exit.CannotWrite},
		{errors.Join(wal.ErrPoisoned, syscall.ENOSPC), exit.FailStop},
		{wrapped(syscall.EROFS), exit.CannotWrite},
		{wrapped(fs.ErrPermission), exit.CannotWrite},
		{wrapped(fs.ErrNotExist), exit.NoInput},
		{&engine.Error{Code: engine.CodeReadOnly, Cause: wal.ErrNoSpace}, exit.CannotWrite},
		{errors.Join(exit.Errorf(exit.Rejected, "lines"), wal.ErrLocked), exit.Rejected},
	} {
		if got := exit.Code(test.err); got != test.want {
			t.Errorf("%v: exit code %d, want %d", test.err, got, test.want)
		}
	}
}

// TestLogging_LastWord wants an error in the form of the logs around it.
func TestLogging_LastWord(t *testing.T) {
	args := []string{"serve", "--data", t.TempDir() + "/data", "--import", "none.csv", "--log-format"}
	text := run(t, nil, nil, append(args, "text")...)
	oneLine(t, text.stderr, ": none.csv: no such file")
	got := run(t, nil, nil, append(args, "json")...)
	oneLine(t, got.stderr)
	line := asJSON[struct {
		Level    string `json:"level"`
		Message  string `json:"msg"`
		ExitCode int    `json:"exitCode"`
	}](t, got.stderr)
	if line.Level != "ERROR" || !strings.Contains(line.Message, "none.csv") || line.ExitCode != exit.NoInput || got.code != exit.NoInput {
		t.Errorf("%+v, exit code %d", line, got.code)
	}
}

func TestMemoryLimit(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name                string
		heap, allowed, want int
	}{
		{"a small node", 100, 0, 272},
		{"data that fill more than half of it: twice what they take", 1024, 0, 2048},
		{"a control group leaves room for what is outside the heap", 0, 256, 208},
		{"a large control group keeps a tenth free", 1024, 1000, 900},
		{"a tiny control group keeps half", 0, 32, 16},
		{"a control group with room to spare", 0, 4096, 272},
	} {
		if got := memoryLimit(uint64(c.heap*mib), uint64(c.allowed*mib)); got != int64(c.want*mib) {
			t.Errorf("%s: %d MiB, want %d", c.name, got/mib, c.want)
		}
	}
}
