//go:build !nocluster

package node

import (
	"context"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/cluster"
)

const clusterSupported = true

// clusterMembership adapts cluster.Cluster to the interface membership.
type clusterMembership struct{ *cluster.Cluster }

func openCluster(ctx context.Context, config cluster.Config) (membership, error) {
	c, err := cluster.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	return clusterMembership{c}, nil
}

func (m clusterMembership) journal() actors.Journal { return m.Journal() }

func (m clusterMembership) acquire(ctx context.Context, name string) (clusterLease, error) {
	return m.Acquire(ctx, name)
}
