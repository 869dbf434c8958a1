//go:build faults

package faults

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// W12: a sync takes so much longer than it should.
const syncDelay = 200 * time.Millisecond

const (
	slowReads = 1500 // of each node
	slowTries = 3
	// pendingMax is how many changes of an account may wait while one is being written (actors.Config.PendingWritesMax).
	pendingMax = 64
	// crowd is how many callers change the same account at once.
	crowd = 4 * pendingMax
)

// slowNode is a node whose syncs strace delays, or only watches. strace stops nothing else: with --seccomp-bpf delays work.
type slowNode struct {
	n       *node
	session string
	reads   []time.Duration
}

func newSlowNode(t *testing.T, office *postOffice, call string, delay time.Duration) *slowNode {
	t.Helper()
	dir := filepath.Join(memoryDir(t), "data")
	prepare(t, dir, 1)
	prefix := []string{"strace", "-D", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=" + call}
	if delay > 0 {
		prefix = append(prefix, "-e", fmt.Sprintf("inject=%s:delay_enter=%d", call, delay.Microseconds()))
	}
	s := &slowNode{n: launch(t, command{prefix: prefix, args: serveArgs(dir, append(office.args(), quotaless()...)...)}).ready()}
	c := newCaller("")
	defer c.close()
	var err error
	if s.session, err = office.session(c, s.n.url, "ana@example.com"); err != nil {
		t.Fatal(err)
	}
	return s
}

// write makes and revokes keys until the channel is closed, and returns how many changes were good.
func (s *slowNode) write(end <-chan struct{}) (good int) {
	c := newCaller("")
	defer c.close()
	for {
		select {
		case <-end:
			return good
		default:
		}
		made, got, err := createKey(c, s.n.url, s.session, "slow")
		if err == nil && got.good() {
			good++
			_, _ = revokeKey(c, s.n.url, s.session, made.ID) // as good or bad as the first
		}
	}
}

func (s *slowNode) read(c *caller) error {
	began := time.Now()
	got, err := c.do(http.MethodGet, s.n.url+"/v1/rates/best?currency=USD&operation=buy", "", nil)
	if err != nil || got.status != http.StatusOK {
		return fmt.Errorf("a read without a key: status %d, %w", got.status, err)
	}
	s.reads = append(s.reads, time.Since(began))
	return nil
}

// flood has a crowd change one account at once, and counts the answers.
func (s *slowNode) flood() (good, overloaded, limited, other int, slowest time.Duration) {
	var mu sync.Mutex
	var group sync.WaitGroup
	gate := make(chan struct{})
	for number := range crowd {
		group.Go(func() {
			c := newCaller(addressOf(number)) // an address has a share of the connections
			defer c.close()
			<-gate
			began := time.Now()
			_, got, err := createKey(c, s.n.url, s.session, fmt.Sprintf("crowd %d", number))
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && got.good():
				good++
			case err == nil && got.status == http.StatusConflict:
				limited++
			case err == nil && got.status == http.StatusServiceUnavailable && got.code == "overloaded" && got.header.Get("Retry-After") != "":
				overloaded++
				slowest = max(slowest, took)
			default:
				other++
			}
		})
	}
	close(gate)
	group.Wait()
	return good, overloaded, limited, other, slowest
}

// besideEachOther reads from both nodes in turn, so that both meet the same moments of the machine, while the slow one is
// changed. It returns the p99 of both and the number of changes.
func besideEachOther(t *testing.T, quick, slow *slowNode) (atOnce, delayed time.Duration, changes int) {
	t.Helper()
	quick.reads, slow.reads = nil, nil
	end := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { changes = slow.write(end) })
	c := newCaller("")
	defer c.close()
	var failed error
	for range slowReads {
		failed = errors.Join(failed, quick.read(c), slow.read(c))
	}
	close(end)
	group.Wait()
	if failed != nil {
		t.Fatal(failed)
	}
	return p99(quick.reads), p99(slow.reads), changes
}

// TestFaultsW12_SlowDisk delays each sync by 200 ms while changes are made: reads take no longer than those of a node beside
// it whose disk is quick, changes are good but wait, and of a crowd of them a bounded number waits and the others are refused.
func TestFaultsW12_SlowDisk(t *testing.T) {
	need(t, "strace", "strace")
	office := newPostOffice(t)
	quick, slow := newSlowNode(t, office, "fsync", 0), newSlowNode(t, office, "fsync", syncDelay)
	c := newCaller("")
	defer c.close()
	began := time.Now()
	if _, got, err := createKey(c, slow.n.url, slow.session, "first"); err != nil || !got.good() || time.Since(began) < syncDelay {
		t.Fatalf("a change was made after %s, status %d, %v: no sync was delayed", time.Since(began), got.status, err)
	}
	atOnce, delayed, changes := besideEachOther(t, quick, slow)
	for range slowTries - 1 {
		if delayed <= 2*atOnce+tailSlack {
			break
		}
		progress(t, "p99 %s and %s: tried again, the machine may have been busy", delayed, atOnce) // a fault of the node comes back
		atOnce, delayed, changes = besideEachOther(t, quick, slow)
	}
	good, overloaded, limited, other, slowest := slow.flood()
	figure(t, "syncs %s slower: p99 of %d reads %s, of a node beside it %s; %d changes meanwhile; of %d changes of one account at once "+
		"%d were made, %d refused for the account's own limit, %d overloaded, after at most %s",
		syncDelay, len(slow.reads), delayed.Round(time.Microsecond), atOnce.Round(time.Microsecond), changes,
		crowd, good, limited, overloaded, slowest.Round(time.Millisecond))
	if delayed > 2*atOnce+tailSlack {
		t.Errorf("p99 of reads is %s with a slow disk, %s with a quick one", delayed, atOnce)
	}
	if changes == 0 || good+limited == 0 || other > 0 {
		t.Errorf("%d changes, %d of the crowd were made, %d got another answer", changes, good, other)
	}
	if waited := good + limited; waited > 2*pendingMax || overloaded < crowd-2*pendingMax {
		t.Errorf("%d of the crowd waited, %d were refused; want at most %d to wait", waited, overloaded, 2*pendingMax)
	}
	if slowest > syncDelay*10 {
		t.Errorf("a refusal took %s", slowest)
	}
}

// answerCalls are the calls with which a program may send an answer.
const answerCalls = "write,writev,sendto,sendmsg"

// TestFaultsW12_ControlSlowAnswers delays the writing of answers in place of syncs: the comparison must see that.
func TestFaultsW12_ControlSlowAnswers(t *testing.T) {
	need(t, "strace", "strace")
	office := newPostOffice(t)
	quick, slow := newSlowNode(t, office, answerCalls, 0), newSlowNode(t, office, answerCalls, 20*time.Millisecond)
	c := newCaller("")
	defer c.close()
	for range slowTries {
		quick.reads, slow.reads = nil, nil
		for range 200 {
			if err := errors.Join(quick.read(c), slow.read(c)); err != nil {
				t.Fatal(err)
			}
		}
		atOnce, delayed := p99(quick.reads), p99(slow.reads)
		if delayed > 2*atOnce+tailSlack {
			figure(t, "control, answers 20ms slower: p99 %s, of a node beside it %s", delayed.Round(time.Microsecond), atOnce.Round(time.Microsecond))
			return
		}
	}
	t.Error("the comparison does not see slow reads")
}
