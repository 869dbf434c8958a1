//go:build faults

package faults

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// backupsWanted is how many backups that were taken under load are restored and held against the ledger.
const backupsWanted = 50

// hurried are the program's files with limits so small that snapshots are taken and segments dropped all the time.
func hurried(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"wal/options.go":     replaced(t, "wal/options.go", "segmentBytesDefault = 4 << 20", "segmentBytesDefault = 16 << 10"),
		"actors/config.go":   replaced(t, "actors/config.go", "snapshotRecordsDefault = 50_000", "snapshotRecordsDefault = 300"),
		"actors/snapshot.go": replaced(t, "actors/snapshot.go", "const ledgerPart = 4", "const ledgerPart = 1 << 30"),
	}
}

// replaced is a file of the module with one text, which must be there once, in place of another.
func replaced(t *testing.T, file, from, to string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	if found := strings.Count(string(text), from); found != 1 {
		t.Fatalf("%s has %q %d times, want once", file, from, found)
	}
	return strings.Replace(string(text), from, to, 1)
}

// known is what the ledger knew of an account at one moment.
type known struct {
	keys      map[string]ledgerKey
	suspended bool // acknowledged, and nothing under way
	changes   int
	spent     int
}

// moment is what the ledger knew at one moment.
type moment struct {
	tenants []known
	rates   []int
}

// moment copies what was acknowledged so far.
func (l *ledger) moment() moment {
	l.mu.Lock()
	defer l.mu.Unlock()
	var m moment
	for _, tn := range l.tenants {
		k := known{keys: map[string]ledgerKey{}, suspended: tn.suspended && !tn.suspending, changes: tn.changes, spent: tn.base + tn.admitted}
		for _, key := range tn.keys {
			k.keys[key.id] = *key
		}
		m.tenants = append(m.tenants, k)
	}
	for _, q := range l.quotes {
		m.rates = append(m.rates, q.must)
	}
	return m
}

// siege is a storm that is backed up meanwhile.
type siege struct {
	*storm
	place    string
	restored int
	facts    int
	cutOff   int // backups from under which the node was killed
	felled   int // backup commands that were killed
	survived int // of both kinds, those that had made a whole file
	wrong    []string
	snapshot int // backups with a snapshot in them
}

func newSiege(t *testing.T, program string) *siege {
	t.Helper()
	return &siege{storm: newStorm(t, terms{day: 20_000, minute: 60_000, lease: 16}, t.TempDir(), program), place: t.TempDir()}
}

