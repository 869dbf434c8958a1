package record

import (
	"errors"
	"fmt"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// ErrUnknown means that a newer version of the program wrote the record or snapshot.
var ErrUnknown = errors.New("written by a newer version of tasard; use that version")

// recordVersion is the newest version of records that this program can read. Each record states its required version.
const recordVersion = 1

// CodeRefused records a login that was refused because no code was pending, or because of too many wrong codes. It
// changes no state. It informs operators through the log, and makes the response take as long as for a wrong code.
type CodeRefused struct {
	Email account.EmailID
	At    time.Time
}

// Bundle is an event that contains the records of one write. In a cluster each record of the log is a Bundle.
type Bundle struct {
	Node    engine.NodeID
	Token   uint64   // lets Node recognize its own bundle
	Records [][]byte // none of them is a bundle
}

// envelope is the outermost message of a record. It contains one event.
type envelope struct {
	requires uint64      // required version
	kind     fieldNumber // field with the event
	event    any
}

// Encode encodes an engine.Event, account.Event, account.RegistryEvent, *account.DayGranted, *account.Announced,
// *account.AnnouncementWithdrawn, *CodeRefused or *Bundle.
func Encode(event any) ([]byte, error) {
	c := &codec{writing: true, bytes: make([]byte, 0, recordBytes)}
	if envelopeFields(c, &envelope{event: event}); len(c.bytes) == 0 {
		return nil, fmt.Errorf("encode event: no record holds a %T", event)
	}
	return c.bytes, nil
}

const recordBytes = 96 // initial size of the buffer for a record; most records fit into it

// Decoder decodes records and snapshots. Only results of Bundle share memory with the input. Not safe for concurrent
// use.
type Decoder struct {
	codec    codec
	envelope envelope
	state    account.State // memory for results of Account
}

func decode[T any](d *Decoder, data []byte, v *T, fields func(*codec, *T)) error {
	c := &d.codec
	c.bytes, c.pos, c.err = data, 0, nil
	readMessage(c, len(data), v, fields)
	c.bytes = nil
	return c.err
}

// Event decodes a record that is not a bundle. It returns ErrUnknown if the event or the required version is unknown.
func (d *Decoder) Event(record []byte) (any, error) {
	d.envelope = envelope{}
	if err := decode(d, record, &d.envelope, envelopeFields); err != nil {
		return nil, fmt.Errorf("decode record: %w", err)
	}
	if _, bundle := d.envelope.event.(*Bundle); bundle || d.envelope.event == nil {
		return nil, fmt.Errorf("decode record of an unknown kind (%d bytes): %w", len(record), ErrUnknown)
	}
	return d.envelope.event, nil
}

// bundleTag is the encoded tag of the bundle field. Every record that is a bundle begins with it.
const bundleTag = "\xaa\x01"

func isBundle(record []byte) bool {
	return len(record) >= len(bundleTag) && string(record[:len(bundleTag)]) == bundleTag
}

// Bundle decodes a record of a cluster's log. Danger: the result's Records share memory with the input. A record from
// before the cluster was formed is not a bundle; the result then contains only this record.
func (d *Decoder) Bundle(record []byte) (Bundle, error) {
	if !isBundle(record) {
		return Bundle{Records: [][]byte{record}}, nil
	}
	d.envelope = envelope{}
	if err := decode(d, record, &d.envelope, envelopeFields); err != nil {
		return Bundle{}, fmt.Errorf("decode bundle: %w", err)
	}
	b, ok := d.envelope.event.(*Bundle)
	if !ok {
		return Bundle{}, errors.New("decode bundle: it has another event as well")
	}
	return *b, nil
}

// Events decodes a record and all its events. For the Bundle see there.
func (d *Decoder) Events(record []byte) (Bundle, []any, error) {
	b, err := d.Bundle(record)
	if err != nil {
		return b, nil, err
	}
	events := make([]any, len(b.Records))
	for i, data := range b.Records {
		if events[i], err = d.Event(data); err != nil && isBundle(record) {
			err = fmt.Errorf("record %d of a bundle: %w", i, err)
		}
		if err != nil {
			return b, nil, err
		}
	}
	return b, events, nil
}

func envelopeFields(c *codec, r *envelope) {
	c.version(&r.requires, recordVersion)
	if c.writing {
		for n := firstEventKind; n < len(eventKinds) && !eventKinds[n].code(c, fieldNumber(n), r.event); n++ {
		}
		return
	}
	if n := c.nextField; n != r.kind && n >= firstEventKind && int(n) < len(eventKinds) {
		r.kind, r.event = n, eventKinds[n].empty()
	}
	if c.nextField == r.kind && c.nextField != 0 {
		eventKinds[r.kind].code(c, r.kind, r.event)
	}
}

// version writes or reads field 1, the required version. A missing field means version 1. A version higher than known
// is an error.
func (c *codec) version(v *uint64, known uint64) {
	c.uint64(1, v)
	if *v > known {
		c.fail(fmt.Errorf("format version %d, known up to %d: %w", *v, known, ErrUnknown))
	}
}

type eventKind struct {
	empty func() any                                    // returns an event without data
	code  func(c *codec, n fieldNumber, event any) bool // writes or reads field n; false for another kind of event
}

func kindOf[T any](fields func(*codec, *T)) eventKind {
	return eventKind{
		empty: func() any { return new(T) },
		code: func(c *codec, n fieldNumber, event any) bool {
			e, ok := event.(*T)
			if ok {
				message(c, n, e, fields)
			}
			return ok
		},
	}
}

// eventKinds lists the functions for each kind of event, by the number of the event's field in the envelope.
var eventKinds = [...]eventKind{
	2:  kindOf(refreshedFields),
	3:  kindOf(withdrawnFields),
	4:  kindOf(releasedFields),
	5:  kindOf(rejectedFields),
	6:  kindOf(accountCreatedFields),
	7:  kindOf(keyCreatedFields),
	8:  kindOf(keyRevokedFields),
	9:  kindOf(leasedFields),
	10: kindOf(returnedFields),
	11: kindOf(suspendedFields),
	12: kindOf(restoredFields),
	13: kindOf(quotaSetFields),
	14: kindOf(codeIssuedFields),
	15: kindOf(codeFailedFields),
	16: kindOf(codeRefusedFields),
	17: kindOf(sessionOpenedFields),
	18: kindOf(sessionClosedFields),
	19: kindOf(announcedFields),
	20: kindOf(announcementWithdrawnFields),
	21: kindOf(bundleFields),
	22: kindOf(loginUnlockedFields),
	23: kindOf(dayGrantedFields),
}

const firstEventKind = 2

func bundleFields(c *codec, b *Bundle) {
	c.node(1, &b.Node)
	c.uint64(2, &b.Token)
	c.byteStrings(3, &b.Records)
}
