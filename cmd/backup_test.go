package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/wal"
)

// backedUp is a node with a few rates, and the arguments that back it up.
func backedUp(t *testing.T) (p *program, data string) {
	t.Helper()
	data = t.TempDir()
	return startImported(t, serveArgs(data), observation(1, "59", "60"), observation(2, "59.5", "60")), data
}

// TestBackup_OfARunningNode wants a backup of a node that runs, one through a pipe, and one of the directory at rest
// to restore to a node with the same answers.
func TestBackup_OfARunningNode(t *testing.T) {
	t.Parallel()
	p, data := backedUp(t)
	want, dir := answers(p), t.TempDir()
	output := mustRun(t, "backup", "--data", data, "--to", dir+"/running.zst")
	if !regexp.MustCompile(`from the running node\nrecords   up to 2\ncontents  1 rate, 1 row of daily history, 0 accounts\nThe backup is whole.\n$`).MatchString(output) {
		t.Errorf("it says %q", output)
	}
	piped := run(t, nil, nil, "backup", "--admin-socket", data+"/admin.sock", "--to", "-")
	if piped.code != exit.OK || !strings.Contains(piped.stderr, "The backup is whole.") {
		t.Fatalf("exit code %d: %s", piped.code, piped.stderr)
	}
	mustRun(t, "backup", "--data", data, "--to", dir)
	named, err := filepath.Glob(dir + "/tasard-2026*Z.zst")
	if err != nil || len(named) != 1 {
		t.Errorf("in the directory is %q", named)
	}
	p.stop(syscall.SIGTERM)
	again := startNode(t, data)
	metric := regexp.MustCompile(`\ntasard_backup_success 1\n(#.*\n)*tasard_backup_timestamp_seconds 1\.\d+e\+09\n(.*\n)*tasard_disk_free_bytes \d`)
	if output := askSocket(t, data, admin.MetricsPath); !metric.MatchString(output) {
		t.Error("after a start the metrics do not tell of the last backup, or of the free disk")
	}
	again.stop(syscall.SIGTERM)
	mustRun(t, "backup", "--data", data, "--to", dir+"/resting.zst")
	for name, from := range map[string]string{
		"running": dir + "/running.zst", "named": named[0], "resting": dir + "/resting.zst", "piped": "-",
	} {
		fresh := t.TempDir() + "/new/data"
		got := run(t, nil, strings.NewReader(piped.stdout), "restore", "--from", from, "--data", fresh)
		if got.code != exit.OK || !strings.Contains(got.stdout, "contents  1 rate, 1 row of daily history, 0 accounts\n") {
			t.Fatalf("%s: exit code %d: %s%s", name, got.code, got.stdout, got.stderr)
		}
		mustRun(t, "log", "verify", "--data", fresh)
		again := startNode(t, fresh)
		sameAnswers(t, answers(again), want)
		again.signal(os.Kill)
	}
	if info, err := os.Stat(dir + "/running.zst"); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestBackup_RefusedAndDamaged wants one line and the code of the contract for what can't be done, and nothing to be
// made.
func TestBackup_RefusedAndDamaged(t *testing.T) {
	t.Parallel()
	data, dir := importedData(t, observation(1, "59", "60")), t.TempDir()
	good := dir + "/good.zst"
	mustRun(t, "backup", "--data", data, "--to", good)
	content := []byte(readFile(t, good))
	flipped := bytes.Clone(content)
	flipped[len(flipped)/2] ^= 1
	var large bytes.Buffer // of several blocks, so that damage at its end is not found when it is opened
	noError(t, wal.WriteBackup(&large, wal.BackupInfo{Program: "v1", TakenAt: time.Unix(1e9, 0), Sequence: 1}, func(w io.Writer) error {
		_, err := io.CopyN(w, rand.NewChaCha8([32]byte{}), 1<<20)
		return err
	}))
	for name, content := range map[string][]byte{"flipped": flipped, "cut": content[:len(content)-1], "large": large.Bytes()[:large.Len()-1]} {
		noError(t, os.WriteFile(dir+"/"+name, content, 0o600))
	}
	held := startNode(t, t.TempDir()+"/held", "--admin-socket", dir+"/elsewhere.sock")
	heldData := held.Cmd.Args[5]
	before, made := fingerprint(t, data), fingerprint(t, dir)
	for _, c := range []struct {
		args  []string
		code  int
		parts []string
	}{
		{[]string{"backup", "--data", data, "--to", good}, exit.CannotWrite, []string{good + " exists and is not replaced"}},
		{[]string{"backup", "--data", data, "--to", "/dev/full"}, exit.CannotWrite, []string{"/dev/full exists and is not replaced"}},
		{[]string{"backup", "--data", data, "--to", dir + "/none/b"}, exit.CannotWrite, []string{"write the backup: ", "nothing was made"}},
		{[]string{"backup", "--data", heldData, "--to", dir + "/b"}, exit.Busy, []string{heldData, "--admin-socket"}},
		{[]string{"backup", "--admin-socket", dir + "/none.sock", "--to", dir + "/b"}, exit.Unavailable, []string{dir + "/none.sock: no node is running"}},
		{[]string{"restore", "--from", good, "--data", data}, exit.CannotWrite, []string{"is not empty"}},
		{[]string{"restore", "--from", good, "--data", heldData}, exit.Busy, []string{heldData}},
		{[]string{"restore", "--from", dir, "--data", dir + "/new"}, exit.NoInput, []string{"is not a file"}},
		{[]string{"restore", "--from", good, "--data", good + "/new"}, exit.CannotWrite, []string{"not a directory"}},
		{[]string{"restore", "--from", dir + "/flipped", "--data", dir + "/new"}, exit.BadData, []string{dir + "/flipped is damaged at offset ", "expected", "found"}},
		{[]string{"restore", "--from", dir + "/cut", "--data", dir + "/new"}, exit.BadData, []string{"cut is damaged at offset ", "the end of the file"}},
		{[]string{"backup", "verify", dir + "/flipped"}, exit.BadData, []string{" is damaged at offset "}},
	} {
		run(t, nil, nil, c.args...).fails(t, c.code, c.parts...)
	}
	empty, old := t.TempDir(), time.Unix(1e9, 0)
	noError(t, os.Chtimes(empty, old, old))
	run(t, nil, nil, "restore", "--from", dir+"/large", "--data", empty).fails(t, exit.BadData, "is damaged at offset ")
	if info, err := os.Stat(empty); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("something was written before the backup was verified, at %s: %v", info.ModTime(), err)
	}
	if now := fingerprint(t, dir); now != made || fingerprint(t, data) != before {
		t.Errorf("something was made or changed:\n%s\n%s", made, now)
	}
}

