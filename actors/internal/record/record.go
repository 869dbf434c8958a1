package record

import (
	"errors"
	"fmt"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// ErrUnknown says that a record or a snapshot holds something that only a newer program understands.
var ErrUnknown = errors.New("written by a newer program; run that one on this directory")

// recordVersion is the newest version of the format of records that this build knows. A record that needs a newer one is refused; new fields
// alone need none.
const recordVersion = 1

// CodeRefused says that a limit against guessing refused a try of a code. It changes nothing: it goes to the log so that the answer takes
// as long as that to a wrong code, and so that an operator finds it.
type CodeRefused struct {
	Email account.EmailID
	At    time.Time
}

// Bundle is what one node of a cluster has written at once: in a log that several nodes write each record is one.
type Bundle struct {
	Node    engine.NodeID
	Token   uint64   // by which the node knows its own
	Records [][]byte // none of them a bundle
}

// envelope is one record: one event.
type envelope struct {
	requires uint64
	kind     fieldNumber // of the event
	event    any
}

// Encode is the record of an event: an engine.Event, account.Event or account.RegistryEvent, *account.Announced,
// *account.AnnouncementWithdrawn, *CodeRefused or *Bundle.
func Encode(event any) ([]byte, error) {
	c := &coder{writing: true, bytes: make([]byte, 0, recordBytes)}
	c.envelope(&envelope{event: event})
	if len(c.bytes) == 0 {
		return nil, fmt.Errorf("encode event: no record holds a %T", event)
	}
	return c.bytes, nil
}

// recordBytes is enough for most records.
const recordBytes = 96

// Decoder reads records and snapshots. What it returns shares no memory with the bytes that it was read from, unless its method says so.
// One goroutine at a time uses it. The zero Decoder is for a few values: it copies each text.
type Decoder struct {
	coder    coder
	envelope envelope

	// Read into again and again.
	state account.State
	idle  account.EvictedState
}

// NewDecoder keeps one copy of texts that occur again and again.
func NewDecoder() *Decoder { return &Decoder{coder: coder{interned: newInternTable()}} }

// UseArena takes the memory of the events to come from m, until it is called again.
func (d *Decoder) UseArena(m *Arena) { d.coder.arena = m }

// decode reads a message.
func decode[T any](d *Decoder, data []byte, v *T, fields func(*coder, *T)) error {
	c := &d.coder
	c.bytes, c.at, c.err = data, 0, nil
	readMessage(c, len(data), v, fields)
	c.bytes = nil
	return c.err
}

// Event reads a record. A record of a kind or version that this build does not know is ErrUnknown; fields that it does not know are passed
// over.
func (d *Decoder) Event(record []byte) (any, error) {
	d.envelope = envelope{}
	if err := decode(d, record, &d.envelope, (*coder).envelope); err != nil {
		return nil, fmt.Errorf("decode record: %w", err)
	}
	if _, bundle := d.envelope.event.(*Bundle); bundle || d.envelope.event == nil {
		return nil, fmt.Errorf("decode record of an unknown kind (%d bytes): %w", len(record), ErrUnknown)
	}
	return d.envelope.event, nil
}

// bundleTag is how a record begins that is a bundle: the number of the field, as a varint.
const bundleTag = "\xaa\x01"

// IsBundle reports that a record is a bundle.
func IsBundle(record []byte) bool {
	return len(record) >= len(bundleTag) && string(record[:len(bundleTag)]) == bundleTag
}

// Bundle reads a record of a log that several nodes write; its records borrow the bytes. What is no bundle was written by a node that was
// alone, before it had others.
func (d *Decoder) Bundle(record []byte) (Bundle, error) {
	if !IsBundle(record) {
		return Bundle{Records: [][]byte{record}}, nil
	}
	d.envelope = envelope{}
	if err := decode(d, record, &d.envelope, (*coder).envelope); err != nil {
		return Bundle{}, fmt.Errorf("decode bundle: %w", err)
	}
	b, is := d.envelope.event.(*Bundle)
	if !is {
		return Bundle{}, errors.New("decode bundle: it is something else as well")
	}
	return *b, nil
}

// Events puts what a record holds behind events: one event, or those of a bundle.
func (d *Decoder) Events(record []byte, events []any) ([]any, error) {
	if !IsBundle(record) {
		event, err := d.Event(record)
		return append(events, event), err
	}
	b, err := d.Bundle(record)
	if err != nil {
		return events, err
	}
	for i, one := range b.Records {
		event, err := d.Event(one)
		if err != nil {
			return events, fmt.Errorf("part %d of a bundle: %w", i, err)
		}
		events = append(events, event)
	}
	return events, nil
}

func (c *coder) envelope(r *envelope) {
	c.version(&r.requires, recordVersion)
	if c.writing {
		for n := firstEventKind; n < len(eventKinds) && !eventKinds[n].code(c, fieldNumber(n), r.event); n++ {
		}
		return
	}
	if c.next != r.kind {
		if event := c.newEvent(); event != nil {
			r.kind, r.event = c.next, event
		}
	}
	if c.next == r.kind && c.next != 0 {
		eventKinds[r.kind].code(c, r.kind, r.event)
	}
}

// version is the oldest version of the format that a reader must know; 0 reads as 1. A writer raises it only for what an older reader must
// not pass over.
func (c *coder) version(v *uint64, known uint64) {
	c.uint64(1, v)
	if *v > known {
		c.fail(fmt.Errorf("format version %d, known up to %d: %w", *v, known, ErrUnknown))
	}
}

// eventKind is a kind of event.
type eventKind struct {
	empty func() any
	code  func(c *coder, n fieldNumber, event any) bool // false for an event of another kind
}

func kindOf[T any](fields func(*coder, *T)) eventKind {
	return eventKind{
		empty: func() any { return new(T) },
		code: func(c *coder, n fieldNumber, event any) bool {
			e, is := event.(*T)
			if is {
				message(c, n, e, fields)
			}
			return is
		},
	}
}

// eventKinds are the kinds of events, by the number of their field.
var eventKinds = [...]eventKind{
	2:  kindOf((*coder).refreshed),
	3:  kindOf((*coder).withdrawn),
	4:  kindOf((*coder).released),
	5:  kindOf((*coder).rejected),
	6:  kindOf((*coder).accountCreated),
	7:  kindOf((*coder).keyCreated),
	8:  kindOf((*coder).keyRevoked),
	9:  kindOf((*coder).leased),
	10: kindOf((*coder).returned),
	11: kindOf((*coder).suspended),
	12: kindOf((*coder).restored),
	13: kindOf((*coder).quotaSet),
	14: kindOf((*coder).codeIssued),
	15: kindOf((*coder).codeFailed),
	16: kindOf((*coder).codeRefused),
	17: kindOf((*coder).sessionOpened),
	18: kindOf((*coder).sessionClosed),
	19: kindOf((*coder).announced),
	20: kindOf((*coder).announcementWithdrawn),
	21: kindOf((*coder).bundle),
}

const firstEventKind = 2

// newEvent is an empty event of the kind that is next, nil for one that this build does not know.
func (c *coder) newEvent() any {
	switch {
	case c.next < firstEventKind || int(c.next) >= len(eventKinds):
		return nil
	case c.arena != nil && c.next == 2:
		return c.arena.newRefreshed()
	case c.arena != nil && c.next == 9:
		return c.arena.newLeased()
	}
	return eventKinds[c.next].empty()
}

func (c *coder) bundle(b *Bundle) {
	c.node(1, &b.Node)
	c.uint64(2, &b.Token)
	c.byteStrings(3, &b.Records)
}
