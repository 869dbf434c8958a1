package operator

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/admin"
)

func (r *request) cluster() *cobra.Command {
	return command.Row{
		Use:     "cluster",
		Short:   "Look at the nodes of a cluster",
		Long:    "cluster tells about the other nodes with which the node is one service (tasard serve --cluster).",
		Example: "  tasard admin cluster status --data ./data",
		Below:   []*cobra.Command{r.clusterStatus()},
	}.Command(r.Process)
}

func (r *request) clusterStatus() *cobra.Command {
	return r.row(command.Row{
		Use:   "status",
		Short: "Tell how all nodes are, as this one sees them",
		Long: `status tells of each node whether it is reachable, how far its log is behind the newest record that anybody has told of, and
through which node writes go. A member whose part is not whole counts for no majority: one that has just started gets well within
seconds, one that does not has damaged files: stop it, move the directory stream in its data directory away, start it; never two
nodes at once. Ask another node as well when two of them do not see each other: each tells what it sees itself.`,
		Example: `  tasard admin cluster status --data ./data
  tasard admin cluster status --data ./data --json`,
		Run: func(ctx context.Context, _ []string) error {
			_, err := ask(ctx, r, admin.ShowCluster, admin.None{}, printCluster)
			return err
		},
	})
}

// printCluster writes what stands, then a table of the nodes.
func printCluster(out io.Writer, c *admin.Cluster) {
	state := "a majority of the nodes is there: changes are possible"
	if !c.Majority {
		state = "no majority: reads and leased requests go on, changes are refused"
	}
	terminal.Say(out, "%s: %s, since %s\n\n", terminal.Printable(c.Cluster), state, terminal.Instant(c.Since))
	table := terminal.Table(out, "NODE\tADDRESS\tSTATE\tRECORD\tLACKS\tVERSION\n")
	for i := range c.Nodes {
		n := &c.Nodes[i]
		terminal.Say(table, "%s\t%s\t%s\t%d\t%d\t%s\n", terminal.Printable(n.Name), terminal.Printable(n.Address), stateOf(n), n.Record, n.Lag, terminal.Printable(n.Version))
	}
	_ = table.Flush() // as say
}

// stateOf is a node in words.
func stateOf(n *admin.ClusterNode) string {
	words := []string{"unreachable"}
	switch {
	case n.Reachable:
		words = []string{"reachable"}
	case !n.SeenAt.IsZero():
		words = []string{fmt.Sprintf("unreachable, last heard at %s", terminal.Instant(n.SeenAt))}
	}
	if n.Self {
		words[0] = "this one"
	}
	if n.Leader {
		words = append(words, "leads")
	}
	switch {
	case !n.Member:
		words = append(words, "guest")
	case !n.Current && (n.Self || n.Reachable):
		words = append(words, "its part is not whole")
	}
	return strings.Join(words, ", ")
}
