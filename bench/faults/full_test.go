//go:build faults

package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// W7: how soon a node must see that its disk is full, and that it is not any more.
const (
	fullSeenMax = time.Second
	fullGoneMax = 5 * time.Second
	fullRounds  = 100
	readsAPhase = 40
	// roundsAHealth is in how many rounds one waits until /readyz calls the disk well: it takes its seconds to be sure.
	roundsAHealth = 8
	reservedBytes = 64 << 20 // that the program keeps free
	// tailSlack keeps a few slow moments of a busy machine from deciding over a ratio of two small times.
	tailSlack = 500 * time.Microsecond
)

// quotaless lets a caller read as often as it likes, and has every request of a key written to the log.
func quotaless() []string {
	return []string{"--quota-day", "1000000", "--quota-minute", "60000", "--lease", "1"}
}

// roomyDisk is a memory file system that is filled and freed while a node runs on it.
type roomyDisk struct {
	t  *testing.T
	at string
}

func newRoomyDisk(t *testing.T) *roomyDisk {
	t.Helper()
	d := &roomyDisk{t, filepath.Join(t.TempDir(), "disk")}
	if err := os.Mkdir(d.at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", d.at, "tmpfs", 0, "size=256m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(d.at, unix.MNT_DETACH) }) // the mounts are the test's own
	return d
}

func (d *roomyDisk) free() int64 {
	d.t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(d.at, &s); err != nil {
		d.t.Fatal(err)
	}
	return int64(s.Bavail) * s.Bsize
}

