//go:build faults

package cmd

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

const stepsDayMax = 40 // daily quota of these tests

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

func (s *clockTest) start() *nodeProcess {
	args := nodeArgs(s.data, "--quota-day", fmt.Sprint(stepsDayMax), "--quota-minute", "60000") // so that the headers show the daily limit
	return launch(s.t, nodeCommand{program: s.program, args: args, env: s.clock.env()}).ready()
}

// stepRunning steps the clock of a running node between requests. It returns how many requests it sent. The error is a
// broken promise.
func stepRunning(t *testing.T, program string, by time.Duration) (int, error) {
	x := newClockTest(t, program)
	n, c := x.start(), newHTTPClient("")
	defer c.close()
	for round, step := range []time.Duration{0, by, -by, by} {
		x.clock.step(step)
		for range stepsDayMax / 2 { // with the rounds before, more than a day has
			if err := x.quota.ask(c, n.URL, x.key); err != nil {
				return x.quota.asked, fmt.Errorf("round %d: %w", round, err)
			}
		}
	}
	n.stop()
	return x.quota.asked, nil
}

// TestFaultsQ4_StepsWhileItRuns steps the clocks of ten nodes there, back and there again.
func TestFaultsQ4_StepsWhileItRuns(t *testing.T) {
	t.Parallel()
	skewed := buildWith(t, "skewed", skewedTime(t)...)
	var counting sync.Mutex
	asked := 0
	inParallel(len(clockSteps()), clockSteps(), func(_ int, by time.Duration) {
		requests, err := stepRunning(t, skewed, by)
		if err != nil {
			t.Errorf("step of %s: %v", by, err)
		}
		counting.Lock()
		defer counting.Unlock()
		asked += requests
	})
	figure(t, "%d steps on running nodes, each taken back and done again: %d requests, 0 over-granted, no window back", len(clockSteps()), asked)
}

// TestFaultsQ4_ControlSteps plants a node that charges an earlier day after its clock was set back.
func TestFaultsQ4_ControlSteps(t *testing.T) {
	t.Parallel()
	const quota = "engine/account/quota.go"
	charges := append(skewedTime(t), plant{quota, "return max(day, a.days.day)", "return day"},
		plant{quota, "if day > d.logged.Day {", "if day != d.logged.Day {"}, plant{quota, "if day > d.day {", "if day != d.day {"})
	_, err := stepRunning(t, buildWith(t, "skewed-back", charges...), 25*time.Hour)
	if err == nil {
		t.Error("a planted bug was not found")
	}
	figure(t, "control, an earlier day is charged again: %v", err)
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

// skewedTime plants a wall clock that can be set in time/time.go of the toolchain.
func skewedTime(t *testing.T) []plant {
	t.Helper()
	output, err := exec.Command("go", "env", "GOROOT").Output()
	noError(t, err)
	path := filepath.Join(strings.TrimSpace(string(output)), "src", "time", "time.go")
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	return []plant{
		{path, "\t_ \"unsafe\" // for go:linkname\n", "\t\"syscall\"\n\t\"unsafe\"\n"},
		{path, now, skewedNow + "\n" + now + "\tsec += *skewPage\n"},
	}
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
