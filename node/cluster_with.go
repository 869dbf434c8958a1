//go:build !nocluster

package node

import (
	"context"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/cluster"
)

const clusterBuilt = true

// joined is cluster.Cluster as a membership.
type joined struct{ *cluster.Cluster }

func openCluster(ctx context.Context, config cluster.Config) (membership, error) {
	opened, err := cluster.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	return joined{opened}, nil
}

func (j joined) journal() actors.Journal { return j.Journal() }

func (j joined) acquire(ctx context.Context, name string) (lease, error) { return j.Acquire(ctx, name) }