// fit makes the disk so large that so many bytes are free beyond what the program keeps in reserve.
func (d *roomyDisk) fit(beyond int64) {
	d.t.Helper()
	const large = 256 << 20
	used := large - d.free()
	if err := unix.Mount("none", d.at, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", used+reservedBytes+beyond)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *roomyDisk) filler() string { return filepath.Join(d.at, "filler") }

// fill leaves so many bytes.
func (d *roomyDisk) fill(left int64) {
	d.t.Helper()
	file, err := os.Create(d.filler())
	if err != nil {
		d.t.Fatal(err)
	}
	defer file.Close()
	if err := unix.Fallocate(int(file.Fd()), 0, 0, max(1, d.free()-left)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *roomyDisk) relieve() {
	d.t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.t.Fatal(err)
	}
}

// fullRun is a node that lives through disks that fill and are freed.
type fullRun struct {
	t       *testing.T
	disk    *roomyDisk
	office  *postOffice
	n       *node
	c       *caller
	session string
	key     string // of an account of its own
	keys    []realKey
	maybe   bool

	normal, full  []time.Duration // of reads
	seen, gone    time.Duration   // the slowest
	readySeen     time.Duration
	readyGone     time.Duration
	refused       int
	stops, kills  int
	restartedFull int
}

func (r *fullRun) begin() {
	r.n = start(r.t, filepath.Join(r.disk.at, "data"), append(r.office.args(), quotaless()...)...)
}

// change makes a key and revokes it; it returns the first answer that is not good.
func (r *fullRun) change() (answer, error) {
	made, got, err := createKey(r.c, r.n.url, r.session, "full")
	if err != nil || !got.good() {
		r.maybe = r.maybe || err != nil
		return got, err
	}
	r.keys = append(r.keys, realKey{id: made.ID, asked: true})
	got, err = revokeKey(r.c, r.n.url, r.session, made.ID)
	r.keys[len(r.keys)-1].revoked = err == nil && got.good()
	return got, err
}

func (r *fullRun) best(key string) (answer, error) {
	return r.c.do(http.MethodGet, r.n.url+"/v1/rates/best?currency=USD&operation=buy", key, nil)
}

// reads times reads without a key.
func (r *fullRun) reads(into *[]time.Duration) error {
	for range readsAPhase {
		began := time.Now()
		got, err := r.best("")
		if err != nil || got.status != http.StatusOK {
			return fmt.Errorf("a read without a key: status %d, %w", got.status, err)
		}
		*into = append(*into, time.Since(began))
	}
	return nil
}

// within tries until it is true, and returns how long that took.
func within(limit time.Duration, what string, try func() (bool, error)) (time.Duration, error) {
	began := time.Now()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		done, err := try()
		took := time.Since(began)
		if done && took <= limit {
			return took, nil
		}
		if took > limit {
			return took, errors.Join(fmt.Errorf("%s not within %s", what, limit), err)
		}
		<-ticker.C
	}
}

// isReadOnly tells the refusal of a node whose disk is full.
func isReadOnly(got answer, err error) (bool, error) {
	if err != nil || got.status != http.StatusServiceUnavailable || got.code != "read_only" || got.header.Get("Retry-After") == "" {
		return false, fmt.Errorf("status %d, %s, Retry-After %q, %w", got.status, got.code, got.header.Get("Retry-After"), err)
	}
	return true, nil
}

func (r *fullRun) says(state string) func() (bool, error) {
	return func() (bool, error) {
		got, err := r.c.do(http.MethodGet, r.n.url+"/readyz", "", nil)
		var ready struct {
			Conditions []struct{ Name, State string }
		}
		if err = errors.Join(err, json.Unmarshal(got.body, &ready)); err != nil {
			return false, err
		}
		for _, condition := range ready.Conditions {
			if condition.Name == "disk" {
				return condition.State == state, fmt.Errorf("/readyz says that the disk is %q", condition.State)
			}
		}
		return false, errors.New("/readyz does not speak of the disk")
	}
}

// whileFull is what must hold on a full disk.
func (r *fullRun) whileFull() error {
	took, err := within(fullSeenMax, "read-only", func() (bool, error) { return isReadOnly(r.change()) })
	if err != nil {
		return err
	}
	r.seen = max(r.seen, took)
	if took, err = within(fullSeenMax, "/readyz read_only", r.says("read_only")); err != nil {
		return err
	}
	r.readySeen = max(r.readySeen, took)
	if ok, err := isReadOnly(r.best(r.key)); !ok {
		return fmt.Errorf("a request with a key: %w", err)
	}
	r.refused += 2
	return r.reads(&r.full)
}

// round fills the disk, looks, frees it and looks again.
func (r *fullRun) round(number int) error {
	for _, try := range []func() (answer, error){r.change, func() (answer, error) { return r.best(r.key) }} {
		if got, err := try(); err != nil || !got.good() {
			return fmt.Errorf("before the disk is full: status %d %s, %w", got.status, got.code, err)
		}
	}
	if err := r.reads(&r.normal); err != nil {
		return err
	}
	r.disk.fill([]int64{0, 4 << 10, 1 << 20, reservedBytes - 1}[number%4])
	if err := r.whileFull(); err != nil {
		return err
	}
	if err := r.restart(number); err != nil {
		return err
	}
	r.disk.relieve()
	took, err := within(fullGoneMax, "changes", func() (bool, error) {
		got, err := r.change()
		return err == nil && got.good(), fmt.Errorf("status %d %s, %w", got.status, got.code, err)
	})
	if err != nil {
		return err
	}
	r.gone = max(r.gone, took)
	if number%roundsAHealth == 0 {
		if took, err = within(fullGoneMax, "/readyz ok", r.says("ok")); err != nil {
			return err
		}
		r.readyGone = max(r.readyGone, took)
	}
	return compareKeys(r.c, r.n.url, r.session, r.keys, r.maybe)
}

// restart stops or kills the node of some rounds while the disk is full.
func (r *fullRun) restart(number int) error {
	switch number % 5 {
	case 1:
		r.stops++
		r.n.send(syscall.SIGTERM)
		if code := r.n.end(); code != 0 {
			return fmt.Errorf("after SIGTERM on a full disk it ends with %d: %s", code, r.n.tail(3))
		}
	case 3:
		r.kills++
		r.n.kill()
	default:
		return nil
	}
	r.begin()
	r.restartedFull++
	if err := compareKeys(r.c, r.n.url, r.session, r.keys, r.maybe); err != nil {
		return fmt.Errorf("started on a full disk: %w", err)
	}
	if err := r.whileFull(); err != nil {
		return fmt.Errorf("started on a full disk: %w", err)
	}
	return nil
}

func p99(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)*99/100]
}

