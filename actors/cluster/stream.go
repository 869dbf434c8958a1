//go:build !nocluster

package cluster

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	streamName     = "journal"
	subjectJournal = "tasard.journal"
	subjectTail    = "tasard.tail" // each record once more, when it is committed
	subjectFetch   = "$JS.API.DIRECT.GET." + streamName
	headerSequence = "Nats-Sequence"
	headerPending  = "Nats-Num-Pending"
	headerStatus   = "Status"
	accountName    = "$G"

	metaNumber = "tasard-stream" // of the stream, in its description

	askWait  = 2 * time.Second // for an answer of the server
	joinLook = 100 * time.Millisecond
)

// extent is what the leader says of the stream.
type extent struct {
	number      string
	first, last uint64
}

// askExtent asks the leader for it. jetstream.ErrStreamNotFound says that there is none.
func (c *Cluster) askExtent(ctx context.Context) (extent, error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	s, err := c.node.js.Stream(ctx, streamName)
	if err != nil {
		return extent{}, err
	}
	info := s.CachedInfo()
	return extent{number: info.Config.Metadata[metaNumber], first: info.State.FirstSeq, last: info.State.LastSeq}, nil
}

// makeStream makes the stream behind what the founder has. Made twice by the same founder it is one stream.
func (c *Cluster) makeStream(ctx context.Context, number string, last uint64) error {
	ctx, cancel := context.WithTimeout(ctx, 2*askWait)
	defer cancel()
	_, err := c.node.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: streamName, Subjects: []string{subjectJournal}, FirstSeq: last + 1,
		Storage: jetstream.FileStorage, Replicas: len(c.config.Members), Retention: jetstream.LimitsPolicy, MaxMsgSize: payloadBytesMax,
		DenyDelete: true, AllowDirect: true, Duplicates: duplicatesLeast,
		RePublish: &jetstream.RePublish{Source: subjectJournal, Destination: subjectTail},
		Metadata:  map[string]string{metaNumber: number},
	})
	return err
}

// hintRestore is the way out when the members together have lost what a node has.
const hintRestore = "stop all nodes, choose the one with the most records, remove its " + identityName + " and its stream directory, empty the " +
	"directories of the others, and start all members: they form a cluster again from that log"

// duplicatesLeast is how long the server remembers ids of messages, which ours don't have.
const duplicatesLeast = 100 * time.Millisecond

// confirm waits until the stream is known to be the one that this node's copy belongs to, and no shorter than the copy.
func (c *Cluster) confirm(ctx context.Context) error {
	var shorter time.Time
	last := c.opened().Last()
	for {
		e, err := c.askExtent(ctx)
		switch {
		case err != nil:
			c.logger.Debug("the stream does not answer", "cause", err.Error())
			shorter = time.Time{}
		case e.number != c.self.Stream:
			return fmt.Errorf("the cluster has stream %s, this directory is a copy of stream %s", e.number, c.self.Stream)
		case e.last >= last:
			return nil
		case shorter.IsZero() || !c.Standing().Majority:
			shorter = c.config.Clock()
		case c.config.Clock().Sub(shorter) > c.config.confirm:
			return fmt.Errorf("the stream has lost records: it ends with %d, this node has %d: %s", e.last, last, hintRestore)
		}
		if err := pause(ctx, joinLook); err != nil {
			return err
		}
	}
}

// draw draws a number of a stream.
func draw(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("draw the number of the stream: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// missing reports whether the cluster says that it has no stream.
func missing(err error) bool { return errors.Is(err, jetstream.ErrStreamNotFound) }
