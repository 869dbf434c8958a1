//go:build faults && linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

const (
	// stolenLook is how often it is looked how much was stolen. The kernel tells it in its ticks, stolenTick.
	stolenLook = 10 * time.Millisecond
	stolenTick = 10 * time.Millisecond
	// stolenSpan is the span in which a moment's theft is summed up: what was taken in it comes out late then.
	stolenSpan = 400 * time.Millisecond
)

// stolen is the processor time that the machine below this one gave to others while it was wanted here. A virtual machine is told so by
// its kernel. Whatever is measured in such a moment says nothing of the node.
type stolen struct {
	began time.Time
	looks []stolenAt
	quit  chan struct{}
	done  chan struct{}
}

// stolenAt is what had been stolen from the node's processor and from the crowd's by a moment.
type stolenAt struct {
	at          time.Duration
	node, crowd time.Duration
}

// watchStolen looks until end is called.
func watchStolen(t *testing.T) *stolen {
	t.Helper()
	s := &stolen{began: time.Now(), quit: make(chan struct{}), done: make(chan struct{})}
	if err := s.look(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		ticks := time.NewTicker(stolenLook)
		defer ticks.Stop()
		for {
			select {
			case <-s.quit:
				return
			case <-ticks.C:
				_ = s.look() // the first one could
			}
		}
	}()
	return s
}

func (s *stolen) end() {
	close(s.quit)
	<-s.done
	_ = s.look()
}

func (s *stolen) look() error {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return err
	}
	one := stolenAt{at: time.Since(s.began)}
	if one.node, err = parseStolen(text, nodeCore); err == nil {
		one.crowd, err = parseStolen(text, crowdCore)
	}
	s.looks = append(s.looks, one)
	return err
}

// parseStolen finds the eighth number of a processor's line: user, nice, system, idle, iowait, irq, softirq, steal.
func parseStolen(text []byte, core int) (time.Duration, error) {
	_, line, found := bytes.Cut(text, fmt.Appendf(nil, "\ncpu%d ", core))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	numbers := bytes.Fields(line)
	if !found || len(numbers) < 8 {
		return 0, fmt.Errorf("/proc/stat says nothing of what is stolen from processor %d", core)
	}
	ticks, err := strconv.ParseInt(string(numbers[7]), 10, 64)
	return time.Duration(ticks) * stolenTick, err
}

// worst is the most that was stolen of either processor within stolenSpan.
func (s *stolen) worst() (node, crowd time.Duration) {
	first := 0
	for _, last := range s.looks {
		for last.at-s.looks[first].at > stolenSpan {
			first++
		}
		node, crowd = max(node, last.node-s.looks[first].node), max(crowd, last.crowd-s.looks[first].crowd)
	}
	return node, crowd
}

func (s *stolen) String() string {
	node, crowd := s.worst()
	first, last := s.looks[0], s.looks[len(s.looks)-1]
	return fmt.Sprintf("stolen by the machine below in %v: %v of the node's processor, %v of the crowd's; within %v at most %v and %v",
		last.at.Round(time.Second), last.node-first.node, last.crowd-first.crowd, stolenSpan, node, crowd)
}
