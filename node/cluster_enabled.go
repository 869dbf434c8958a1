//go:build !nocluster

package node

import (
	"context"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/cluster"
	"github.com/tasard/tasard/engine"
)

const clusterSupported = true

// clusterMembership adapts cluster.Cluster to the interface membership.
type clusterMembership struct{ *cluster.Cluster }

func openCluster(config cluster.Config) (membership, error) {
	c, err := cluster.Open(config)
	if err != nil {
		return nil, err
	}
	return clusterMembership{c}, nil
}

func (m clusterMembership) journal(c *Config) actors.Journal {
	return &clusterJournal{cluster: m.Cluster, config: c}
}

// clusterJournal implements actors.Shared. Journal is nil until Join has returned.
type clusterJournal struct {
	*cluster.Journal
	cluster *cluster.Cluster
	config  *Config
}

// Join joins the cluster. It then waits for a majority, because without one the node would reject changes that can
// succeed a moment later. A node with a log spends at most majorityWait on both; one without a log waits until it has
// joined, or ctx ends.
func (j *clusterJournal) Join(ctx context.Context) (loginCodeKey []byte, err error) {
	majorityCtx, cancel := context.WithTimeout(ctx, majorityWait)
	defer cancel()
	if j.Journal, err = j.cluster.Join(ctx); err == nil {
		awaitMajority(majorityCtx, j.cluster)
		loginCodeKey, err = j.cluster.LoginCodeKey(ctx)
	}
	if err != nil {
		return nil, joinError{clusterError(ctx, j.config.Dir, err)}
	}
	return loginCodeKey, nil
}

// Node implements actors.Shared.
func (j *clusterJournal) Node() engine.NodeID { return engine.NodeID(j.config.Cluster.Node) } //nolint:gosec // a small number

// ClusterHealth implements actors.Shared.
func (j *clusterJournal) ClusterHealth() actors.ClusterHealth { return j.cluster.Health() }

// Close implements actors.Journal.
func (j *clusterJournal) Close() error {
	if j.Journal == nil {
		return nil
	}
	return j.Journal.Close()
}

func (m clusterMembership) acquire(ctx context.Context) (clusterLease, error) {
	return m.Acquire(ctx)
}
