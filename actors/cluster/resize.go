//go:build !nocluster

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// resize makes the members in the configuration store the JetStream streams, after the list of members has changed. It
// changes one thing at a time, and the next call goes on:
//
//	grow     the streams get replicas on the new members
//	shrink   the streams lose the replicas on the removed members, which must be stopped
//	remove   JetStream's metadata group forgets the removed members, so that they do not count for its majority. Another
//	         member gets the replicas that are still on them
//
// Only the leader of the log's stream does this. It waits until all members are reachable and all nodes have the same
// list, because JetStream can lose records if nodes fail during a change of members.
func (c *Cluster) resize() {
	if !c.isLeader() || !c.Health().Majority || !c.sameMembers() {
		return
	}
	info, err := c.server.nats.Jsz(&server.JSzOptions{Account: accountName, Streams: true, Config: true})
	if err != nil || info.Meta == nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, requestTimeout)
	defer cancel()
	if err := c.resizeStep(ctx, info); err != nil && !errors.Is(err, context.Canceled) {
		c.logger.Info("the members of the cluster are not changed yet", "cause", err.Error())
	}
}

// sameMembers reports whether all members are reachable, and all reachable nodes have the same list of members.
func (c *Cluster) sameMembers() bool {
	own, members := c.config.memberNames(), 0
	for _, h := range c.peers.reachable(c.config.Clock()) {
		if !slices.Equal(h.Members, own) {
			return false
		}
		if c.config.isMember(h.Name) {
			members++
		}
	}
	return members == len(own)
}

// resizeStep takes the next step of resize.
func (c *Cluster) resizeStep(ctx context.Context, info *server.JSInfo) error {
	removed := slices.DeleteFunc(slices.Clone(info.Meta.Replicas), func(p *server.PeerInfo) bool { return c.config.isMember(p.Name) })
	if i := slices.IndexFunc(removed, func(p *server.PeerInfo) bool { return !p.Offline }); i >= 0 {
		c.logger.Debug("a removed member has not stopped yet", "node", removed[i].Name)
		return nil
	}
	if info.Meta.Size-len(removed) != len(c.config.Members) {
		c.logger.Debug("a new member is not in the metadata group yet", "size", info.Meta.Size)
		return nil
	}
	for _, account := range info.AccountDetails {
		for i := range account.Streams {
			s := &account.Streams[i]
			if s.Config.Replicas != len(c.config.Members) {
				return c.resizeStream(ctx, s.Name)
			}
			if s.Cluster == nil || s.Cluster.Desired != nil || len(s.Cluster.Replicas)+1 != len(c.config.Members) {
				return nil // the previous step is not complete
			}
		}
	}
	if len(removed) == 0 {
		return nil
	}
	c.logger.Info("removing a member from the cluster", "member", removed[0].Name)
	return c.removePeer(ctx, removed[0].Name)
}

// resizeStream changes the number of a stream's replicas to the number of members.
func (c *Cluster) resizeStream(ctx context.Context, name string) error {
	s, err := c.server.js.Stream(ctx, name)
	if err != nil {
		return err
	}
	config := s.CachedInfo().Config
	c.logger.Info("changing the number of members that store a stream", "stream", name, "from", config.Replicas, "to", len(c.config.Members))
	config.Replicas = len(c.config.Members)
	_, err = c.server.js.UpdateStream(ctx, config)
	return err
}

// removePeer removes a stopped node from JetStream's metadata group. Only the system account of the server may do this.
func (c *Cluster) removePeer(ctx context.Context, name string) error {
	conn, err := nats.Connect("", nats.InProcessServer(c.server.nats), nats.UserInfo(systemUser, ""))
	if err != nil {
		return err
	}
	defer conn.Close()
	request, err := json.Marshal(server.JSApiMetaServerRemoveRequest{Server: name})
	if err != nil {
		return err
	}
	reply, err := conn.RequestWithContext(ctx, server.JSApiRemoveServer, request)
	if err != nil {
		return err
	}
	var answer server.JSApiMetaServerRemoveResponse
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return fmt.Errorf("remove %s: %w", name, answer.Error)
	}
	return nil
}