// TestFaultsW7_FullAndFreed fills the disk under a node, down to the last byte too, and frees it again: it is read-only within
// a second and says so, reads go on as before, it starts and stops meanwhile, is back within five seconds, and loses nothing.
func TestFaultsW7_FullAndFreed(t *testing.T) {
	privateMounts(t)
	r := &fullRun{t: t, office: newPostOffice(t), c: newCaller("")}
	defer r.c.close()
	beyond := []int64{256 << 10, 512 << 10, 1 << 20, 4 << 20} // the node wants 64 KiB more before it calls a disk well again
	rounds := 0
	for i, size := range beyond {
		r.disk, r.keys, r.maybe = newRoomyDisk(t), nil, false
		r.key = prepare(t, filepath.Join(r.disk.at, "data"), 1)[0]
		r.begin()
		var err error
		if r.session, err = r.office.session(r.c, r.n.url, fmt.Sprintf("ana-%d@example.com", i)); err != nil {
			t.Fatal(err)
		}
		r.disk.fit(size)
		for number := range fullRounds / len(beyond) {
			if err := r.round(number); err != nil {
				t.Fatalf("%d KiB beyond the reserve, round %d: %v", size>>10, number, err)
			}
			rounds++
		}
		r.n.stop()
		progress(t, "%d rounds", rounds)
	}
	normal, full := p99(r.normal), p99(r.full)
	figure(t, "%d times full and freed: read-only after at most %s, /readyz says so after %s; back after %s and %s; %d refusals; "+
		"%d SIGTERM, %d SIGKILL and %d starts on a full disk; nothing lost; p99 of %d reads %s, on a full disk %s",
		rounds, r.seen.Round(time.Millisecond), r.readySeen.Round(time.Millisecond), r.gone.Round(time.Millisecond), r.readyGone.Round(time.Millisecond),
		r.refused, r.stops, r.kills, r.restartedFull, len(r.full), normal.Round(time.Microsecond), full.Round(time.Microsecond))
	if full > 2*normal+tailSlack {
		t.Errorf("p99 of reads is %s on a full disk, %s otherwise", full, normal)
	}
}

// TestFaultsW7_ControlPoison plants a log without its reserve: a full disk then stops the node, which the test must see.
func TestFaultsW7_ControlPoison(t *testing.T) {
	blind := mutant(t, "blind", "wal/disk.go", "	if free-need < reserve {", "	if free-need < -reserve*1000 {")
	privateMounts(t)
	r := &fullRun{t: t, disk: newRoomyDisk(t), office: newPostOffice(t), c: newCaller("")}
	defer r.c.close()
	dir := filepath.Join(r.disk.at, "data")
	r.key = prepare(t, dir, 1)[0]
	r.n = launch(t, command{program: blind, args: serveArgs(dir, append(r.office.args(), quotaless()...)...)}).ready()
	var err error
	if r.session, err = r.office.session(r.c, r.n.url, "ana@example.com"); err != nil {
		t.Fatal(err)
	}
	r.disk.fit(64 << 10)
	r.disk.fill(0)
	for range 200 {
		if got, err := r.change(); err != nil || !got.good() {
			break
		}
	}
	_, err = within(fullSeenMax, "the end", func() (bool, error) { return r.n.over(), nil })
	figure(t, "control, a log that does not look at the space: it is not read-only, it ends: %v", r.n.cmd.ProcessState)
	if err != nil || r.n.end() != exitFailStop {
		t.Errorf("%v; the disk does not get full", err)
	}
}

// TestFaultsW7_EachWriteFindsNoSpace has the K-th write find no space, K = 1 to 60, although there had been some when the log
// looked: that is a failed write like any other, and what was acknowledged is there at the next start.
func TestFaultsW7_EachWriteFindsNoSpace(t *testing.T) {
	need(t, "strace", "strace")
	w := &failSweep{newSweep(t, scenario{name: "ENOSPC", kind: lifeHonest, steps: 60}), "ENOSPC"}
	w.run([]string{"write", "pwrite64"}, 60)
	for i, complaint := range w.bad {
		if i < 10 {
			t.Error(complaint)
		}
	}
	figure(t, "ENOSPC injected at %d writes (%v), %d bad", w.fired, w.perCall, len(w.bad))
	if w.fired < 110 {
		t.Errorf("%d writes failed", w.fired)
	}
}
