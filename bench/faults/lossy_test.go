//go:build faults

package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// syncMax is as long as a slow disk takes: long enough that power goes while a batch is written and not yet synced.
const syncMax = 4 * time.Millisecond

// needFUSE skips a test where user programs can be no file systems.
func needFUSE(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("NEEDS /dev/fuse: modprobe fuse")
	}
}

// powerCut is how a node on a lossy disk loses power. Now and then it stands first; else it goes on for a moment on a disk that
// fails, and what it answers then may not be a promise.
func (l *lossyDisk) powerCut(s *storm) crash {
	chance := rand.New(rand.NewPCG(s.seed, 2))
	return func(n *node) {
		if chance.IntN(4) == 0 {
			n.freeze()
		}
		s.ledger.end()
		l.cut()
		n.kill()
		l.again()
	}
}

// String is what a figure says of it.
func (l *lossyDisk) String() string {
	return fmt.Sprintf("%d syncs; %d files and directories were not synced at a cut, %d files were kept in parts", l.syncs, l.unkept, l.inParts)
}

// TestFaultsW2_PowerCutLossy cuts the power under load on a disk that keeps any part of what was not synced (W2, Q2, S7).
func TestFaultsW2_PowerCutLossy(t *testing.T) {
	t.Parallel()
	needFUSE(t)
	if !apart(t) {
		return
	}
	l := newLossyDisk(t, uint64(time.Now().UnixNano()), syncMax)
	s := newStorm(t, volumeTerms(), l.place, "")
	l.settle()
	s.rage(countFrom(t, "W2_CUTS", 200), l.powerCut(s))
	figure(t, "power cut, lossy disk: %v; %v", s, l)
	if l.unkept == 0 || l.inParts == 0 || s.torn() == 0 {
		t.Errorf("nothing was torn: %v, %d torn tails", l, s.torn())
	}

	l = newLossyDisk(t, uint64(time.Now().UnixNano()), syncMax)
	s = newStorm(t, volumeTerms(), l.place, unsynced(t))
	l.settle()
	s.catch(l.powerCut(s), lost, granted)
	figure(t, "control, lossy disk without sync: %s", s.caught())
}

// TestFaultsW2_FreshDirectory cuts the power of a node that has just made its data directory: names count as well as bytes.
func TestFaultsW2_FreshDirectory(t *testing.T) {
	needFUSE(t)
	if !apart(t) {
		return
	}
	cycles := countFrom(t, "W2_CUTS", 40)
	seed := newSeed(t)
	kept, acknowledged := beginAnew(t, "", seed, cycles)
	if lost := acknowledged - kept; lost != 0 || acknowledged == 0 {
		t.Errorf("%d of %d rates are lost", lost, acknowledged)
	}
	unnamed := mutant(t, "unsynced-names", "wal/disk.go", "syncDir:  syncDir,", "syncDir:  func(string) error { return nil },")
	keptThen, acknowledgedThen := beginAnew(t, unnamed, seed, max(10, cycles/2))
	if keptThen >= acknowledgedThen {
		t.Errorf("without a sync of the directory %d of %d rates are there: the control is not caught", keptThen, acknowledgedThen)
	}
	figure(t, "power cut of %d fresh directories: %d rates acknowledged, %d lost; control without directory syncs: %d of %d lost",
		cycles, acknowledged, acknowledged-kept, acknowledgedThen-keptThen, acknowledgedThen)
}

// beginAnew lets nodes make their data directories, publish for a while and lose power, and counts the rates that were
// acknowledged and that are there after the next start.
func beginAnew(t *testing.T, program string, seed uint64, cycles int) (kept, all int) {
	t.Helper()
	chance := rand.New(rand.NewPCG(seed, 3))
	l := newLossyDisk(t, seed, syncMax)
	for cycle := range cycles {
		data := filepath.Join(l.place, fmt.Sprintf("data-%d", cycle))
		args := serveArgs(data, "--admin-socket", filepath.Join(t.TempDir(), "admin.sock"))
		n := launch(t, command{program: program, args: args}).ready()
		book := newLedger(volumeTerms())
		book.publishing(1)
		at := &member{number: 1, url: n.url, admin: n.admin()}
		for range chance.IntN(8) {
			book.set(at, book.series[0])
		}
		at.admin.close()
		l.cut()
		n.kill()
		l.again()
		made := book.count("rates", acknowledged)
		all += made
		n = launch(t, command{program: program, args: args})
		if n.answers() {
			c := newCaller("")
			at.url = n.url
			book.checkRates(c, at, "/v1/rates?currency=USD&limit=200")
			if c.close(); book.broken() == 0 { // a node without any rate answers 503
				kept += made
			}
		}
		n.kill()
	}
	return kept, all
}
