package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/cluster"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Cluster configures a node of a cluster. Without Name the node is not in a cluster.
type Cluster struct {
	Name    string
	Node    int      // number of this node, from 1; unique in the cluster, never changed
	Members []Member // the three or five nodes of the cluster, this one among them; the same list on each node
	Listen  string   // address for other nodes; "" means the address of this node in Members
	Secret  string   // file with one line that only the nodes know, the same on each node
}

// Member is a node that stores the log of a cluster.
type Member = cluster.Member

func (o *Cluster) check(c *Config) error {
	if o.Name == "" {
		others := o.Node > 0 || len(o.Members) > 0 || o.Listen != "" || o.Secret != ""
		return invalid(others, "Cluster.Name", "missing, but other settings of a cluster are given")
	}
	if err := errors.Join(
		invalid(o.Node == 0, "Cluster.Node", "missing: the number of this node, from 1 on"),
		invalid(len(o.Members) == 0, "Cluster.Members", "missing: the three or five nodes that keep the log, 1=HOST:PORT,2=…,3=…"),
		invalid(o.Secret == "", "Cluster.Secret", "missing: a file with a line that only the nodes know, as openssl rand -base64 32 makes it"),
	); err != nil {
		return err
	}
	config, err := o.config(c)
	if err != nil {
		return err
	}
	if err := config.Check(); err != nil {
		return errorf(Invalid, "Cluster", "%w", err)
	}
	return nil
}

// CheckSingle returns an error if the data directory belongs to a node of a cluster. Call it before changing the
// directory of a stopped node, because a cluster rejects a node with local changes.
func CheckSingle(dir string) error {
	m, err := cluster.ReadMembership(dir)
	switch {
	case err != nil:
		return errorf(BadFile, "Dir", "%w", err)
	case m.Cluster != "":
		return errorf(BadFile, "Dir", "%s belongs to %s of the cluster %s, which does not take a node back that was changed without it; "+
			"start it with the settings of the cluster (--cluster), or leave it for good (tasard admin cluster leave)", dir, m.Node, m.Cluster)
	}
	return nil
}

// LeaveCluster turns the data directory of a stopped cluster node into that of a single node, with all records. It
// returns the names of the node and of the cluster. Danger: the cluster never takes the directory back.
func LeaveCluster(dir string) (node, clusterName string, err error) {
	if err := checkDir(dir); err != nil {
		return "", "", err
	}
	m, err := cluster.ReadMembership(dir)
	switch {
	case err != nil:
		return "", "", errorf(BadFile, "Dir", "%w", err)
	case m.Cluster == "":
		return "", "", errorf(BadFile, "Dir", "%s belongs to no cluster", dir)
	}
	if err := cluster.Leave(dir); err != nil {
		return "", "", directoryError(dir, fmt.Errorf("leave the cluster %s: %w", m.Cluster, err))
	}
	return m.Node, m.Cluster, nil
}

// RefillHint returns advice for the operator of a node with a damaged log: how the node gets its records from the
// cluster. It returns "" for a directory outside a cluster.
func RefillHint(dir string) string {
	m, err := cluster.ReadMembership(dir)
	if err != nil || m.Cluster == "" {
		return ""
	}
	return fmt.Sprintf("the other nodes of the cluster %s have these records: keep a copy of the directory, empty it and start the node, and they "+
		"fill it", m.Cluster)
}

func (o *Cluster) config(c *Config) (cluster.Config, error) {
	secret, err := ReadSecret(o.Secret, c.Credentials)
	if err != nil {
		return cluster.Config{}, &Error{BadFile, "Cluster.Secret", err}
	}
	return cluster.Config{
		Cluster: o.Name, Node: engine.NodeID(o.Node), Listen: o.Listen, Members: o.Members, Dir: c.Dir, //nolint:gosec // a small number
		Secret: secret.Reveal(), Version: c.Version, Clock: c.Clock, Random: c.Random, Logger: c.Logger,
	}, nil
}

// joinCluster starts this node's part of the cluster, and makes the cluster's log the journal of the actors. The actors
// call clusterJournal.Join after their start. joinCluster returns nil without a cluster.
func joinCluster(ctx context.Context, config *Config, c *actors.Config) (*cluster.Cluster, error) {
	o := &config.Cluster
	if o.Name == "" {
		return nil, nil
	}
	clusterConfig, err := o.config(config)
	if err != nil {
		return nil, err
	}
	member, err := cluster.Open(clusterConfig)
	if err != nil {
		return nil, clusterError(ctx, config.Dir, err)
	}
	c.Journal = &clusterJournal{cluster: member, config: &clusterConfig}
	return member, nil
}

