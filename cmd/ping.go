package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/engine"
)

// pingPatience is how long a node may take to say how it is; a busy one has taken 0.4 s.
const pingPatience = 5 * time.Second

// readinessBytesMax is room for every condition and every source with its reason.
const readinessBytesMax = 1 << 20

func (p *process) newPing() *cobra.Command {
	var o adminOptions
	var live bool
	cmd := &cobra.Command{
		Use:   "ping",
		Short: "Ask a running node whether it can answer",
		Long: `ping asks a running node, at its management socket, whether data requests are answered: code 0 when they are, whatever
else suffers, and 69 when they are not or no node is there. It prints what is not well. With --live the code is 0 as soon as
the node says anything, as GET /livez: for whoever restarts a node that does not. It is meant for the health checks of
containers, which have no other program inside; elsewhere GET /readyz of the node says the same.`,
		Example: `  tasard ping --data ./data
  TASARD_CONFIG=/etc/tasard/tasard.toml tasard ping --live`,
		Args: noArguments,
	}
	p.adminCommand(cmd, &o, func(ctx context.Context, node *adminNode, _ []string) error { return p.ping(ctx, node, &o, live) })
	plainSwitch(cmd.Flags(), &live, "live", "ask only whether the node answers at all")
	return cmd
}

// ping asks and prints; live makes every answer a good one.
func (p *process) ping(ctx context.Context, node *adminNode, o *adminOptions, live bool) error {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	shown, err := node.readiness(ctx)
	if err != nil {
		return err
	}
	if err := p.print(o, shown, func() { say(p.stdout, "%s\n", shown.summary()) }); err != nil {
		return err
	}
	if shown.Status == engine.Unavailable && !live {
		return fail(exitUnavailable, "the node behind %s answers no data requests now", node.socket)
	}
	return nil
}

// readiness asks how the node is. Unlike other answers, the one of a node that can't serve has something to read too.
func (n *adminNode) readiness(ctx context.Context) (shown shownReadiness, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://tasard"+readyzPath, nil)
	if err != nil {
		return shown, fmt.Errorf("write the request: %w", err)
	}
	res, err := n.http.Do(req)
	if err != nil {
		return shown, n.unreached(err)
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if err := json.NewDecoder(io.LimitReader(res.Body, readinessBytesMax)).Decode(&shown); err != nil || shown.Status == "" {
		return shown, fail(exitBroken, "the node answered %s; do node and command have the same version?", res.Status)
	}
	return shown, nil
}

// summary is the status, and each condition that is not well.
func (s *shownReadiness) summary() string {
	words := []string{string(s.Status)}
	for _, c := range s.Conditions {
		if c.State != engine.ConditionOK {
			words = append(words, c.Name+": "+c.State)
		}
	}
	return strings.Join(words, ", ")
}
