package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/cluster"
	"github.com/tasard/tasard/engine"
)

// clusterNodesMax bounds the numbers of nodes.
const clusterNodesMax = 64

// clusterOptions say with which other nodes a node is one service; name "" = it is alone.
type clusterOptions struct {
	name     string
	node     int
	members  []clusterMember
	listen   string // "" = the node's own address among the members
	tls      cluster.TLS
	insecure bool
}

// clusterMember is one of the nodes that keep the log.
type clusterMember struct {
	node    int
	address string // host:port
}

// addCluster declares the flags of clusterOptions.
func addCluster(cmd *cobra.Command, o *clusterOptions) {
	flags := cmd.Flags()
	flags.Var(lineValue(&o.name, "NAME", 64), "cluster", "make several nodes one service: the `NAME` of it, the same on each of them")
	flags.Var(countValue(&o.node, 0, clusterNodesMax), "cluster-node", "the number of this node in the cluster, from 1 on and for ever; no two have the same")
	flags.Var(membersValue(&o.members), "cluster-members",
		"a `LIST` of the three or five nodes that keep the log, the same on each node, like 1=10.0.0.1:6222,2=10.0.0.2:6222,3=10.0.0.3:6222; others are guests")
	flags.Var(closedAddressValue(&o.listen), "cluster-listen", "the address on which other nodes come in; without it the node's own among the members")
	flags.Var(pathValue(&o.tls.Authority, "FILE"), "cluster-ca", "a PEM `FILE` with the authority that has signed the certificates of the nodes")
	flags.Var(pathValue(&o.tls.Certificate, "FILE"), "cluster-cert", "a PEM `FILE` with this node's certificate, for the name under which others reach it")
	flags.Var(pathValue(&o.tls.Key, "FILE"), "cluster-key", "a `FILE` with the private key of that certificate, which only its owner and group may read")
	plainSwitch(flags, &o.insecure, "cluster-insecure", "let the nodes speak without certificates; only where all addresses are loopback ones")
}

// membersValue is a list like 1=10.0.0.1:6222,2=10.0.0.2:6222,3=10.0.0.3:6222.
func membersValue(into *[]clusterMember) pflag.Value {
	parse := func(text string) (members []clusterMember, err error) {
		for part := range strings.SplitSeq(text, ",") {
			number, address, ok := strings.Cut(strings.TrimSpace(part), "=")
			m := clusterMember{address: address}
			if m.node, err = strconv.Atoi(number); !ok || err != nil || m.node < 1 || m.node > clusterNodesMax {
				return nil, fmt.Errorf("%q: want a number from 1 to %d, '=' and HOST:PORT, like 1=10.0.0.1:6222", part, clusterNodesMax)
			}
			if _, err := hostOfAddress(address); err != nil {
				return nil, err
			}
			members = append(members, m)
		}
		return members, nil
	}
	show := func(members []clusterMember) string {
		var parts []string
		for _, m := range members {
			parts = append(parts, fmt.Sprintf("%d=%s", m.node, m.address))
		}
		return strings.Join(parts, ",")
	}
	return &value[[]clusterMember]{into, "members", parse, show}
}

// nameOfNode is what a node is called among the others.
func nameOfNode(number int) string { return "node-" + strconv.Itoa(number) }

// checkCluster refuses what can't work before anything is touched.
func (p *process) checkCluster(o *clusterOptions, directory string) error {
	if err := o.check(); err != nil || o.name == "" {
		return err
	}
	if err := p.clusterConfig(o, directory, nil).Check(); err != nil {
		return fail(exitUsage, "--cluster: %w", err)
	}
	if o.tls.Key == "" {
		return nil
	}
	if err := checkKeyFile(o.tls.Key, p.variable(credentialsVariable)); err != nil {
		return err
	}
	if _, err := o.tls.Load(); err != nil {
		return fail(exitBadData, "--cluster: %w", err)
	}
	return nil
}

// check wants all that a cluster needs, and nothing of one where there is none.
func (o *clusterOptions) check() error {
	switch {
	case o.name == "" && (o.node > 0 || len(o.members) > 0 || o.listen != "" || o.insecure || o.tls != cluster.TLS{}):
		return fail(exitUsage, "--cluster-… says something of a cluster, and --cluster does not name it")
	case o.name == "":
		return nil
	case o.node == 0:
		return fail(exitUsage, "--cluster-node is missing: the number of this node, from 1 on")
	case len(o.members) == 0:
		return fail(exitUsage, "--cluster-members is missing: the three or five nodes that keep the log, 1=HOST:PORT,2=…,3=…")
	case o.address() == "":
		return fail(exitUsage, "node %d is none of --cluster-members: as a guest it needs --cluster-listen", o.node)
	}
	return nil
}