// clusterJournal implements actors.Shared. Journal is nil until Join has returned.
type clusterJournal struct {
	*cluster.Journal
	cluster *cluster.Cluster
	config  *cluster.Config
}

// Join joins the cluster.
func (j *clusterJournal) Join(ctx context.Context) (loginCodeKey []byte, err error) {
	if j.Journal, err = j.cluster.Join(ctx); err != nil {
		return nil, joinError{clusterError(ctx, j.config.Dir, err)}
	}
	return j.cluster.LoginCodeKey(), nil
}

// Node implements actors.Shared.
func (j *clusterJournal) Node() engine.NodeID { return j.config.Node }

// ClusterHealth implements actors.Shared.
func (j *clusterJournal) ClusterHealth() actors.ClusterHealth { return j.cluster.Health() }

// Close implements actors.Journal.
func (j *clusterJournal) Close() error {
	if j.Journal == nil {
		return nil
	}
	return j.Journal.Close()
}

// joinError is an error of joining the cluster. The node has changed nothing.
type joinError struct{ error }

const (
	listenCheckInterval = 500 * time.Millisecond
	listenChecksMax     = 10
)

// listenWhenReady listens for clients on address when the node is ready. Until then their connections are refused, so
// they try another node; an error response might reach users. Without a majority the node is not ready soon, so it
// listens at the next check. In any case it listens after listenChecksMax checks.
func (n *Node) listenWhenReady(ctx context.Context, address string) (net.Listener, error) {
	ticker := time.NewTicker(listenCheckInterval)
	defer ticker.Stop()
	for checks, ready := 0, false; !ready; checks++ {
		select {
		case <-n.system.Ready():
			ready = true
		case <-ticker.C:
			ready = checks+1 == listenChecksMax || !majorityReachable(n.cluster.Status().Nodes)
		case <-n.system.Done():
			return nil, StopCause(n.system)
		case <-ctx.Done():
			return nil, clusterError(ctx, n.config.Dir, ctx.Err())
		}
	}
	return Listen(address, "HTTP.Listen")
}

func majorityReachable(nodes []engine.ClusterNode) bool {
	balance := 0 // reachable members less the others
	for i := range nodes {
		switch n := &nodes[i]; {
		case n.Member && (n.Self || n.Reachable):
			balance++
		case n.Member:
			balance--
		}
	}
	return balance > 0
}

// clusterError converts an error of joining the cluster to an Error with advice for the operator, like directoryError.
// If ctx has ended, the error's kind is Interrupted.
func clusterError(ctx context.Context, dir string, err error) error {
	var damageErr *wal.DamageError
	switch {
	case errors.Is(err, cluster.ErrDiverged), errors.Is(err, cluster.ErrUnusable):
		return errorf(BadFile, "Dir", "%w", err)
	case errors.As(err, &damageErr):
		damageErr.Hint = cmp.Or(RefillHint(dir), damageErr.Hint)
	}
	if ctx.Err() != nil {
		return errorf(Interrupted, "", "interrupted before the cluster was joined")
	}
	return directoryError(dir, err)
}

// transferMax limits how long a stopping node waits for another node to become the leader. The leader handles all
// writes to the cluster's log.
const transferMax = 3 * time.Second

// transferLeadership moves the leadership before this node stops, so that changes continue without a pause.
func (n *Node) transferLeadership(ctx context.Context) {
	if n.cluster == nil || !n.cluster.Health().Majority {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), transferMax)
	defer cancel()
	_ = n.cluster.StepDown(ctx) // after an error, the other nodes elect a leader when this node has stopped
}

// leaveCluster closes the connection to the cluster. The journal must be closed first.
func leaveCluster(member *cluster.Cluster) error {
	if member == nil {
		return nil
	}
	if err := member.Close(); err != nil {
		return fmt.Errorf("leave the cluster: %w", err)
	}
	return nil
}

// collectWhileLeading collects (fetches the rates from the sources) while this node leads, until ctx ends. When it
// returns, no collection is in progress.
func (n *Node) collectWhileLeading(ctx context.Context) {
	n.cluster.Lead(ctx, func(leads bool) {
		if leads {
			n.config.Logger.Info("this node collects for the cluster")
			n.collector.start(ctx)
			return
		}
		if ctx.Err() == nil {
			n.config.Logger.Warn("another node may collect for the cluster now")
		}
		n.collector.pause()
	})
}
