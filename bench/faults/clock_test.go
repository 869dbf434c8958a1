//go:build faults

package faults

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	stepsDayMax = 40 // daily quota of these tests
	// suspectMax is how long a step may delay a new day, including the poll interval and rounding to a second.
	suspectMax = 60*time.Second + 2*time.Second
	// askEvery is so long that the daily quota outlasts the time for which a step is suspect.
	askEvery = 250 * time.Millisecond
)

// clockSteps are the steps of goal Q4.
func clockSteps() []time.Duration {
	var steps []time.Duration
	for _, step := range []time.Duration{time.Second, 61 * time.Second, time.Hour, 25 * time.Hour, 40 * 24 * time.Hour} {
		steps = append(steps, step, -step)
	}
	return steps
}

// quotaLog is what the answers to one key say: how many requests were admitted in each daily window, by its end.
type quotaLog struct {
	admitted map[int64]int
	newest   int64
	asked    int
}

// ask sends one request. The error is a broken promise.
func (b *quotaLog) ask(c *httpClient, url, key string) error {
	got, err := c.do(http.MethodGet, url+"/v1/rates/best?currency=USD&operation=buy", key, nil)
	if err != nil {
		return err
	}
	limit, ok := got.rateLimit()
	if !ok || got.status != http.StatusOK && got.status != http.StatusTooManyRequests {
		return fmt.Errorf("status %d, headers %v: %s", got.status, got.header, got.body)
	}
	b.asked++
	if limit.reset < b.newest {
		return fmt.Errorf("the window went back from %s to %s", time.Unix(b.newest, 0).UTC(), time.Unix(limit.reset, 0).UTC())
	}
	b.newest = limit.reset
	if got.status == http.StatusOK {
		if b.admitted[limit.reset]++; b.admitted[limit.reset] > stepsDayMax {
			return fmt.Errorf("%d admitted in the window that ends at %s", b.admitted[limit.reset], time.Unix(limit.reset, 0).UTC())
		}
	}
	return nil
}

// clockTest is a node with one key, whose clock the test sets.
type clockTest struct {
	t       *testing.T
	program string
	clock   *wallClock
	data    string
	key     string
	quota   quotaLog
}

func newClockTest(t *testing.T, program string) *clockTest {
	t.Helper()
	s := &clockTest{t: t, program: program, clock: newWallClock(t), data: t.TempDir() + "/data", quota: quotaLog{admitted: map[int64]int{}}}
	s.clock.set(time.Now().UTC().Truncate(24 * time.Hour).Add(40 * time.Hour)) // noon tomorrow: after all data, and no day ends during the test
	s.key = writeDataDir(t, s.data, 1)[0]
	return s
}

func (s *clockTest) start() *node {
	args := serveArgs(s.data, "--quota-day", fmt.Sprint(stepsDayMax), "--quota-minute", "60000") // so that the headers show the daily limit
	return launch(s.t, command{program: s.program, args: args, env: s.clock.env()}).ready()
}

// clockSuspect reports whether a node suspects its clock.
func clockSuspect(c *httpClient, n *node) bool {
	return sampleHealth(c, n.URL+"/readyz").states["clock"] == "clock_suspect"
}

// stepResult is the effect of a clock step on a running node.
type stepResult struct {
	shown, gone time.Duration // of clock_suspect after the step; 0 = never
	rolled      time.Duration // until the window changed; 0 = it did not
	asked       int
}

// stepRunning steps the clock of a running node and sends requests for a while. The error is a broken promise.
func stepRunning(t *testing.T, program string, by, lasts time.Duration) (s stepResult, err error) {
	x := newClockTest(t, program)
	n, c := x.start(), newHTTPClient("")
	defer c.close()
	for range stepsDayMax / 4 {
		if err := x.quota.ask(c, n.URL, x.key); err != nil {
			return s, err
		}
	}
	before := x.quota.newest
	x.clock.step(by)
	began := time.Now()
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for ; time.Since(began) < lasts; <-ticker.C {
		if err := x.quota.ask(c, n.URL, x.key); err != nil {
			return s, fmt.Errorf("%s after the step: %w", time.Since(began), err)
		}
		passed := time.Since(began)
		if x.quota.newest != before && s.rolled == 0 {
			s.rolled = passed
		}
		switch is := clockSuspect(c, n); {
		case is && s.shown == 0:
			s.shown = passed
		case !is && s.shown > 0 && s.gone == 0:
			s.gone = passed
		case is && s.gone > 0:
			return s, fmt.Errorf("clock_suspect is back after %s", passed)
		}
		if s.rolled > 0 && s.rolled < 59*time.Second {
			return s, fmt.Errorf("a step of %s opened another day after %s", by, s.rolled)
		}
	}
	s.asked = x.quota.asked
	n.stop()
	return s, s.check(by, lasts)
}

// check compares the times with goal Q4.
func (s stepResult) check(by, lasts time.Duration) error {
	suspicious := by.Abs() > 5*time.Second
	switch whole := lasts > suspectMax; {
	case suspicious != (s.shown > 0), s.shown > time.Second+askEvery:
		return fmt.Errorf("a step of %s: clock_suspect after %s", by, s.shown)
	case suspicious && whole && (s.gone == 0 || s.gone > suspectMax+clearedWithin):
		return fmt.Errorf("a step of %s is suspect until %s", by, s.gone)
	case whole && (by >= 25*time.Hour) != (s.rolled > 0), s.rolled > suspectMax:
		return fmt.Errorf("a step of %s: the day changed after %s", by, s.rolled)
	}
	return nil
}

