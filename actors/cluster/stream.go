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

	metadataStreamID = "tasard-stream" // of the stream, in its description

	requestTimeout    = 2 * time.Second // for an answer of the server
	joinRetryInterval = 100 * time.Millisecond
)

// streamState is what the leader says of the stream.
type streamState struct {
	id          string
	first, last uint64
}

// queryStream asks the leader for it. jetstream.ErrStreamNotFound says that there is none.
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

// createStream makes the stream behind what the founder has. Made twice by the same founder it is one stream.
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

// hintRestore is the way out when the members together have lost what a node has.
const hintRestore = "stop all nodes, choose the one with the most records, remove its " + identityName + " and its stream directory, empty the " +
	"directories of the others, and start all members: they form a cluster again from that log"

// duplicatesWindow is how long the server remembers ids of messages, which ours don't have.
const duplicatesWindow = 100 * time.Millisecond

// verifyTimeout waits until the stream is known to be the one that this node's copy belongs to, and no shorter than the copy.
func (c *Cluster) verifyStream(ctx context.Context) error {
	var shorter time.Time
	last := c.openJournal().Last()
	for {
		e, err := c.queryStream(ctx)
		switch {
		case err != nil:
			c.logger.Debug("the stream does not answer", "cause", err.Error())
			shorter = time.Time{}
		case e.id != c.self.Stream:
			return fmt.Errorf("the cluster has stream %s, this directory is a copy of stream %s", e.id, c.self.Stream)
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

// randomID draws a number of a stream.
func randomID(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("draw the number of the stream: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// isStreamMissing reports whether the cluster says that it has no stream.
func isStreamMissing(err error) bool { return errors.Is(err, jetstream.ErrStreamNotFound) }
