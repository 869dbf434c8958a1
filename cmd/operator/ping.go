package operator

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

// pingPatience is how long a node may take to say how it is; a busy one has taken 0.4 s.
const pingPatience = 5 * time.Second

// NewPing is tasard ping.
func NewPing(p *process.Process) *cobra.Command {
	r, live := &request{Process: p}, false
	return r.row(command.Row{
		Use:   "ping",
		Short: "Ask a running node whether it can answer",
		Long: `ping asks a running node, at its management socket, whether data requests are answered: code 0 when they are, whatever
else suffers, and 69 when they are not or no node is there. It prints what is not well. With --live the code is 0 as soon as
the node says anything, as GET /livez: for whoever restarts a node that does not. It is meant for the health checks of
containers, which have no other program inside; elsewhere GET /readyz of the node says the same.`,
		Example: `  tasard ping --data ./data
  TASARD_CONFIG=/etc/tasard/tasard.toml tasard ping --live`,
		Flags: func(flags *pflag.FlagSet) {
			setting.PlainSwitch(flags, &live, "live", "ask only whether the node answers at all")
		},
		Run: func(ctx context.Context, _ []string) error { return r.ping(ctx, live) },
	})
}

// ping asks and prints; live makes every answer a good one.
func (r *request) ping(ctx context.Context, live bool) error {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	shown, err := r.node.Readiness(ctx)
	if err != nil {
		return r.node.Explain(err)
	}
	if err := terminal.Present(r.Stdout, r.JSON, shown, func() { terminal.Say(r.Stdout, "%s\n", summary(&shown)) }); err != nil {
		return err
	}
	if shown.Status == engine.Unavailable && !live {
		return exit.Fail(exit.Unavailable, "the node behind %s answers no data requests now", r.node.Socket)
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