func (s *siege) fault(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// command is tasard with arguments; its output comes back.
func (s *siege) command(args ...string) *exec.Cmd { return exec.Command(s.program, args...) }

// assault is one cycle: load, a backup in the midst of it, a crash; then the backup is restored and looked at.
func (s *siege) assault(number int) {
	s.t.Helper()
	s.cycles++
	n := s.begin(false)
	to := filepath.Join(s.place, fmt.Sprintf("%d.tar.zst", number))
	backup := s.command("backup", "--data", s.dir, "--admin-socket", s.socket, "--to", to)
	var said bytes.Buffer
	backup.Stdout, backup.Stderr = &said, &said
	chance := s.chance(stormWorkers)
	kind := number % 5 // 3: the node is killed in the middle; 4: the command is
	var before moment
	var failed error
	s.load(n, 60*time.Millisecond, func(n *node) {
		before = s.ledger.moment()
		if failed = backup.Start(); failed != nil {
			kill(n)
			return
		}
		if kind >= 3 {
			wait(time.Duration(chance.Int64N(int64(80 * time.Millisecond))))
		}
		switch kind {
		case 3:
			kill(n)
		case 4:
			_ = backup.Process.Kill() // it may be over
		}
		failed = backup.Wait()
		if kind != 3 {
			wait(time.Duration(chance.Int64N(int64(20 * time.Millisecond)))) // what comes later must not matter
			kill(n)
		}
	})
	after := s.ledger.moment()
	_, missing := os.Stat(to)
	switch {
	case kind == 3:
		s.cutOff++
	case kind == 4:
		s.felled++
	case failed != nil && strings.Contains(said.String(), "the node is stopping"): // load had told it to
		if missing == nil {
			s.fault("backup %d was ended by a node that stops, and is there", number)
		}
		return
	case failed != nil:
		s.fault("backup %d: %v\n%sthe node: %v\n%s", number, failed, &said, n.cmd.ProcessState, n.tail(10))
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
	if regexp.MustCompile(`a snapshot up to`).MatchString(said.String()) {
		s.snapshot++
	}
	s.look(number, to, before, after)
}

// look restores a backup, starts a node on it, and holds it against what was known before and after the backup was taken.
func (s *siege) look(number int, from string, before, after moment) {
	s.t.Helper()
	dir := filepath.Join(s.place, fmt.Sprint("restored-", number))
	if said, err := s.command("restore", "--from", from, "--data", dir).CombinedOutput(); err != nil {
		s.fault("restore %d: %v\n%s", number, err, said)
		return
	}
	n := launch(s.t, command{program: s.program, args: serveArgs(dir, append(s.office.args(), s.ledger.terms.args()...)...)}).ready()
	defer func() {
		n.kill()
		_ = os.RemoveAll(dir) // what is left goes with the test
	}()
	c, admin := newCaller(""), n.admin()
	defer c.close()
	defer admin.close()
	s.restored++
	for i, tn := range s.ledger.tenants {
		s.lookAt(c, admin, n.url, tn, &before.tenants[i], &after.tenants[i])
	}
	s.lookAtRates(c, n.url, before, after)
}

// lookAt wants everything of an account that was acknowledged before the backup, and nothing that was not asked for by its end.
func (s *siege) lookAt(c, admin *caller, url string, tn *tenant, before, after *known) {
	var list struct{ Data []listedKey }
	got, err := c.do(http.MethodGet, url+"/v1/account/keys", tn.session, nil)
	if err != nil || got.into(&list) != nil {
		s.fault("list the keys of %s: %d, %v: %s", tn.email, got.status, err, got.body)
		return
	}
	shown := map[string]string{}
	for _, key := range list.Data {
		shown[key.ID] = key.Status
		if _, asked := after.keys[key.ID]; !asked && !tn.doubts[key.Name] {
			s.fault("%s has a key that nobody asked for: %+v", tn.email, key)
		}
	}
	for id, key := range before.keys {
		s.facts++
		end := after.keys[id]
		switch status := shown[id]; {
		case status == "":
			s.fault("%s: key %s is not in the backup", tn.email, id)
		case key.revoked && status == "active":
			s.fault("%s: the revocation of key %s is not in the backup", tn.email, id)
		case status != "active" && !end.asked:
			s.fault("%s: key %s is %s, although nobody revoked it", tn.email, id, status)
		}
	}
	s.lookAtUse(c, url, tn, before)
	if before.suspended && before.changes == after.changes {
		var now struct{ SuspendedAt time.Time }
		got, err := admin.do(http.MethodGet, "http://node/accounts/"+tn.email, "", nil)
		s.facts++
		if err != nil || got.into(&now) != nil || now.SuspendedAt.IsZero() {
			s.fault("the suspension of %s is not in the backup: %d, %v: %s", tn.email, got.status, err, got.body)
		}
	}
}

// lookAtUse wants the quota that was spent before the backup to be spent, and keys that were revoked before it to be refused.
func (s *siege) lookAtUse(c *caller, url string, tn *tenant, before *known) {
	var now usage
	got, err := c.do(http.MethodGet, url+"/v1/account/usage", tn.session, nil)
	if err != nil || got.into(&now) != nil {
		s.fault("the usage of %s: %d, %v: %s", tn.email, got.status, err, got.body)
		return
	}
	s.facts++
	if spent := now.Data.Day.Limit - now.Data.Day.Remaining; spent < before.spent {
		s.fault("%s has spent %d in the backup, although %d had been admitted before", tn.email, spent, before.spent)
	}
	for _, key := range before.keys {
		if key.revoked && key.secret != "" {
			s.facts++
			if got, err := c.do(http.MethodGet, url+"/v1/rates?limit=1", key.secret, nil); err != nil || got.status != http.StatusUnauthorized {
				s.fault("%s: a key that was revoked before the backup is answered %d, %v", tn.email, got.status, err)
			}
			return // one of each account
		}
	}
}

// lookAtRates wants each quote as it was acknowledged before, or as it was published by the end.
func (s *siege) lookAtRates(c *caller, url string, before, after moment) {
	got, err := c.do(http.MethodGet, url+"/v1/rates?currency=USD&limit=200", s.auditor, nil)
	var page struct {
		Data []struct{ InstitutionID, SourceID, Buy string }
	}
	if err != nil || got.into(&page) != nil {
		s.fault("the rates: %d, %v: %s", got.status, err, got.body)
		return
	}
	shown := map[string]int{}
	for _, rate := range page.Data {
		if number, is := numberOf(rate.Buy); is && rate.SourceID == "manual" {
			shown[rate.InstitutionID] = number
		}
	}
	for i, q := range s.ledger.quotes {
		s.facts++
		if number := shown[q.institution]; number < before.rates[i] || number > q.asked {
			s.fault("%s is %s in the backup; %s was acknowledged before, %s asked for at its end (%d acknowledged)",
				q.institution, valueOf(number), valueOf(before.rates[i]), valueOf(q.asked), after.rates[i])
		}
	}
}

// String is what a figure says of it.
func (s *siege) String() string {
	return fmt.Sprintf("%d backups under load (%d with a snapshot), %d restored and %d facts held against the ledger, %d wrong; "+
		"%d nodes killed under a backup and %d commands killed, of which %d had made a whole file, %d none",
		s.cycles, s.snapshot, s.restored, s.facts, len(s.wrong), s.cutOff, s.felled, s.survived, s.cutOff+s.felled-s.survived)
}

// TestFaultsBackup_UnderLoadWithKills backs a node up while it is asked and changed, its log snapshotted and dropped, and the node
// or the command is killed. Every file under a final name restores to a node that knows all that was acknowledged before.
func TestFaultsBackup_UnderLoadWithKills(t *testing.T) {
	s := newSiege(t, overlaid(t, "hurried", hurried(t)))
	for number := 0; s.restored < backupsWanted && number < 2*backupsWanted && len(s.wrong) == 0; number++ {
		s.assault(number)
		if (number+1)%10 == 0 {
			progress(t, "%v", s)
		}
	}
	s.finish()
	s.ledger.report(t)
	for _, words := range s.wrong {
		t.Error(words)
	}
	if s.restored < backupsWanted || s.snapshot == 0 || s.facts == 0 || s.survived == s.cutOff+s.felled {
		t.Errorf("something was never done: %v", s)
	}
	figure(t, "%v", s)
}

// TestFaultsBackup_Control plants a backup that is whole and old: it ends with the last segment but one.
func TestFaultsBackup_Control(t *testing.T) {
	texts := hurried(t)
	texts["wal/backup.go"] = replaced(t, "wal/backup.go", "c := contentsOf(l.segments, l.snapshots, l.next)", `segments, end := l.segments, l.next
	kept := slices.Clone(l.snapshots)
	if n := len(segments); n > 1 {
		segments, end = segments[:n-1], segments[n-1].start
		kept = slices.DeleteFunc(kept, func(s snapshot) bool { return s.sequence >= end.sequence })
	}
	c := contentsOf(segments, kept, end)`)
	s := newSiege(t, overlaid(t, "late", texts))
	for number := 0; number < backupsWanted && len(s.wrong) == 0; number++ {
		s.assault(5 * number) // nothing is killed in the middle
	}
	figure(t, "control: a backup that leaves out the newest segment is caught after %d backups: %.120s", s.cycles, strings.Join(s.wrong, "; "))
	if len(s.wrong) == 0 {
		t.Error("a backup that is too old is taken for a good one")
	}
}

// tinyDisk is a file system in memory.
func tinyDisk(t *testing.T, size string) string {
	t.Helper()
	place := t.TempDir()
	if err := unix.Mount("tmpfs", place, "tmpfs", 0, "size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(place, unix.MNT_DETACH) })
	return place
}

// TestFaultsBackup_FullDisk gives the backup, and then the restored directory, disks of growing size: while it is too small the
// command ends with code 73 and nothing is left, and the node is as before.
func TestFaultsBackup_FullDisk(t *testing.T) {
	needRoot(t)
	data, good := t.TempDir()+"/data", t.TempDir()+"/good.tar.zst"
	prepare(t, data, 2000)
	n := start(t, data)
	s := &siege{storm: &storm{t: t, program: program(t)}}
	if said, err := s.command("backup", "--data", data, "--to", good).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	full, made := map[string]int{}, map[string]int{}
	for _, size := range []string{"8k", "16k", "32k", "64k", "128k", "256k", "512k", "1m", "2m", "4m"} {
		place := tinyDisk(t, size)
		for name, args := range map[string][]string{
			"backup": {"backup", "--data", data, "--to", place + "/b"}, "restore": {"restore", "--from", good, "--data", place + "/new"},
		} {
			command := s.command(args...)
			said, err := command.CombinedOutput()
			left, listed := os.ReadDir(place)
			switch code := command.ProcessState.ExitCode(); {
			case code == 0:
				made[name]++
				if err := errors.Join(os.RemoveAll(place+"/b"), os.RemoveAll(place+"/new")); err != nil {
					t.Fatal(err)
				}
			case code == 73 && listed == nil && len(left) == 0:
				full[name]++
			default:
				t.Errorf("%s on %s: %v, left: %v, %v\n%s", name, size, err, left, listed, said)
			}
		}
	}
	n.mustGet("/v1/institutions")
	n.stop()
	figure(t, "a full disk: %v ended with 73 and left nothing, %v fitted", full, made)
	if full["backup"] == 0 || full["restore"] == 0 || made["backup"] == 0 || made["restore"] == 0 {
		t.Error("no disk was too small, or none large enough")
	}
}
