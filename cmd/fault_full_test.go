//go:build faults

package cmd

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// Goal W7: how soon a node must detect that its disk is full, and that it no longer is.
const (
	fullSeenMax = time.Second
	fullGoneMax = 5 * time.Second
	fullRounds  = 100
	readsAPhase = 40
	// roundsAHealth is the interval of rounds that wait until /readyz reports a healthy disk, which takes some
	// seconds.
	roundsAHealth = 8
	reservedBytes = 64 << 20 // kept free by the program
	// latencySlack keeps a few slow moments of a busy machine from deciding over a ratio of two short times.
	latencySlack = 500 * time.Microsecond
)

// unlimitedReads are flags that allow any number of reads, and write every request of a key to the log.
func unlimitedReads() []string {
	return []string{"--quota-day", "1000000", "--quota-minute", "60000", "--lease", "1"}
}

// diskFullTest is a node whose disk fills up and is freed.
type diskFullTest struct {
	*keyWriter
	t    *testing.T
	disk string // in memory
	mail *mailServer
	n    *nodeProcess
	key  string // of another account

	normal, full []time.Duration          // of reads
	slowest      map[string]time.Duration // by what was awaited
	stops, kills int
}

// start starts a node on a new disk with so many bytes free beyond the program's reserve.
func (r *diskFullTest) start(program string, beyond int64) {
	r.t.Helper()
	r.disk, r.keyWriter = memoryDisk(r.t, "256m"), newKeyWriter(r.t, "")
	r.key = writeDataDir(r.t, filepath.Join(r.disk, "data"), 1)[0]
	r.begin(program)
	r.signIn(r.t, r.mail, r.n)
	const large = 256 << 20
	size := fmt.Sprintf("size=%d", large-freeBytes(r.t, r.disk)+reservedBytes+beyond)
	noError(r.t, unix.Mount("none", r.disk, "tmpfs", unix.MS_REMOUNT, size))
}

func (r *diskFullTest) begin(program string) {
	args := nodeArgs(filepath.Join(r.disk, "data"), append(r.mail.args(), unlimitedReads()...)...)
	r.n = launch(r.t, nodeCommand{program: program, args: args}).ready()
	r.at.url = r.n.URL
}

func (r *diskFullTest) best(key string) (answer, error) {
	return r.c.do(http.MethodGet, r.n.URL+"/v1/rates/best?currency=USD&operation=buy", key, nil)
}

// reads measures reads without a key.
func (r *diskFullTest) reads(into *[]time.Duration) error {
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

// within repeats try until it returns true, and returns how long that took.
func within(limit time.Duration, what string, try func() (bool, error)) (took time.Duration, err error) {
	began := time.Now()
	done := comesTrue(limit, func() (done bool) {
		done, err = try()
		took = time.Since(began)
		return done
	})
	if done && took <= limit {
		return took, nil
	}
	return took, errors.Join(fmt.Errorf("%s not within %s", what, limit), err)
}

// within waits for something that must happen soon, and records how long it took.
func (r *diskFullTest) within(limit time.Duration, what string, try func() (bool, error)) error {
	took, err := within(limit, what, try)
	r.slowest[what] = max(r.slowest[what], took.Round(time.Millisecond))
	return err
}

// isReadOnly reports the rejection by a node with a full disk.
func isReadOnly(got answer, err error) (bool, error) {
	if err != nil || got.status != http.StatusServiceUnavailable || got.code != "read_only" || got.header.Get("Retry-After") == "" {
		return false, fmt.Errorf("status %d, %s, Retry-After %q, %w", got.status, got.code, got.header.Get("Retry-After"), err)
	}
	return true, nil
}

func (r *diskFullTest) readyzSays(state string) func() (bool, error) {
	return func() (bool, error) {
		is := sampleHealth(r.c, r.n.URL+"/readyz").states["disk"]
		return is == state, fmt.Errorf("/readyz says that the disk is %q", is)
	}
}

// whileFull checks the promises on a full disk.
func (r *diskFullTest) whileFull() error {
	err := r.within(fullSeenMax, "read-only", func() (bool, error) { return isReadOnly(r.createAndRevoke(), nil) })
	if err == nil {
		err = r.within(fullSeenMax, "/readyz read_only", r.readyzSays("read_only"))
	}
	if err != nil {
		return err
	}
	if ok, err := isReadOnly(r.best(r.key)); !ok {
		return fmt.Errorf("a request with a key: %w", err)
	}
	return r.reads(&r.full)
}

// round fills the disk, checks, frees it and checks again.
func (r *diskFullTest) round(number int) error {
	changed := r.createAndRevoke()
	if got, err := r.best(r.key); err != nil || !got.good() || !changed.good() {
		return fmt.Errorf("before the disk is full: status %d %s, %w; of a change %d %s", got.status, got.code, err, changed.status, changed.code)
	}
	if err := r.reads(&r.normal); err != nil {
		return err
	}
	fill(r.t, r.disk, []int64{0, 4 << 10, 1 << 20, reservedBytes - 1}[number%4])
	err := r.whileFull()
	if err == nil {
		err = r.restart(number)
	}
	if err != nil {
		return err
	}
	freeSpace(r.t, r.disk)
	err = r.within(fullGoneMax, "changes", func() (bool, error) {
		got := r.createAndRevoke()
		return got.good(), fmt.Errorf("status %d %s", got.status, got.code)
	})
	if err == nil && number%roundsAHealth == 0 {
		err = r.within(fullGoneMax, "/readyz ok", r.readyzSays("ok"))
	}
	if err != nil {
		return err
	}
	return r.check(r.n)
}

// restart stops or kills the node in some rounds while the disk is full.
func (r *diskFullTest) restart(number int) error {
	switch number % 5 {
	case 1:
		r.stops++
		r.n.Send(syscall.SIGTERM)
		if code := r.n.AwaitExit(); code != 0 {
			return fmt.Errorf("after SIGTERM on a full disk it ends with %d: %s", code, r.n.Tail(3))
		}
	case 3:
		r.kills++
		r.n.kill()
	default:
		return nil
	}
	r.begin("")
	err := r.check(r.n)
	if err == nil {
		err = r.whileFull()
	}
	if err != nil {
		return fmt.Errorf("started on a full disk: %w", err)
	}
	return nil
}

func p99(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)*99/100]
}