// TestBackup_FullDisk lets the file of a backup, and those of a restore, grow to some size only: the command ends
// with code 73, and nothing is left.
func TestBackup_FullDisk(t *testing.T) {
	t.Parallel()
	node, data := backedUp(t)
	good := t.TempDir() + "/good"
	mustRun(t, "backup", "--data", data, "--to", good)
	for _, limit := range []string{"0", "10", "100", "300"} {
		dir := t.TempDir()
		for _, args := range [][]string{
			{"backup", "--data", data, "--to", dir + "/b"}, {"restore", "--from", good, "--data", dir + "/new"},
		} {
			command := startWith(t, realNow, []string{fileBytesMax + "=" + limit}, args...)
			if code := command.AwaitExit(); code != exit.CannotWrite {
				t.Errorf("%s with files of up to %s bytes: exit code %d:\n%s", args[0], limit, code, command.Output())
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%s with files of up to %s bytes leaves %v", args[0], limit, left)
			}
		}
	}
	node.mustGet("/v1/rates")
	node.signal(os.Kill)
	to := t.TempDir() + "/b"
	run(t, nil, nil, "backup", "--data", data, "--to", to).fails(t, exit.Unavailable, data, "did not stop cleanly", "start it and back it up")
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a node that was killed: %v", err)
	}
}

// TestRestore_OldBackup wants the age and the contents of the backup to be reported.
func TestRestore_OldBackup(t *testing.T) {
	data, to := importedData(t, observation(1, "59", "60")), t.TempDir()+"/b"
	mustRun(t, "backup", "--data", data, "--to", to)
	output := mustRun(t, "restore", "--from", to, "--data", t.TempDir())
	if !strings.Contains(output, "taken     2026-06-30T") || !strings.Contains(output, " ago\n") || !strings.Contains(output, "revoked since are valid again") {
		t.Errorf("it says %q", output)
	}
}

// TestRestore_Interrupted wants the advice for a directory that a killed restore has left: to restore again.
func TestRestore_Interrupted(t *testing.T) {
	data, left := importedData(t, observation(1, "59", "60")), t.TempDir()
	mark := readFile(t, filepath.Join(data, "mark")) // of the files of a log, restore makes it first
	noError(t, os.WriteFile(filepath.Join(left, "mark"), []byte(mark), 0o600))
	for _, command := range []string{"log verify", "log repair", "export"} {
		run(t, nil, nil, append(strings.Fields(command), "--data", left)...).fails(t, exit.BadData,
			"if a restore was interrupted here, empty the directory and restore again; otherwise ")
	}
}

// TestBackup_NodeLeaves: a stopping node gives no copy, and one that ends closes waiting requests, whether it has read
// them or not: the command asks to try again.
func TestBackup_NodeLeaves(t *testing.T) {
	t.Parallel()
	data, to := importedData(t, observation(1, "59", "60")), t.TempDir()+"/backup.zst"
	socket := filepath.Join(data, admin.SocketName)
	listen := func() net.Listener {
		listener, err := admin.Listen(t.Context(), socket)
		noError(t, err)
		return listener
	}
	leaving := admin.New(admin.Config{
		Logger: slog.New(slog.DiscardHandler), Metrics: http.NotFoundHandler(),
		Backup: func(io.Writer) (uint64, error) {
			return 0, fmt.Errorf("copy the node: %w", &engine.Error{Code: admin.CodeStopping, Message: "the node is stopping"})
		},
	})
	leaving.ServeSocket(listen())
	run(t, nil, nil, "backup", "--admin-socket", socket, "--to", to).fails(t, exit.Busy, "the node is stopping; try again")
	noError(t, leaving.Stop(t.Context()))
	for _, reads := range []int{0, 16} {
		listener, ended := listen(), make(chan error, 1)
		go func() {
			caller, err := listener.Accept()
			if err != nil {
				ended <- err
				return
			}
			_, err = io.ReadFull(caller, make([]byte, reads))
			ended <- errors.Join(err, listener.Close(), caller.Close())
		}()
		run(t, nil, nil, "backup", "--to", to, "--data", data).fails(t, exit.Busy, "the node is stopping: it ended before it answered", "try again")
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	mustRun(t, "backup", "--data", data, "--to", to)
}