// TestFaultsQ4_StepsWhileItRuns steps the clocks of ten nodes, one step each, and sends requests for longer than a
// step is suspect.
func TestFaultsQ4_StepsWhileItRuns(t *testing.T) {
	t.Parallel()
	skewed := buildOverlay(t, "skewed", skewedTime(t))
	var counting sync.Mutex
	asked, fired := 0, 0
	var slowest, longest time.Duration
	inParallel(len(clockSteps()), clockSteps(), func(_ int, by time.Duration) {
		s, err := stepRunning(t, skewed, by, suspectMax+clearedWithin)
		if err != nil {
			t.Errorf("step of %s: %v", by, err)
		}
		counting.Lock()
		defer counting.Unlock()
		asked += s.asked
		if s.shown > 0 {
			fired++
		}
		slowest, longest = max(slowest, s.shown), max(longest, s.rolled)
	})
	if fired == 0 {
		t.Error("no step was noticed")
	}
	figure(t, "%d steps on running nodes, %d of them suspect, shown within %s; %d requests, 0 over-granted, no window back, a day delayed by at most %s",
		len(clockSteps()), fired, slowest.Round(time.Millisecond), asked, longest.Round(time.Millisecond))
}

// TestFaultsQ4_ControlSteps plants a node that believes every step at once.
func TestFaultsQ4_ControlSteps(t *testing.T) {
	t.Parallel()
	const file = "actors/internal/accounts/clock.go"
	texts := skewedTime(t)
	texts[file] = replaceText(t, file, "if c.stepAt(moment).Abs() > clockStepMin {", "if c.stepAt(moment).Abs() > 1<<62 {")
	_, err := stepRunning(t, buildOverlay(t, "skewed-believes", texts), 25*time.Hour, 3*time.Second)
	if err == nil {
		t.Error("a planted bug was not found")
	}
	figure(t, "control, a step is believed: %v", err)
}

// TestFaultsQ4_StepsBetweenRestarts steps the clock while no node runs, after kills and orderly stops.
func TestFaultsQ4_StepsBetweenRestarts(t *testing.T) {
	t.Parallel()
	x := newClockTest(t, buildOverlay(t, "skewed", skewedTime(t)))
	c := newHTTPClient("")
	defer c.close()
	suspected, starts := 0, 0
	for round := range 2 {
		for i, by := range clockSteps() {
			n := x.start()
			starts++
			for range stepsDayMax / 8 {
				if err := x.quota.ask(c, n.URL, x.key); err != nil {
					t.Fatalf("round %d, before the step of %s: %v", round, by, err)
				}
			}
			if clockSuspect(c, n) {
				suspected++
			}
			if (i+round)%2 == 0 {
				n.kill()
			} else {
				n.stop()
			}
			x.clock.step(by)
		}
	}
	if suspected == 0 {
		t.Error("no clock that was set back was noticed at a start")
	}
	figure(t, "%d starts with a step before each, %d of them suspect: %d requests in %d windows of a day, 0 over-granted, no window back",
		starts, suspected, x.quota.asked, len(x.quota.admitted))
}

// clockVariable names the file with the offset of the wall clock, for programs with skewedTime.
const clockVariable = "FAULTS_CLOCK"

// skewedNow is inserted into time.Now: it adds an offset in whole seconds from a page shared with the test. The
// monotonic clock is unchanged.
const skewedNow = `
var skewPage = mapSkew()

// mapSkew shares the page; without one the clock is the real one.
func mapSkew() *int64 {
	name, found := syscall.Getenv("` + clockVariable + `")
	if !found {
		return new(int64)
	}
	fd, err := syscall.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		panic(err)
	}
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}
`

// skewedTime is time/time.go of the toolchain with a wall clock that can be set, by its path.
func skewedTime(t *testing.T) map[string]string {
	t.Helper()
	output, err := exec.Command("go", "env", "GOROOT").Output()
	noError(t, err)
	path := filepath.Join(strings.TrimSpace(string(output)), "src", "time", "time.go")
	return map[string]string{path: replaceText(t, path,
		"\t_ \"unsafe\" // for go:linkname\n", "\t\"syscall\"\n\t\"unsafe\"\n",
		"func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n",
		skewedNow+"\nfunc Now() Time {\n\tsec, nsec, mono := runtimeNow()\n\tsec += *skewPage\n")}
}

// wallClock is the wall clock of nodes built with skewedTime.
type wallClock struct {
	file   string
	page   []byte
	offset time.Duration
}

// newWallClock makes a clock that is right until it is set.
func newWallClock(t *testing.T) *wallClock {
	t.Helper()
	w := &wallClock{file: filepath.Join(t.TempDir(), "clock")}
	noError(t, os.WriteFile(w.file, make([]byte, 8), 0o600))
	file, err := os.OpenFile(w.file, os.O_RDWR, 0)
	noError(t, err)
	defer file.Close()
	w.page, err = unix.Mmap(int(file.Fd()), 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	noError(t, err)
	t.Cleanup(func() { _ = unix.Munmap(w.page) })
	return w
}

// env makes a node use this clock. nil is the real clock.
func (w *wallClock) env() []string {
	if w == nil {
		return nil
	}
	return []string{clockVariable + "=" + w.file}
}

// step moves the clock by whole seconds.
func (w *wallClock) step(by time.Duration) {
	w.offset += by
	binary.NativeEndian.PutUint64(w.page, uint64(int64(w.offset/time.Second)))
}

// set sets the clock, to the second.
func (w *wallClock) set(at time.Time) { w.step(time.Until(at).Truncate(time.Second) - w.offset) }