// TestFaultsW7_FullAndFreed fills a node's disk, also to the last byte, and frees it again: the node is read-only
// within a second and shows it, reads go on, it starts and stops meanwhile, recovers within five seconds, and loses
// nothing.
func TestFaultsW7_FullAndFreed(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	r := &diskFullTest{t: t, mail: newPlainMailServer(t), slowest: map[string]time.Duration{}}
	beyond := []int64{256 << 10, 512 << 10, 1 << 20, 4 << 20} // the node requires 64 KiB more before it reports a healthy disk
	rounds := 0
	for _, size := range beyond {
		r.start("", size)
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
	figure(t, "%d times full and freed: waited at most %v; %d SIGTERM and %d SIGKILL on a full disk, each with a start; p99 of %d reads %s, on a full disk %s",
		rounds, r.slowest, r.stops, r.kills, len(r.full), normal.Round(time.Microsecond), full.Round(time.Microsecond))
	if full > 2*normal+latencySlack {
		t.Errorf("p99 of reads is %s on a full disk, %s otherwise", full, normal)
	}
}

// TestFaultsW7_ControlPoison plants a log without its reserve: a full disk stops the node, which the test must
// notice.
func TestFaultsW7_ControlPoison(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	blind := buildWith(t, "blind", plant{"wal/disk.go", "\tif free-need < reserve {", "\tif free-need < -reserve*1000 {"})
	r := &diskFullTest{t: t, mail: newPlainMailServer(t), slowest: map[string]time.Duration{}}
	r.start(blind, 64<<10)
	fill(t, r.disk, 0)
	r.l.end()
	for range 200 {
		if got := r.createAndRevoke(); !got.good() {
			break
		}
	}
	_, err := within(fullSeenMax, "the end", func() (bool, error) { return r.n.Exited(), nil })
	figure(t, "control, a log that does not look at the space: it is not read-only, it ends: %v", r.n.Cmd.ProcessState)
	if err != nil || r.n.AwaitExit() != exit.FailStop {
		t.Errorf("%v; the disk does not get full", err)
	}
}

const (
	// syncDelay is the additional duration of each sync (goal W12).
	syncDelay    = 200 * time.Millisecond
	slowAttempts = 3
	// pendingMax is how many changes of an account may wait while one is written (actors.Config.PendingWritesMax).
	pendingMax = 64
	// clientsAtOnce is how many clients change the same account at once.
	clientsAtOnce = 4 * pendingMax
)

// slowNode is a node with some system calls delayed or only traced by strace. With --seccomp-bpf strace stops no
// others.
type slowNode struct {
	*keyWriter
	n     *nodeProcess
	reads []time.Duration
}

func newSlowNode(t *testing.T, mail *mailServer, call string, delay time.Duration) *slowNode {
	t.Helper()
	need(t, "strace", "strace")
	dir := filepath.Join(memoryDir(t), "data")
	writeDataDir(t, dir, 1)
	prefix := []string{"strace", "-D", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=" + call}
	if delay > 0 {
		prefix = append(prefix, "-e", fmt.Sprintf("inject=%s:delay_enter=%d", call, delay.Microseconds()))
	}
	s := &slowNode{keyWriter: newKeyWriter(t, "")}
	s.n = launch(t, nodeCommand{wrapper: prefix, args: nodeArgs(dir, append(mail.args(), unlimitedReads()...)...)}).ready()
	s.signIn(t, mail, s.n)
	return s
}

// flood has many clients revoke one key at once, and counts the answers.
func (s *slowNode) flood() (answers map[string]int, slowest time.Duration) {
	var mu sync.Mutex
	var group sync.WaitGroup
	answers = map[string]int{}
	gate := make(chan struct{})
	key, _ := s.l.newKey(s.c, s.at, s.a)
	for number := range clientsAtOnce {
		group.Go(func() {
			c := newHTTPClient(clientAddress(number)) // the connections of an address are limited
			defer c.close()
			<-gate
			began := time.Now()
			got, err := c.do(http.MethodDelete, s.at.url+"/v1/account/keys/"+key.id, s.a.session, nil)
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && got.good():
				answers["waited"]++
			case err == nil && got.code == "overloaded" && got.header.Get("Retry-After") != "":
				answers["overloaded"]++
				slowest = max(slowest, took)
			default:
				answers["other"]++
			}
		})
	}
	close(gate)
	group.Wait()
	return answers, slowest
}

// compareReads reads alternately from two nodes, up to slowAttempts times, and returns the p99 of both.
func compareReads(t *testing.T, reads int, quick, slow *slowNode) (atOnce, delayed time.Duration) {
	t.Helper()
	for try := range slowAttempts {
		if try > 0 {
			progress(t, "p99 %s and %s: tried again", delayed, atOnce)
		}
		quick.reads, slow.reads = nil, nil
		for range reads {
			for _, s := range []*slowNode{quick, slow} {
				began := time.Now()
				got, err := s.c.do(http.MethodGet, s.at.url+"/v1/rates/best?currency=USD&operation=buy", "", nil)
				if err != nil || got.status != http.StatusOK {
					t.Fatal(got.failure("a read without a key", err))
				}
				s.reads = append(s.reads, time.Since(began))
			}
		}
		if atOnce, delayed = p99(quick.reads), p99(slow.reads); delayed <= 2*atOnce+latencySlack {
			break
		}
	}
	return atOnce, delayed
}

// TestFaultsW12_SlowDisk delays each sync by 200 ms while changes are made: reads take no longer than those of a node
// with a fast disk, changes succeed but wait, and of many at once a bounded number waits and the others are rejected.
func TestFaultsW12_SlowDisk(t *testing.T) {
	mail := newPlainMailServer(t)
	quick, slow := newSlowNode(t, mail, "fsync", 0), newSlowNode(t, mail, "fsync", syncDelay)
	began := time.Now()
	if got := slow.createAndRevoke(); !got.good() || time.Since(began) < syncDelay {
		t.Fatalf("a change was made after %s, status %d: no sync was delayed", time.Since(began), got.status)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		every(time.Millisecond, end, func() bool { slow.createAndRevoke(); return true })
	}()
	atOnce, delayed := compareReads(t, 1500, quick, slow)
	close(end)
	<-ended
	changes := slow.l.count("", acknowledged)
	answers, slowest := slow.flood()
	figure(t, "syncs %s slower: p99 of %d reads %s, of a node beside it %s; %d changes meanwhile; of %d changes of one account at once: %v, overloaded after at most %s",
		syncDelay, len(slow.reads), delayed.Round(time.Microsecond), atOnce.Round(time.Microsecond), changes, clientsAtOnce, answers, slowest.Round(time.Millisecond))
	if delayed > 2*atOnce+latencySlack {
		t.Errorf("p99 of reads is %s with a slow disk, %s with a quick one", delayed, atOnce)
	}
	if waited := answers["waited"]; changes <= 2 || waited == 0 || waited > 2*pendingMax || answers["overloaded"] < clientsAtOnce-2*pendingMax || answers["other"] > 0 {
		t.Errorf("%d changes; of %d at once %v; want at most %d to wait", changes, clientsAtOnce, answers, 2*pendingMax)
	}
	if slowest > syncDelay*10 {
		t.Errorf("a refusal took %s", slowest)
	}
}

// TestFaultsW12_ControlSlowAnswers delays the writing of answers instead of syncs: the comparison must notice.
func TestFaultsW12_ControlSlowAnswers(t *testing.T) {
	const answerCalls = "write,writev,sendto,sendmsg"
	mail := newPlainMailServer(t)
	quick, slow := newSlowNode(t, mail, answerCalls, 0), newSlowNode(t, mail, answerCalls, 20*time.Millisecond)
	atOnce, delayed := compareReads(t, 200, quick, slow)
	figure(t, "control, answers 20ms slower: p99 %s, of a node beside it %s", delayed.Round(time.Microsecond), atOnce.Round(time.Microsecond))
	if delayed <= 2*atOnce+latencySlack {
		t.Error("the comparison does not see slow reads")
	}
}
