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

// newest is the newest version of the format of records that this build knows. A record that needs a newer one is refused; new fields
// alone need none.
const newest = 1

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

// one is one record: one event.
type one struct {
	requires uint64
	kind     field // of the event
	event    any
}

// Encode is the record of an event: an engine.Event, account.Event or account.RegistryEvent, *account.Announced,
// *account.AnnouncementWithdrawn, *CodeRefused or *Bundle.
func Encode(event any) ([]byte, error) {
	c := &coder{writing: true, bytes: make([]byte, 0, recordBytes)}
	c.one(&one{event: event})
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
	coder coder
	one   one

	// Read into again and again.
	state account.State
}

// NewDecoder keeps one copy of texts that occur again and again.
func NewDecoder() *Decoder { return &Decoder{coder: coder{texts: newTexts()}} }

// Use takes the memory of the events to come from m, until it is called again.
func (d *Decoder) Use(m *Memory) { d.coder.memory = m }

// read reads a message.
func read[T any](d *Decoder, data []byte, v *T, fields func(*coder, *T)) error {
	c := &d.coder
	c.bytes, c.at, c.err = data, 0, nil
	readTo(c, len(data), v, fields)
	c.bytes = nil
	return c.err
}

// Event reads a record. A record of a kind or version that this build does not know is ErrUnknown; fields that it does not know are passed
// over.
func (d *Decoder) Event(record []byte) (any, error) {
	d.one = one{}
	if err := read(d, record, &d.one, (*coder).one); err != nil {
		return nil, fmt.Errorf("decode record: %w", err)
	}
	if _, bundle := d.one.event.(*Bundle); bundle || d.one.event == nil {
		return nil, fmt.Errorf("decode record of an unknown kind (%d bytes): %w", len(record), ErrUnknown)
	}
	return d.one.event, nil
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
	d.one = one{}
	if err := read(d, record, &d.one, (*coder).one); err != nil {
		return Bundle{}, fmt.Errorf("decode bundle: %w", err)
	}
	b, is := d.one.event.(*Bundle)
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

func (c *coder) one(r *one) {
	c.version(&r.requires, newest)
	if c.writing {
		for n := firstKind; n < len(kinds) && !kinds[n].code(c, field(n), r.event); n++ {
		}
		return
	}
	if c.next != r.kind {
		if event := c.newEvent(); event != nil {
			r.kind, r.event = c.next, event
		}
	}
	if c.next == r.kind && c.next != 0 {
		kinds[r.kind].code(c, r.kind, r.event)
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

// kind is a kind of event.
type kind struct {
	empty func() any
	code  func(c *coder, n field, event any) bool // false for an event of another kind
}

func of[T any](fields func(*coder, *T)) kind {
	return kind{
		empty: func() any { return new(T) },
		code: func(c *coder, n field, event any) bool {
			e, is := event.(*T)
			if is {
				message(c, n, e, fields)
			}
			return is
		},
	}
}

// kinds are the kinds of events, by the number of their field.
var kinds = [...]kind{
	2:  of((*coder).refreshed),
	3:  of((*coder).withdrawn),
	4:  of((*coder).released),
	5:  of((*coder).rejected),
	6:  of((*coder).accountCreated),
	7:  of((*coder).keyCreated),
	8:  of((*coder).keyRevoked),
	9:  of((*coder).leased),
	10: of((*coder).returned),
	11: of((*coder).suspended),
	12: of((*coder).restored),
	13: of((*coder).allowanceSet),
	14: of((*coder).codeIssued),
	15: of((*coder).codeFailed),
	16: of((*coder).codeRefused),
	17: of((*coder).sessionOpened),
	18: of((*coder).sessionClosed),
	19: of((*coder).announced),
	20: of((*coder).announcementWithdrawn),
	21: of((*coder).bundle),
}

const firstKind = 2

// newEvent is an empty event of the kind that is next, nil for one that this build does not know.
func (c *coder) newEvent() any {
	switch {
	case c.next < firstKind || int(c.next) >= len(kinds):
		return nil
	case c.memory != nil && c.next == 2:
		return c.memory.newRefreshed()
	case c.memory != nil && c.next == 9:
		return c.memory.newLeased()
	}
	return kinds[c.next].empty()
}

func (c *coder) bundle(b *Bundle) {
	c.node(1, &b.Node)
	c.uint64(2, &b.Token)
	c.lists(3, &b.Records)
}
