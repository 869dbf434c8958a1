//go:build !nocluster

package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/cluster/clustertest"
)

// childEnv is the environment of a node that is a process of its own, which can be killed: its part as JSON.
const childEnv = "TASARD_CLUSTER_CHILD"

// childConfig is what a child is told.
type childConfig struct {
	Name, Listen, Dir string
	Number            int
	Members           []Member
}

// newChildConfigs are three members.
func newChildConfigs(t testing.TB) (parts []childConfig) {
	at := clustertest.Addresses(t, 3)
	members := []Member{{"n1", at[0]}, {"n2", at[1]}, {"n3", at[2]}}
	for i, m := range members {
		parts = append(parts, childConfig{Name: m.Name, Number: i + 1, Listen: m.Address, Dir: t.TempDir(), Members: members})
	}
	return parts
}

// childMain runs a node until its input ends. Each line of input is a command, each line of output an answer:
//
//	append TEXT    the place at which the record stands
//	log            how many records the copy has, and a checksum over them
//	standing       "leads", "follows" or "alone"
//	whole          whether no node lacks anything, by what this one knows
func childMain(part string) int {
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
	var part childConfig
	if err := json.Unmarshal([]byte(text), &part); err != nil {
		return nil, err
	}
	f := &testCluster{members: part.Members}
	n, err := startNode(context.Background(), f.config(part.Name, part.Number, part.Listen, part.Dir))
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
			log, err := n.records(0)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%d %08x", len(log), checksum([]byte(strings.Join(log, "\n")))), nil
		case "standing":
			return n.role(), nil
		case "whole": // what is waited for before the next node is stopped
			lacks := func(s NodeStatus) bool { return !s.Current || !s.Reachable || s.Lag > 0 }
			return fmt.Sprint(!slices.ContainsFunc(n.cluster.Status().Nodes, lacks)), nil
		case "stop":
			return "", n.stop()
		}
		return "", fmt.Errorf("command %q", command)
	}, nil
}

func (n *testNode) role() string {
	switch s := n.cluster.Health(); {
	case !s.Majority:
		return "alone"
	case s.Leader == n.cluster.config.Name:
		return "leads"
	}
	return "follows"
}

// processID is a child as its parent sees it. It may hang, or end, whenever it likes.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	lines   chan string   // what it says; closed at its end
	stderr  *bytes.Buffer // what it complains of
}

// childStartTimeout is how long a child may take until it has joined, answerTimeout how long an answer may take: an election takes up to nine seconds.
const (
	childStartTimeout = 100 * time.Second
	answerTimeout     = 20 * time.Second
)

// startProcess starts a child and waits until it has joined; nil: it does not start, and says why.
func startProcess(t testing.TB, part childConfig, command *exec.Cmd) (p *process, refusal string) {
	t.Helper()
	p = &process{command: command, lines: make(chan string, 1), stderr: &bytes.Buffer{}}
	text, err := json.Marshal(part)
	if err == nil {
		p.in, err = command.StdinPipe()
	}
	command.Env, command.Stderr = append(os.Environ(), childEnv+"="+string(text)), p.stderr
	var out io.Reader
	if err == nil {
		out, err = command.StdoutPipe()
	}
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Error(err)
		return nil, err.Error()
	}
	go func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.lines <- lines.Text()
		}
	}()
	if p.answer(childStartTimeout) == "ready" {
		return p, ""
	}
	p.end()
	return nil, strings.TrimSpace(p.stderr.String())
}

// answer is the next line, "" when there is none in time.
func (p *process) answer(longest time.Duration) string {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case line := <-p.lines:
		return line
	case <-timer.C:
		return ""
	}
}

// request gives a command and waits for the answer. A child that does not give one in time is ended.
func (p *process) ask(command string) string {
	if p.command.ProcessState != nil {
		return ""
	}
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return ""
	}
	says := p.answer(answerTimeout)
	if says == "" {
		p.end()
	}
	return says
}

// closeWith lets it stop, and kills it when it does not. How it ends is its affair.
func (p *process) end() {
	_ = p.in.Close() // its sign to stop
	killer := time.AfterFunc(answerTimeout, func() { _ = p.command.Process.Kill() })
	defer killer.Stop()
	p.wait()
}

// kill ends it without a word.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	p.wait()
}

func (p *process) wait() {
	if p.command.ProcessState != nil {
		return
	}
	for range p.lines {
	}
	_ = p.command.Wait()
}

// TestProcesses_KillLeader kills the leader while the others append, starts it again, then kills all at once: nothing that was told to
// stand is lost, and all have the same log. TestFaultsCluster_KillLeader has more rounds and the server's own times.
func TestProcesses_KillLeader(t *testing.T) {
	t.Parallel()
	killLeader(t, 1)
}

func killLeader(t *testing.T, rounds int) {
	parts, nodes := newChildConfigs(t), make([]*process, 3)
	start := func(which ...int) {
		t.Helper()
		var all sync.WaitGroup
		for _, i := range which {
			all.Go(func() {
				var refusal string
				if nodes[i], refusal = startProcess(t, parts[i], exec.Command(os.Args[0])); refusal != "" {
					t.Errorf("%s says %q", parts[i].Name, refusal)
				}
			})
		}
		if all.Wait(); t.Failed() {
			t.FailNow()
		}
	}
	t.Cleanup(func() {
		for _, n := range nodes {
			if n != nil {
				n.kill()
			}
		}
	})
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
	for round := range rounds {
		leader := -1
		eventually(t, "a leader", func() bool {
			leader = slices.IndexFunc(nodes, func(n *process) bool { return n.ask("standing") == "leads" })
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
		t.Logf("leader killed: the others had both appended after %s", realClock().Sub(began))
		start(leader)
		same(2 * (round + 1))
	}
	for _, n := range nodes {
		n.kill()
	}
	start(0, 1, 2)
	nodes[1].ask("append after all were killed")
	same(2*rounds + 1)
	for _, n := range nodes {
		if n.end(); !n.command.ProcessState.Success() {
			t.Errorf("%s: %s", n.command.ProcessState, n.stderr)
		}
	}
}
