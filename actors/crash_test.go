package actors

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// crashChildDir, when set, makes the test binary a node that is going to be killed.
const crashChildDir = "TASARD_ACTORS_CRASH_CHILD"

const (
	killCycles   = 60
	childRecords = 64 // between snapshots, so that kills also meet snapshots and dropped segments
)

// childConfig is the node that is killed: small segments, frequent snapshots.
func childConfig(dir string) Config {
	return Config{
		Dir: dir, Clock: func() time.Time { return noon.AddDate(0, 0, 1) },
		Log: LogConfig{SegmentBytes: 4096}, SnapshotRecords: childRecords,
	}
}

// step is the instant of the n-th refresh: what a source said last tells how far it came.
func step(n int) time.Time { return noon.Add(time.Duration(n) * time.Millisecond) }

func stepOf(at time.Time) int { return int(at.Sub(noon) / time.Millisecond) }

// crashChild goes on from what it finds. It says what it found, then each number that was acknowledged
// ("a") and each that was served ("s"), until it is killed.
func crashChild(dir string) int {
	say := func(what string, n int) { _, _ = fmt.Fprintf(os.Stdout, "%s %d\n", what, n) } // one write: lines stay whole
	s, err := Open(childConfig(dir))
	if err != nil {
		say(strings.ReplaceAll(err.Error(), "\n", " "), -1)
		return 1
	}
	<-s.Ready()
	found := served(s)
	say("found", found)
	look := make(chan struct{}, 1)
	go func() {
		last := found
		for range look {
			for range 10 { // while the writer below is at work
				if now := served(s); now > last {
					last = now
					say("s", now)
				}
			}
		}
	}()
	for n := found + 1; ; n++ {
		select {
		case look <- struct{}{}:
		default:
		}
		if _, err := s.Observe([]engine.Refresh{
			saying("a", step(n), "USD", "57", fmt.Sprintf("60.%02d", n%100), "popular", "bhd"),
			saying("a", step(n), "EUR", "63", fmt.Sprintf("68.%02d", n%100), "popular"),
		}); err != nil {
			say(err.Error(), -1)
			return 1
		}
		say("a", n)
	}
}

// served is the number of the newest refresh that a caller can see.
func served(s *System) int {
	page, err := s.Rates(engine.RatesQuery{Filter: engine.Filter{Currency: "USD"}, Cut: engine.Cut{Limit: 1}})
	if err != nil || len(page.Items) == 0 {
		return 0
	}
	return stepOf(page.Items[0].LastCheckedAt)
}

// Nothing that was acknowledged or served before a kill is missing after it.
func TestKilledNodeLosesNothing(t *testing.T) {
	cycles := killCycles
	if raceDetector || testing.Short() {
		cycles /= 4
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(11, 13))
	acknowledged, seen, killed := 0, 0, 0
	for range cycles {
		found, lastAcknowledged, lastServed := killOnce(t, dir, 1+random.IntN(60))
		if found < acknowledged || found < seen {
			t.Fatalf("%d acknowledged, %d served, after the kill %d is there", acknowledged, seen, found)
		}
		acknowledged, seen = max(found, lastAcknowledged), max(found, lastServed)
		killed++
	}
	s := start(t, childConfig(dir))
	if last := served(s); last < acknowledged || last < seen {
		t.Errorf("%d acknowledged, %d served, at the end %d is there", acknowledged, seen, last)
	}
	t.Logf("%d kills, %d acknowledged, %d served, %d records, snapshot at %d",
		killed, acknowledged, seen, s.Recovery().Last, s.Recovery().SnapshotSequence)
	if acknowledged < cycles || s.Recovery().SnapshotSequence == 0 {
		t.Error("too little happened between the kills")
	}
}

// killOnce starts a node and kills it some acknowledgements after its start.
func killOnce(t *testing.T, dir string, after int) (found, acknowledged, seen int) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashChildDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		what, number, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		switch {
		case what == "found":
			found = n
		case what == "a" && err == nil:
			acknowledged = n
			if after--; after == 0 {
				_ = child.Process.Kill()
			}
		case what == "s" && err == nil:
			seen = max(seen, n)
		case after > 0:
			t.Errorf("the node says: %s", lines.Text())
		}
	}
	_ = child.Wait()
	return found, acknowledged, seen
}

// lostByCrash runs traffic over a journal, crashes it at a random moment, and counts the currencies of
// which something acknowledged or served is gone.
func lostByCrash(t *testing.T, journal *memoryJournal, random *rand.Rand) int {
	s := start(t, Config{Journal: journal, SnapshotRecords: 1 << 40})
	var told atomic.Int64
	var group sync.WaitGroup
	end := make(chan struct{})
	group.Add(2)
	go func() {
		defer group.Done()
		for n := 1; ; n++ {
			select {
			case <-end:
				return
			default:
			}
			if _, err := s.Observe([]engine.Refresh{saying("a", step(n), "USD", "57", fmt.Sprintf("60.%02d", n%100), "popular")}); err != nil {
				t.Error(err)
				return
			}
			raise(&told, n)
		}
	}()
	go func() {
		defer group.Done()
		for target := 1 + random.IntN(40); int(told.Load()) < target; {
			raise(&told, served(s))
		}
		close(end)
	}()
	<-end
	journal.mu.Lock() // nothing is kept from here on; what is told already goes on being told
	for range 100 {
		raise(&told, served(s))
	}
	known, left := int(told.Load()), journal.image()
	journal.mu.Unlock()
	group.Wait()
	if served(start(t, Config{Journal: left})) < known {
		return 1
	}
	return 0
}

func raise(to *atomic.Int64, n int) {
	for {
		old := to.Load()
		if int64(n) <= old || to.CompareAndSwap(old, int64(n)) {
			return
		}
	}
}

func TestNothingIsToldThatACrashTakesBack(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		if lostByCrash(t, &memoryJournal{}, random) > 0 {
			t.Fatal("something acknowledged or served was lost")
		}
	}
}

// The check sees a journal that acknowledges before it keeps.
func TestNothingIsToldThatACrashTakesBack_Control(t *testing.T) {
	random, lost := rand.New(rand.NewPCG(5, 6)), 0
	for range 20 {
		lost += lostByCrash(t, &memoryJournal{lazy: true}, random)
	}
	t.Logf("lost in %d of 20 crashes", lost)
	if lost == 0 {
		t.Error("a journal that acknowledges what it has not kept goes unseen")
	}
}