// address is where other nodes come in, "" when nobody has said it.
func (o *clusterOptions) address() string {
	own := ""
	for _, m := range o.members {
		if m.node == o.node {
			own = m.address
		}
	}
	return cmp.Or(o.listen, own)
}

// clusterConfig is what the cluster is told.
func (p *process) clusterConfig(o *clusterOptions, directory string, log *slog.Logger) cluster.Config {
	c := cluster.Config{
		Cluster: o.name, Name: nameOfNode(o.node), Node: engine.NodeID(o.node), Listen: o.address(), Dir: directory, TLS: o.tls, //nolint:gosec // at most clusterNodesMax
		Insecure: o.insecure, Version: buildVersion(), Clock: p.clock, Random: p.random, Logger: log,
	}
	for _, m := range o.members {
		c.Members = append(c.Members, cluster.Member{Name: nameOfNode(m.node), Address: m.address})
	}
	return c
}

// joinCluster starts this node's part of the cluster and has its actors write to the log of all nodes; nil for a node that is alone.
func (p *process) joinCluster(ctx context.Context, o *clusterOptions, c *actors.Config) (*cluster.Cluster, error) {
	if o.name == "" {
		return nil, nil
	}
	c.Logger.Info("joining the cluster "+o.name, "node", o.node, "address", o.address())
	p.warnOfCertificate(o, c.Logger)
	joined, err := cluster.Open(ctx, p.clusterConfig(o, c.Dir, c.Logger))
	if err != nil {
		return nil, clusterError(ctx, c.Dir, err)
	}
	awaitMajority(ctx, joined)
	if c.Seal, err = joined.Seal(ctx); err != nil {
		return nil, errors.Join(clusterError(ctx, c.Dir, err), joined.Journal().Close(), leaveCluster(joined))
	}
	c.Journal = joined.Journal()
	return joined, nil
}

// warnOfCertificate tells of one that other nodes will refuse: without them a node may wait for ever.
func (p *process) warnOfCertificate(o *clusterOptions, log *slog.Logger) {
	security, err := o.tls.Load()
	if err != nil || security == nil {
		return // the cluster reads it again, and says what is wrong
	}
	if problem := untimely(security.Certificates[0].Leaf, p.clock()); problem != "" {
		log.Warn(problem+"; the other nodes will refuse it", "file", o.tls.Certificate)
	}
}

const (
	// majorityWait is how long a node that starts waits for the others before it answers: callers wait with it, and no change is refused
	// that would be taken a moment later.
	majorityWait = 5 * time.Second
	majorityLook = 20 * time.Millisecond
)

// awaitMajority returns when changes are possible, or it has waited long enough.
func awaitMajority(ctx context.Context, joined *cluster.Cluster) {
	ctx, cancel := context.WithTimeout(ctx, majorityWait)
	defer cancel()
	look := time.NewTicker(majorityLook)
	defer look.Stop()
	for !joined.Standing().Majority {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// clusterError gives an error of joining its exit code.
func clusterError(ctx context.Context, directory string, err error) error {
	if ctx.Err() != nil {
		return fail(exitInterrupted, "interrupted before the cluster was joined")
	}
	return directoryError(directory, err)
}

// handOverMax is how long a node that stops waits for another one to lead.
const handOverMax = 3 * time.Second

// handOver has another node lead before this one ends, so that changes go on without a pause. Without others there is nobody to wait for.
func (s *service) handOver(ctx context.Context) {
	if s.cluster == nil || !s.cluster.Standing().Majority {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverMax)
	defer cancel()
	_ = s.cluster.Leave(ctx) // then the others elect one when this node is gone
}

// leaveCluster ends this node's part, after its log was closed.
func leaveCluster(joined *cluster.Cluster) error {
	if joined == nil {
		return nil
	}
	if err := joined.Close(); err != nil {
		return fmt.Errorf("leave the cluster: %w", err)
	}
	return nil
}

// collectLease is the lease of the node that collects for all.
const collectLease = "collect"

// collectInTurn collects while this node holds the lease, until ctx ends. It returns when nothing is under way any more.
func (s *service) collectInTurn(ctx context.Context, log *slog.Logger) {
	for {
		lease, err := s.cluster.Acquire(ctx, collectLease)
		if err != nil {
			return // the node ends
		}
		log.Info("this node collects for the cluster")
		s.collection.turn(true)
		select {
		case <-lease.Lost():
			log.Warn("another node may collect for the cluster now")
		case <-ctx.Done():
		}
		s.collection.turn(false)
		lease.Release()
	}
}
