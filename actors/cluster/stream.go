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
	subjectTail    = "tasard.tail" // subject on which each record is published when it is committed
	subjectFetch   = "$JS.API.DIRECT.GET." + streamName
	headerSequence = "Nats-Sequence"
	headerPending  = "Nats-Num-Pending"
	headerStatus   = "Status"
	accountName    = "$G"

	metadataStreamID = "tasard-stream" // key of the stream ID in the stream's metadata

	requestTimeout    = 2 * time.Second // maximum wait for a reply of the server
	joinRetryInterval = 100 * time.Millisecond
)

// streamState is the state of the stream: the JetStream stream that is the log of the cluster.
type streamState struct {
	id          string
	first, last uint64 // sequences of the oldest and of the newest record
	stream      jetstream.Stream
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
	return streamState{info.Config.Metadata[metadataStreamID], info.State.FirstSeq, info.State.LastSeq, s}, nil
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

// hintRestore says what an operator should do if the stream has lost records that several nodes have.
const hintRestore = "stop all nodes, choose the one with the most records, remove its " + identityName + " and its stream directory, " +
	"empty the directories of the others, and start all members: they form a cluster again from that log"

// hintReplace says what an operator should do if only this node has records that the stream does not have.
const hintReplace = "they were written while this node ran outside the cluster, and the cluster goes on without them: keep a copy of the " +
	"directory, empty it and start this node, and the others fill it"

// duplicatesWindow is how long the server remembers message IDs. It has the smallest value that the server accepts,
// because our messages have no IDs.
const duplicatesWindow = 100 * time.Millisecond

// verifyLog waits for the leader. It returns an error if the stream has another ID than this directory, or if the
// stream does not have all records of the local log (this node's own copy of the stream). last and sum are the sequence
// and the checksum of the newest record in the log.
func (c *Cluster) verifyLog(ctx context.Context, last uint64, sum uint32) error {
	var shorterSince time.Time
	for {
		state, err := c.queryStream(ctx)
		if err == nil && state.id == c.self.Load().Stream && state.last >= last {
			if err = state.verifyRecord(ctx, last, sum); err == nil || errors.Is(err, ErrDiverged) || errors.Is(err, errDamaged) {
				return err
			}
		}
		switch {
		case err != nil:
			c.logger.Debug("stream does not answer", "cause", err.Error())
			shorterSince = time.Time{}
		case state.id != c.self.Load().Stream:
			return fmt.Errorf("the cluster has stream %s, this directory belongs to stream %s", state.id, c.self.Load().Stream)
		case shorterSince.IsZero() || !c.Health().Majority:
			shorterSince = c.config.Clock()
		case c.config.Clock().Sub(shorterSince) > c.config.verifyTimeout:
			return c.longerError(last, state.last)
		}
		if err := sleep(ctx, joinRetryInterval); err != nil {
			return err
		}
	}
}

// verifyRecord compares the newest record of the local log with the record that the stream has at the same sequence. If
// the stream begins just after this sequence, its first frame (record with checksums) has the checksum of the previous
// record. verifyRecord then compares this checksum.
func (s *streamState) verifyRecord(ctx context.Context, last uint64, sum uint32) error {
	sequence := max(last, s.first)
	if last == 0 || sequence > s.last || sequence > last+1 {
		return nil // the stream has neither this record nor the one after it
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := s.stream.GetMsg(ctx, sequence)
	if err != nil {
		return err
	}
	f, err := decodeFrame(sequence, m.Data)
	if err != nil {
		return err
	}
	streamSum := f.previous
	if sequence == last {
		streamSum = checksum(f.record)
	}
	if streamSum != sum {
		return fmt.Errorf("%w: record %d has checksum %08x in the stream and %08x in the log. Records of this log are not in the "+
			"stream: %s", ErrDiverged, last, streamSum, sum, hintReplace)
	}
	return nil
}

// longerError returns the error for a log that has more records than the stream. If a majority of the members does not
// have these records either, the operator should replace this node. Otherwise the operator should restore the cluster.
func (c *Cluster) longerError(last, streamLast uint64) error {
	others := 0
	for _, h := range c.peers.reachable(c.config.Clock()) {
		if c.config.isMember(h.Name) && h.Name != c.config.Name && h.Last <= streamLast {
			others++
		}
	}
	if others > len(c.config.Members)/2 {
		return fmt.Errorf("%w: it ends with record %d, the stream with %d. The other members do not have the records after it: %s",
			ErrDiverged, last, streamLast, hintReplace)
	}
	return fmt.Errorf("the stream has lost records: it ends with %d, this node has %d: %s", streamLast, last, hintRestore)
}

// randomID returns 128 random bits in hexadecimal digits.
func randomID(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("generate a random ID: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
