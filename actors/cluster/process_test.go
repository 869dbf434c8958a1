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
)

// childEnv is the environment variable that makes the test binary run as a node: its configuration, as JSON.
const childEnv = "TASARD_CLUSTER_CHILD"

// childConfig is the configuration of a child: the number of a member, and its directory.
type childConfig struct {
	Members []Member
	Number  int
	Dir     string
}

// newChildConfigs returns the configurations of three members.
func newChildConfigs(t testing.TB) (parts []childConfig) {
	for i, c := range newTestCluster(t).configs {
		parts = append(parts, childConfig{c.Members, i + 1, c.Dir})
	}
	return parts
}

// childMain runs a node until its input ends. Each line of input is a command, each line of output its answer:
//
//	append TEXT    the sequence of the record
//	log            number of records in the local log, and a checksum over them
//	standing       "leads", "follows" or "isolated"
//	whole          whether no node lacks records, as far as this one knows
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

// runChild joins the cluster and returns a function that answers commands.
func runChild(text string) (answer func(command string) (string, error), err error) {
	var part childConfig
	if err := json.Unmarshal([]byte(text), &part); err != nil {
		return nil, err
	}
	f, self := &testCluster{members: part.Members}, part.Members[part.Number-1]
	c := f.config(self.Name, part.Number, self.Address, part.Dir)
	c.checkpointEntries = 40
	n, err := startNode(context.Background(), c)
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
		case "whole": // a condition for stopping the next node
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
		return "isolated"
	case s.Leader == n.cluster.config.Name:
		return "leads"
	}
	return "follows"
}

// process is a child as the test sees it. It may hang or exit at any time.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	lines   chan string // of its output; closed at the end
	stderr  *bytes.Buffer
}

const (
	childStartTimeout = 100 * time.Second
	answerTimeout     = 20 * time.Second
	// electionMax is less than an election takes with the server's own times, which is four seconds or more.
	electionMax = 4 * time.Second
)

// startProcess starts a child and waits until it has joined. It returns nil and the reason if the child does not
// start.
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

// answer returns the next line, "" when there is none in time.
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

// ask sends a command and waits for the answer. A child that does not answer in time is killed.
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

// end stops the child, or kills it if it does not exit.
func (p *process) end() {
	_ = p.in.Close() // stops the child
	killer := time.AfterFunc(answerTimeout, func() { _ = p.command.Process.Kill() })
	defer killer.Stop()
	p.wait()
}

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

// TestProcesses_KillLeader kills the leader while the others append, starts it again, then kills all nodes at once:
// another leader is elected soon, no acknowledged record is lost, and all nodes have the same log.
// TestFaultsCluster_KillLeader has more rounds.
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
					t.Errorf("n%d says %q", i+1, refusal)
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
		took := realClock().Sub(began)
		if t.Logf("leader killed: the others had both appended after %s", took); took >= electionMax {
			t.Error("the election took too long")
		}
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
