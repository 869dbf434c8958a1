package actors

import (
	"errors"
	"fmt"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

const (
	// bundleBytesMax bounds a bundle. It leaves room for what a stream puts around it: a message of one has at most 1 MiB.
	bundleBytesMax = 1<<20 - 16<<10
	// bundleHeadBytes is what a bundle needs beside its records: its kind and length, node and token.
	bundleHeadBytes = 32
	// bundleRecordBytes is what it needs for each record beside the record: a tag, and a length below 2 MiB.
	bundleRecordBytes = 4
)

// The relations that the limits rest on.
const (
	_ = uint(wal.RecordBytesMax - bundleBytesMax)
	_ = uint(recordOverheadBytes - bundleRecordBytes)
	_ = uint(bundleBytesMax - bundleHeadBytes - shardBytesMax - shardRecordsMax*bundleRecordBytes)
)

// bundle is what one node of several has written at once.
type bundle struct {
	node    engine.NodeID
	token   uint64 // by which the node knows its own
	records [][]byte
}

// bundleTag is how a record begins that is a bundle: the number of the field, as a varint.
const bundleTag = "\xaa\x01"

func isBundle(record []byte) bool {
	return len(record) >= len(bundleTag) && string(record[:len(bundleTag)]) == bundleTag
}

// encode makes one record of a bundle.
func (b *bundle) encode() ([]byte, error) {
	record := &Record{Event: &Record_Bundle{&RecordBundle{Node: uint32(b.node), Token: b.token, Records: b.records}}}
	data, err := record.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode bundle: %w", err)
	}
	return data, nil
}

// bundle reads a record of a log that several nodes write; its records borrow the bytes. What is no bundle was written by a node that was
// alone, before it had others.
func (d *decoder) bundle(record []byte) (bundle, error) {
	if !isBundle(record) {
		return bundle{records: [][]byte{record}}, nil
	}
	outer := &d.record
	outer.Requires, outer.Event = 0, nil
	if err := outer.UnmarshalVTUnsafe(record); err != nil {
		return bundle{}, fmt.Errorf("decode bundle: %w", err)
	}
	held, is := outer.Event.(*Record_Bundle)
	switch {
	case outer.Requires > recordVersion:
		return bundle{}, fmt.Errorf("decode bundle of format version %d, known up to %d: %w", outer.Requires, recordVersion, ErrUnknownRecord)
	case !is || held.Bundle == nil:
		return bundle{}, errors.New("decode bundle: it is something else as well")
	}
	d.err = nil
	b := bundle{d.node(held.Bundle.Node), held.Bundle.Token, held.Bundle.Records}
	if d.err != nil {
		return bundle{}, fmt.Errorf("decode bundle: %w", d.err)
	}
	return b, nil
}

// decodeRecord puts what a record holds behind events: one event, or those of a bundle.
func (d *decoder) decodeRecord(record []byte, events []any) ([]any, error) {
	if !isBundle(record) {
		event, err := d.decodeEvent(record)
		return append(events, event), err
	}
	b, err := d.bundle(record)
	if err != nil {
		return events, err
	}
	for i, one := range b.records {
		event, err := d.decodeEvent(one)
		if err != nil {
			return events, fmt.Errorf("part %d of a bundle: %w", i, err)
		}
		events = append(events, event)
	}
	return events, nil
}
