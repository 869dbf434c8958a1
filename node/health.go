package node

import (
	"net/url"
	"slices"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

// condition reports whether login codes can be sent.
func (p *codeMailer) condition() engine.Condition {
	if p.smtp == nil {
		return engine.HealthyCondition("mail")
	}
	return p.smtp.Condition()
}

// condition reports whether the sources give what they should.
func (c *liveCollector) condition() engine.Condition {
	if collector := c.activeRun().collector; collector != nil {
		return collector.Condition()
	}
	return engine.HealthyCondition("sources")
}

// completeReadiness adds mail and sources to the readiness.
func (n *Node) completeReadiness(shown *admin.Readiness) {
	if n.mailer.smtp != nil {
		stats := admin.MailStats(n.mailer.smtp.Stats())
		shown.Mail = &stats
	}
	for _, h := range n.SourceHealth() {
		switch h.State {
		case collectors.Failing, collectors.CircuitOpen, collectors.Quarantined:
			shown.FailingSources = append(shown.FailingSources, admin.FailingSource{ID: h.SourceID, State: string(h.State), Failure: h.Failure.Error()})
		}
	}
}

// SourceOff is the state of sources that are not collected.
const SourceOff = "off"

// SourceHealth returns the health of every source, by id; nil when the node does not collect.
func (n *Node) SourceHealth() []collectors.Health { return n.collector.activeRun().health() }

func (c *collectorRun) health() []collectors.Health {
	if c.collector == nil {
		return nil
	}
	return c.collector.Health()
}

// describe returns every source with its health.
func (c *liveCollector) describe() admin.Sources {
	now := c.activeRun()
	shown := DescribeSources(now.set)
	shown.Collecting = now.collector != nil
	health := now.health()
	for i := range health { // both are sorted by id, and have the same definitions
		shown.Sources[i].State, shown.Sources[i].Health = string(health[i].State), describeHealth(&health[i])
	}
	return shown
}

// DescribeSources returns the sources of definitions without health.
func DescribeSources(set *source.Set) admin.Sources {
	shown := admin.Sources{Sources: []admin.Source{}}
	for _, d := range set.Definitions() {
		one := admin.Source{
			ID: d.ID, Name: d.Name, Institution: d.Institution, URL: d.URL, Host: hostOf(d), Priority: d.Priority,
			UpstreamSource: d.UpstreamSource, Methods: methodsOf(d), State: SourceOff, Disabled: d.Disabled, Note: d.Note,
		}
		if d.Disabled != "" {
			one.State = string(collectors.Disabled)
		}
		shown.Sources = append(shown.Sources, one)
	}
	return shown
}

// hostOf returns the host of the source's first request.
func hostOf(d *source.Definition) string {
	address, err := url.Parse(d.Pages[0].Requests[0].URL)
	if err != nil {
		return "" // refused when definitions are read
	}
	return address.Hostname()
}

// methodsOf returns the extraction methods of a source.
func methodsOf(d *source.Definition) []string {
	var methods []string
	for i := range d.Pages {
		methods = append(methods, string(d.Pages[i].Extract.Method))
	}
	slices.Sort(methods)
	return slices.Compact(methods)
}

func describeHealth(h *collectors.Health) *admin.SourceHealth {
	shown := &admin.SourceHealth{
		Running: h.Running, LastTry: h.LastTry, LastSuccess: h.LastSuccess, LastSlot: h.LastSlot, NextRun: h.NextRun,
		DurationMillis: h.Duration.Milliseconds(), Runs: h.Runs, ConsecutiveFailures: h.ConsecutiveFailures,
		Read: h.Read, Accepted: h.Accepted, Quarantined: h.Quarantined, Repeated: h.Repeated, Digests: h.Digests, Notes: h.Notes,
		UnchangedSince: h.UnchangedSince, Frozen: h.Frozen,
	}
	if h.Failure.Kind != "" {
		shown.Failure = &admin.SourceFailure{Kind: string(h.Failure.Kind), Page: h.Failure.Page, Detail: h.Failure.Detail, At: h.FailedAt}
	}
	return shown
}

// describeCluster returns the cluster as this node sees it.
func (n *Node) describeCluster() admin.Cluster {
	status := n.cluster.Status()
	shown := admin.Cluster{
		Cluster: status.Cluster, Majority: status.Health.Majority, Since: status.Health.Since.UTC(), Leader: status.Health.Leader,
		Nodes: []admin.ClusterNode{},
	}
	for i := range status.Nodes {
		other := &status.Nodes[i]
		shown.Nodes = append(shown.Nodes, admin.ClusterNode{
			Name: other.Name, Address: other.Address, Version: other.Version, Self: other.Self, Member: other.Member, Reachable: other.Reachable,
			SeenAt: other.LastSeen, Leader: other.Leader, Current: other.Current, Record: other.Last, Lag: other.Lag, Snapshot: other.Snapshot,
		})
	}
	return shown
}
