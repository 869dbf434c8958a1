package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tasard/tasard/actors/cluster"
)

// clusterMetrics are the nodes of a cluster as one of them sees them. How far this one is, is the number of its log's newest record.
type clusterMetrics struct {
	status func() cluster.Status

	majority, reachable, leads, current, lag family
}

func newClusterMetrics(status func() cluster.Status) *clusterMetrics {
	return &clusterMetrics{
		status:    status,
		majority:  gaugeFamily("cluster_majority", "1 when enough nodes are there to make a change durable, else 0."),
		reachable: gaugeFamily("cluster_node_up", "1 when this node has heard of a node lately, else 0.", "node"),
		leads:     gaugeFamily("cluster_node_leads", "1 when changes go through a node, else 0.", "node"),
		current:   gaugeFamily("cluster_node_current", "1 when a member's part of the log is whole and up to date, else 0.", "node"),
		lag:       gaugeFamily("cluster_node_lag_records", "Records that another node has and a node has not.", "node"),
	}
}

// Describe is prometheus.Collector.
func (m *clusterMetrics) Describe(all chan<- *prometheus.Desc) {
	describe(all, m.majority, m.reachable, m.leads, m.current, m.lag)
}

// Collect is prometheus.Collector.
func (m *clusterMetrics) Collect(all chan<- prometheus.Metric) {
	status := m.status()
	give(all, m.majority, oneIf(status.Standing.Majority))
	for i := range status.Nodes {
		n := &status.Nodes[i]
		give(all, m.reachable, oneIf(n.Reachable || n.Self), n.Name)
		give(all, m.leads, oneIf(n.Leader), n.Name)
		if n.Reachable || n.Self {
			give(all, m.lag, n.Lag, n.Name)
		}
		if n.Member && (n.Reachable || n.Self) {
			give(all, m.current, oneIf(n.Current), n.Name)
		}
	}
}

func oneIf(so bool) int {
	if so {
		return 1
	}
	return 0
}
