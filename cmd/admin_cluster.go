package cmd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/actors/cluster"
	"github.com/tasard/tasard/engine"
)

// standing is what the management listener asks of a cluster.
type standing interface{ Status() cluster.Status }

// shownCluster is a cluster as one of its nodes sees it.
type shownCluster struct {
	Cluster  string      `json:"cluster"`
	Majority bool        `json:"majority"` // writes can be made durable
	Since    time.Time   `json:"since"`    // of majority
	Leader   string      `json:"leader,omitempty"`
	Nodes    []shownNode `json:"nodes"`
}

// shownNode is one node of it.
type shownNode struct {
	Name      string    `json:"name"`
	Address   string    `json:"address"`
	Version   string    `json:"version,omitempty"`
	Self      bool      `json:"self"`
	Member    bool      `json:"member"` // keeps the log
	Reachable bool      `json:"reachable"`
	SeenAt    time.Time `json:"seenAt,omitzero"`
	Leader    bool      `json:"leader"`  // writes go through it
	Current   bool      `json:"current"` // a member's part of the log is whole and up to date
	Record    uint64    `json:"record"`  // the newest that it has
	Lag       uint64    `json:"lag"`     // records that it lacks
	Snapshot  uint64    `json:"snapshot"`
}

func (m *management) showCluster(*http.Request) (any, error) {
	if m.cluster == nil {
		return nil, &engine.Error{Code: engine.CodeNotFound, Message: "this node is alone: it was started without --cluster"}
	}
	status := m.cluster.Status()
	shown := shownCluster{
		Cluster: status.Cluster, Majority: status.Standing.Majority, Since: status.Standing.Since.UTC(), Leader: status.Standing.Leader,
		Nodes: []shownNode{},
	}
	for i := range status.Nodes {
		n := &status.Nodes[i]
		shown.Nodes = append(shown.Nodes, shownNode{
			Name: n.Name, Address: n.Address, Version: n.Version, Self: n.Self, Member: n.Member, Reachable: n.Reachable, SeenAt: n.Seen,
			Leader: n.Leader, Current: n.Current, Record: n.Last, Lag: n.Lag, Snapshot: n.Snapshot,
		})
	}
	return shown, nil
}

func (p *process) newAdminCluster() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cluster",
		Short:   "Look at the nodes of a cluster",
		Long:    "cluster tells about the other nodes with which the node is one service (tasard serve --cluster).",
		Example: "  tasard admin cluster status --data ./data",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.newClusterStatus())
	return cmd
}

func (p *process) newClusterStatus() *cobra.Command {
	o := &adminOptions{}
	return p.adminCommand(&cobra.Command{
		Use:   "status",
		Short: "Tell how all nodes are, as this one sees them",
		Long: `status tells of each node whether it is reachable, how far its log is behind the newest record that anybody has told of, and
through which node writes go. A member whose part is not whole counts for no majority: one that has just started gets well within
seconds, one that does not has damaged files: stop it, move the directory stream in its data directory away, start it; never two
nodes at once. Ask another node as well when two of them do not see each other: each tells what it sees itself.`,
		Example: `  tasard admin cluster status --data ./data
  tasard admin cluster status --data ./data --json`,
		Args: noArguments,
	}, o, func(ctx context.Context, node *adminNode, _ []string) error {
		found, err := get[shownCluster](ctx, node, http.MethodGet, clusterPath, nil)
		if err != nil {
			return err
		}
		return p.print(o, found, func() { printCluster(p.stdout, &found) })
	})
}

// printCluster writes what stands, then a table of the nodes.
func printCluster(out io.Writer, c *shownCluster) {
	state := "a majority of the nodes is there: changes are possible"
	if !c.Majority {
		state = "no majority: reads and leased requests go on, changes are refused"
	}
	say(out, "%s: %s, since %s\n\n", printable(c.Cluster), state, instant(c.Since))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	say(table, "NODE\tADDRESS\tSTATE\tRECORD\tLACKS\tVERSION\n")
	for i := range c.Nodes {
		n := &c.Nodes[i]
		say(table, "%s\t%s\t%s\t%d\t%d\t%s\n", printable(n.Name), printable(n.Address), n.state(), n.Record, n.Lag, printable(n.Version))
	}
	_ = table.Flush() // as say
}

// state is a node in words.
func (n *shownNode) state() string {
	words := []string{"unreachable"}
	switch {
	case n.Reachable:
		words = []string{"reachable"}
	case !n.SeenAt.IsZero():
		words = []string{fmt.Sprintf("unreachable, last heard at %s", instant(n.SeenAt))}
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
