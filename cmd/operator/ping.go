package operator

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/remote"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

// pingPatience is how long a node may take to say how it is; a busy one has taken 0.4 s.
const pingPatience = 5 * time.Second

func NewPing(p *process.Process) *cobra.Command {
	var o remote.Options
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
		Args: command.NoArguments,
	}
	adminCommand(p, cmd, &o, func(ctx context.Context, node *remote.Node, _ []string) error { return ask(p, ctx, node, &o, live) })
	setting.PlainSwitch(cmd.Flags(), &live, "live", "ask only whether the node answers at all")
	return cmd
}

// ask asks and prints; live makes every answer a good one.
func ask(p *process.Process, ctx context.Context, node *remote.Node, o *remote.Options, live bool) error {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	shown, err := node.Readiness(ctx)
	if err != nil {
		return node.Explain(err)
	}
	if err := terminal.Present(p.Stdout, o.JSON, shown, func() { terminal.Say(p.Stdout, "%s\n", summary(&shown)) }); err != nil {
		return err
	}
	if shown.Status == engine.Unavailable && !live {
		return exit.Fail(exit.Unavailable, "the node behind %s answers no data requests now", node.Socket)
	}
	return nil
}

// summary is the status, and each condition that is not well.
func summary(s *admin.Readiness) string {
	words := []string{string(s.Status)}
	for _, c := range s.Conditions {
		if c.State != engine.ConditionOK {
			words = append(words, c.Name+": "+c.State)
		}
	}
	return strings.Join(words, ", ")
}
