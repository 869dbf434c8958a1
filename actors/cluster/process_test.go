package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tasard/tasard/actors/cluster/clustertest"
)

// childNode is the environment of a node that is a process of its own, which can be killed: its part as JSON.
const childNode = "TASARD_CLUSTER_CHILD"

// childPart is what a child is told.
type childPart struct {
	Name, Listen, Dir string
	Number            int
	Members           []Member
}

// child runs a node until its input ends. Each line of input is a command, each line of output an answer:
//
//	append TEXT    the place at which the record stands
//	log            how many records the copy has, and a checksum over them
//	standing       "leads", "follows" or "alone"
//	whole          whether no node lacks anything, by what this one knows
func child(part string) int {
	answer, err := runChild(part)
	if err == nil {
		lines := bufio.NewScanner(os.Stdin)
		for err == nil && lines.Scan() {
			var text string
			if text, err = answer(lines.Text()); err == nil {
				_, err = fmt.Fprintln(os.Stdout, text)
			}
		}
		if err == nil {
			_, err = answer("stop")
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// runChild joins the cluster; what it returns answers commands.
func runChild(text string) (answer func(command string) (string, error), err error) {
	var part childPart
	if err := json.Unmarshal([]byte(text), &part); err != nil {
		return nil, err
	}
	f := &fleet{members: part.Members}
	n, err := startNode(contextOfChild(), f.config(part.Name, part.Number, part.Listen, part.Dir))
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintln(os.Stdout, "ready"); err != nil {
		return nil, err
	}
	return func(command string) (string, error) {
		verb, rest, _ := strings.Cut(command, " ")
		switch verb {
		case "append":
			place, _, err := n.append(rest)
			return fmt.Sprint(place), err
		case "log":
			return n.digest()
		case "standing":
			return n.standing(), nil
		case "whole":
			return fmt.Sprint(n.whole()), nil
		case "stop":
			return "", n.stop()
		}
		return "", fmt.Errorf("command %q", command)
	}, nil
}

func (n *testNode) digest() (string, error) {
	j, sum, count := n.cluster.Journal(), uint32(0), 0
	err := j.Read(j.First(), func(_ uint64, record []byte) error {
		sum, count = crc32.Update(crc32.Update(sum, castagnoli, record), castagnoli, []byte{'\n'}), count+1
		return nil
	})
	return fmt.Sprintf("%d %08x", count, sum), err
}

func (n *testNode) standing() string {
	switch s := n.cluster.Standing(); {
	case !s.Majority:
		return "alone"
	case s.Leader == n.cluster.config.Name:
		return "leads"
	}
	return "follows"
}

// whole is what whoever wants to stop the next node waits for.
func (n *testNode) whole() bool {
	return !slices.ContainsFunc(n.cluster.Status().Nodes, func(s NodeStatus) bool { return !s.Current || !s.Reachable || s.Lag > 0 })
}

// process is a child as its parent sees it.
type process struct {
	t       testing.TB
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// environment is what makes this test program that child.
func (c childPart) environment(t testing.TB) []string {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), childNode+"="+string(text))
}

// startProcess starts a child; await waits until it has joined.
func startProcess(t testing.TB, part childPart) *process {
	t.Helper()
	p := &process{t: t, command: exec.CommandContext(t.Context(), os.Args[0])}
	p.command.Env, p.command.Stderr = part.environment(t), os.Stderr
	var err error
	if p.in, err = p.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.command.StdoutPipe()
	if err == nil {
		err = p.command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	return p
}

// ask gives a command and waits for the answer; "" is only a wait.
func (p *process) ask(command string) string {
	p.t.Helper()
	if command != "" {
		if _, err := fmt.Fprintln(p.in, command); err != nil {
			p.t.Fatal(err)
		}
	}
	if !p.out.Scan() {
		p.t.Fatalf("no answer to %q: %v", command, p.out.Err())
	}
	return p.out.Text()
}

// kill ends it without a word.
func (p *process) kill() {
	p.t.Helper()
	if err := p.command.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	_ = p.command.Wait() // it was killed
}

// end has it stop and waits.
func (p *process) end() {
	p.t.Helper()
	if err := p.in.Close(); err != nil {
		p.t.Error(err)
	}
	if err := p.command.Wait(); err != nil {
		p.t.Error(err)
	}
}

// TestProcesses_KillLeader kills the leader while the others append, starts it again, then kills all at once: nothing that was told to stand
// is lost, and all have the same log.
func TestProcesses_KillLeader(t *testing.T) {
	at := clustertest.Addresses(t, 3)
	parts := make([]childPart, 3)
	members := []Member{{"n1", at[0]}, {"n2", at[1]}, {"n3", at[2]}}
	for i := range parts {
		parts[i] = childPart{Name: members[i].Name, Number: i + 1, Listen: at[i], Dir: t.TempDir(), Members: members}
	}
	nodes := make([]*process, 3)
	start := func(which ...int) {
		for _, i := range which {
			nodes[i] = startProcess(t, parts[i])
		}
		for _, i := range which {
			if got := nodes[i].ask(""); got != "ready" {
				t.Fatalf("%s says %q", parts[i].Name, got)
			}
		}
	}
	same := func(want int) {
		t.Helper()
		var digests [3]string
		eventually(t, fmt.Sprintf("%d records everywhere", want), func() bool {
			for i, n := range nodes {
				digests[i] = n.ask("log")
			}
			return strings.HasPrefix(digests[0], fmt.Sprintf("%d ", want)) && digests[0] == digests[1] && digests[0] == digests[2]
		})
	}
	start(0, 1, 2)
	records := 0
	for round := range 2 {
		leader := -1
		eventually(t, "a leader", func() bool {
			for i, n := range nodes {
				if n.ask("standing") == "leads" {
					leader = i
				}
			}
			return leader >= 0
		})
		nodes[leader].kill()
		began := realClock()
		var all sync.WaitGroup
		for i, n := range nodes {
			if i != leader {
				all.Go(func() { n.ask(fmt.Sprintf("append round %d of n%d", round, i+1)) })
			}
		}
		all.Wait()
		records += 2
		t.Logf("leader killed: the others had both appended after %s", realClock().Sub(began))
		began = realClock()
		start(leader)
		t.Logf("killed node back after %s", realClock().Sub(began))
		same(records)
	}
	for _, n := range nodes {
		n.kill()
	}
	began := realClock()
	start(0, 1, 2)
	nodes[1].ask("append after all were killed")
	t.Logf("all killed: the first append after %s", realClock().Sub(began))
	same(records + 1)
	for _, n := range nodes {
		n.end()
	}
}
