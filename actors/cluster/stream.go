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
	subjectTail    = "tasard.tail" // each record is published here when it is committed
	subjectFetch   = "$JS.API.DIRECT.GET." + streamName
	headerSequence = "Nats-Sequence"
	headerPending  = "Nats-Num-Pending"
	headerStatus   = "Status"
	accountName    = "$G"

	metadataStreamID = "tasard-stream" // key of the stream ID in the stream's metadata

	requestTimeout    = 2 * time.Second // maximum wait for a reply of the server
	joinRetryInterval = 100 * time.Millisecond
)

type streamState struct {
	id          string
	first, last uint64 // sequences
}

// queryStream asks the leader for the state of the stream. It returns jetstream.ErrStreamNotFound if there is no
// stream.
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

// createStream creates the stream. The sequence of its first record will be last+1. A second call with the same
// arguments has no effect.
func (c *Cluster) createStream(ctx context.Context, id string, last uint64) error {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	_, err := c.server.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: streamName, Subjects: []string{subjectJournal}, FirstSeq: last + 1,
		Storage: jetstream.FileStorage, Replicas: len(c.config.Members), Retention: jetstream.LimitsPolicy, MaxMsgSize: payloadBytesMax,
		DenyDelete: true, AllowDirect: true, Duplicates: duplicatesWindow,
		RePublish: &jetstream.RePublish{Source: subjectJournal, Destination: subjectTail},
		Metadata:  map[string]string{metadataStreamID: id},
	})
	return err
}

// hintRestore says what an operator should do if the stream has lost records that a node still has.
const hintRestore = "stop all nodes, choose the one with the most records, remove its " + identityName + " and its stream directory, " +
	"empty the directories of the others, and start all members: they form a cluster again from that log"

// duplicatesWindow has the smallest value that the server accepts, because we do not use message IDs.
const duplicatesWindow = 100 * time.Millisecond

// verifyStream waits until the leader reports the state of the stream. It returns an error if the stream is not the
// stream of this directory. It also returns an error if the stream lacks records of the local log for longer than
// verifyTimeout.
func (c *Cluster) verifyStream(ctx context.Context) error {
	var shorterSince time.Time
	last := c.Journal().Last()
	for {
		state, err := c.queryStream(ctx)
		switch {
		case err != nil:
			c.logger.Debug("stream does not answer", "cause", err.Error())
			shorterSince = time.Time{}
		case state.id != c.self.Load().Stream:
			return fmt.Errorf("the cluster has stream %s, this directory belongs to stream %s", state.id, c.self.Load().Stream)
		case state.last >= last:
			return nil
		case shorterSince.IsZero() || !c.Health().Majority:
			shorterSince = c.config.Clock()
		case c.config.Clock().Sub(shorterSince) > c.config.verifyTimeout:
			return fmt.Errorf("the stream has lost records: it ends with %d, this node has %d: %s", state.last, last, hintRestore)
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
		return "", fmt.Errorf("generate a random ID: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
