//go:build nocluster

package node

import (
	"errors"

	"github.com/tasard/tasard/actors/cluster"
)

// clusterSupported is false in this build, which leaves out the code for clusters. The program is then half as large.
// Cluster.check rejects every configuration of a cluster.
const clusterSupported = false

func openCluster(cluster.Config) (membership, error) {
	return nil, errors.ErrUnsupported
}
