//go:build nocluster

package node

import (
	"context"
	"errors"

	"github.com/tasard/tasard/actors/cluster"
)

// clusterSupported is false in this build, which is half as large: Cluster.check refuses every cluster.
const clusterSupported = false

func openCluster(context.Context, cluster.Config) (membership, error) {
	return nil, errors.ErrUnsupported
}
