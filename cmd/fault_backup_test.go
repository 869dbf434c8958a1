//go:build faults

package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
			kill(n)
			return
		}
		if kind >= 3 {
			wait(upTo(chance, 80*time.Millisecond))
		}
		switch kind {
		case 3:
			kill(n)
		case 4:
			_ = backup.Process.Kill() // it may have exited
		}
		failed = backup.Wait()
		if kind != 3 {
			wait(upTo(chance, 20*time.Millisecond)) // later changes must not matter
			kill(n)
		}
	})
	before.allowLater(s.checker)
	_, missing := os.Stat(to)
	switch {
	case kind == 3:
		s.nodesKilled++
	case kind == 4:
		s.commandsKilled++
	case failed != nil && strings.Contains(said.String(), "the node is stopping"): // the load stopped it
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
		plant{"actors/backup.go", "state, err := s.snapshot(true)", "state, err := s.snapshot(true)\n\tif err == nil {\n\t\tstate.Accounts = state.Accounts[1:]\n\t}"})...))
	for number := 0; number < backupsWanted && len(s.wrong) == 0; number++ {
		s.cycleWithBackup(5 * number) // no kill during the backup
	}
	figure(t, "control: a backup that leaves out a shard of accounts is caught after %d backups: %.120s", s.cycles, strings.Join(s.wrong, "; "))
	if len(s.wrong) == 0 {
		t.Error("a backup that lacks accounts is taken for a good one")
	}
}
