//go:build faults

package faults

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const (
	// syncDelay is how much longer a sync takes than it should (W12).
	syncDelay = 200 * time.Millisecond
	slowTries = 3
	// pendingMax is how many changes of an account may wait while one is being written (actors.Config.PendingWritesMax).
	pendingMax = 64
	// crowd is how many callers change the same account at once.
	crowd = 4 * pendingMax
)

// slowNode is a node some calls of which strace delays, or only watches. strace stops nothing else: with --seccomp-bpf delays work.
type slowNode struct {
	*smith
	n     *node
	reads []time.Duration
}

func newSlowNode(t *testing.T, office *postOffice, call string, delay time.Duration) *slowNode {
	t.Helper()
	need(t, "strace", "strace")
	dir := filepath.Join(memoryDir(t), "data")
	prepare(t, dir, 1)
	prefix := []string{"strace", "-D", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=" + call}
	if delay > 0 {
		prefix = append(prefix, "-e", fmt.Sprintf("inject=%s:delay_enter=%d", call, delay.Microseconds()))
	}
	s := &slowNode{smith: newSmith(t, "")}
	s.n = launch(t, command{prefix: prefix, args: serveArgs(dir, append(office.args(), quotaless()...)...)}).ready()
	s.signIn(t, office, s.n)
	return s
}

// flood has a crowd change one account at once, and counts the answers.
func (s *slowNode) flood() (answers map[string]int, slowest time.Duration) {
	var mu sync.Mutex
	var group sync.WaitGroup
	answers = map[string]int{}
	gate := make(chan struct{})
	for number := range crowd {
		group.Go(func() {
			c := newCaller(addressOf(number)) // an address has a share of the connections
			defer c.close()
			<-gate
			began := time.Now()
			_, got, err := createKey(c, s.at.url, s.a.session, fmt.Sprintf("crowd %d", number))
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && (got.good() || got.status == http.StatusConflict):
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

// besideEachOther reads from two nodes in turn, so that both meet the same moments of the machine, and returns the p99 of both; up to
// slowTries times, until the second is as quick: the machine may have been busy, and a fault of the node comes back.
func besideEachOther(t *testing.T, reads int, quick, slow *slowNode) (atOnce, delayed time.Duration) {
	t.Helper()
	for try := range slowTries {
		if try > 0 {
			progress(t, "p99 %s and %s: tried again", delayed, atOnce)
		}
		quick.reads, slow.reads = nil, nil
		for range reads {
			for _, s := range []*slowNode{quick, slow} {
				began := time.Now()
				got, err := s.c.do(http.MethodGet, s.at.url+"/v1/rates/best?currency=USD&operation=buy", "", nil)
				if err != nil || got.status != http.StatusOK {
					t.Fatal(got.trouble("a read without a key", err))
				}
				s.reads = append(s.reads, time.Since(began))
			}
		}
		if atOnce, delayed = p99(quick.reads), p99(slow.reads); delayed <= 2*atOnce+tailSlack {
			break
		}
	}
	return atOnce, delayed
}

// TestFaultsW12_SlowDisk delays each sync by 200 ms while changes are made: reads take no longer than those of a node beside
// it whose disk is quick, changes are good but wait, and of a crowd of them a bounded number waits and the others are refused.
func TestFaultsW12_SlowDisk(t *testing.T) {
	office := newPostOffice(t)
	quick, slow := newSlowNode(t, office, "fsync", 0), newSlowNode(t, office, "fsync", syncDelay)
	began := time.Now()
	if got := slow.turn(); !got.good() || time.Since(began) < syncDelay {
		t.Fatalf("a change was made after %s, status %d: no sync was delayed", time.Since(began), got.status)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
				slow.turn()
			}
		}
	}()
	atOnce, delayed := besideEachOther(t, 1500, quick, slow)
	close(end)
	<-ended
	changes := slow.l.count("", acknowledged)
	answers, slowest := slow.flood()
	figure(t, "syncs %s slower: p99 of %d reads %s, of a node beside it %s; %d changes meanwhile; of %d changes of one account at once: %v, overloaded after at most %s",
		syncDelay, len(slow.reads), delayed.Round(time.Microsecond), atOnce.Round(time.Microsecond), changes, crowd, answers, slowest.Round(time.Millisecond))
	if delayed > 2*atOnce+tailSlack {
		t.Errorf("p99 of reads is %s with a slow disk, %s with a quick one", delayed, atOnce)
	}
	if waited := answers["waited"]; changes <= 2 || waited == 0 || waited > 2*pendingMax || answers["overloaded"] < crowd-2*pendingMax || answers["other"] > 0 {
		t.Errorf("%d changes; of a crowd of %d %v; want at most %d to wait", changes, crowd, answers, 2*pendingMax)
	}
	if slowest > syncDelay*10 {
		t.Errorf("a refusal took %s", slowest)
	}
}

// TestFaultsW12_ControlSlowAnswers delays the writing of answers in place of syncs: the comparison must see that.
func TestFaultsW12_ControlSlowAnswers(t *testing.T) {
	const answerCalls = "write,writev,sendto,sendmsg"
	office := newPostOffice(t)
	quick, slow := newSlowNode(t, office, answerCalls, 0), newSlowNode(t, office, answerCalls, 20*time.Millisecond)
	atOnce, delayed := besideEachOther(t, 200, quick, slow)
	figure(t, "control, answers 20ms slower: p99 %s, of a node beside it %s", delayed.Round(time.Microsecond), atOnce.Round(time.Microsecond))
	if delayed <= 2*atOnce+tailSlack {
		t.Error("the comparison does not see slow reads")
	}
}
