//go:build faults

package cluster

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// diskNode is a child that may hang, or end, whenever it likes: its server may get lost in damaged files, and take memory without bound. In a
// real service the unit bounds that, here a limit of the process does.
type diskNode struct {
	command *exec.Cmd
	in      io.WriteCloser
	lines   chan string // what it says; closed at its end
	words   *bytes.Buffer
}

const (
	diskLimit = `ulimit -v 6291456 && exec "$0"` // KiB of address space
	diskStart = 100 * time.Second
)

// startDiskNode starts a node; nil: it does not start, and says why.
func startDiskNode(t *testing.T, part childPart) (n *diskNode, refusal string) {
	t.Helper()
	n = &diskNode{command: exec.Command("/bin/sh", "-c", diskLimit, os.Args[0]), lines: make(chan string, 1), words: &bytes.Buffer{}}
	n.command.Env, n.command.Stderr = part.environment(t), n.words
	var err error
	if n.in, err = n.command.StdinPipe(); err != nil {
		t.Error(err)
		return nil, ""
	}
	out, err := n.command.StdoutPipe()
	if err == nil {
		err = n.command.Start()
	}
	if err != nil {
		t.Error(err)
		return nil, ""
	}
	go n.listen(out)
	if n.answer(diskStart) == "ready" {
		return n, ""
	}
	n.end()
	return nil, strings.TrimSpace(n.words.String())
}

func (n *diskNode) listen(out io.Reader) {
	defer close(n.lines)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		n.lines <- lines.Text()
	}
}

// answer is the next line, "" when there is none in time.
func (n *diskNode) answer(longest time.Duration) string {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case line := <-n.lines:
		return line
	case <-timer.C:
		return ""
	}
}

// ask gives a command and waits for the answer. A node that does not give one in time is ended.
func (n *diskNode) ask(command string) string {
	if n.command.ProcessState != nil {
		return ""
	}
	if _, err := fmt.Fprintln(n.in, command); err != nil {
		return ""
	}
	says := n.answer(diskWait)
	if says == "" {
		n.end()
	}
	return says
}

// end lets it stop, and kills it when it does not.
func (n *diskNode) end() {
	if n.command.ProcessState != nil {
		return
	}
	_ = n.in.Close() // its sign to stop; it may be gone
	killer := time.AfterFunc(diskWait, func() { _ = n.command.Process.Kill() })
	for range n.lines {
	}
	_ = n.command.Wait() // how it ends is its affair
	killer.Stop()
}
