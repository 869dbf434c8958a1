//go:build !nocluster

package cluster

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	streamName     = "journal"
	subjectJournal = "tasard.journal"
	subjectTail    = "tasard.tail" // each record again, once it is committed
	subjectFetch   = "$JS.API.DIRECT.GET." + streamName
	headerSequence = "Nats-Sequence"
	headerPending  = "Nats-Num-Pending"
	headerStatus   = "Status"
	accountName    = "$G"

	metadataStreamID = "tasard-stream" // key of the stream's ID in its metadata

	requestTimeout    = 2 * time.Second // for an answer of the server
	joinRetryInterval = 100 * time.Millisecond
)

// streamState is the state of the stream as its leader reports it.
type streamState struct {
	id          string
	first, last uint64
}

// queryStream asks the leader for the state of the stream. The error is jetstream.ErrStreamNotFound if there is none.
func (c *Cluster) queryStream(ctx context.Context) (streamState, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s, err := c.server.js.Stream(ctx, streamName)
	if err != nil {
		return streamState{}, err
	}
	info := s.CachedInfo()
	return streamState{id: info.Config.Metadata[metadataStreamID], first: info.State.FirstSeq, last: info.State.LastSeq}, nil
}

// createStream creates the stream so that it continues after record last. Repeating it on the same node is harmless.
func (c *Cluster) createStream(ctx context.Context, number string, last uint64) error {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	_, err := c.server.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: streamName, Subjects: []string{subjectJournal}, FirstSeq: last + 1,
		Storage: jetstream.FileStorage, Replicas: len(c.config.Members), Retention: jetstream.LimitsPolicy, MaxMsgSize: payloadBytesMax,
		DenyDelete: true, AllowDirect: true, Duplicates: duplicatesWindow,
		RePublish: &jetstream.RePublish{Source: subjectJournal, Destination: subjectTail},
		Metadata:  map[string]string{metadataStreamID: number},
	})
	return err
}

// hintRestore is the remedy when the members together have lost records that a node has.
const hintRestore = "stop all nodes, choose the one with the most records, remove its " + identityName + " and its stream directory, " +
	"empty the directories of the others, and start all members: they form a cluster again from that log"

// duplicatesWindow is the minimum: the server need not remember message IDs, which are not used here.
const duplicatesWindow = 100 * time.Millisecond

// verifyStream waits until the stream is known to be the one that the local log belongs to, and at least as long as
// that log.
func (c *Cluster) verifyStream(ctx context.Context) error {
	var shorter time.Time
	last := c.Journal().Last()
	for {
		e, err := c.queryStream(ctx)
		switch {
		case err != nil:
			c.logger.Debug("stream does not answer", "cause", err.Error())
			shorter = time.Time{}
		case e.id != c.self.Load().Stream:
			return fmt.Errorf("the cluster has stream %s, this directory belongs to stream %s", e.id, c.self.Load().Stream)
		case e.last >= last:
			return nil
		case shorter.IsZero() || !c.Health().Majority:
			shorter = c.config.Clock()
		case c.config.Clock().Sub(shorter) > c.config.verifyTimeout:
			return fmt.Errorf("the stream has lost records: it ends with %d, this node has %d: %s", e.last, last, hintRestore)
		}
		if err := sleep(ctx, joinRetryInterval); err != nil {
			return err
		}
	}
}

// randomID returns 128 random bits in hexadecimal digits.
func randomID(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("draw a random ID: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
