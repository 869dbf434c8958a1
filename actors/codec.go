package actors

import (
	"fmt"
	"time"

	"github.com/tasard/tasard/engine"
)

// recordVersion is the newest version of the record format that this build knows. A record that needs a
// newer one is refused; new fields alone need none.
const recordVersion = 1

// snapshotVersion is the same of snapshots. Parts with accounts need 2: who does not know them must not
// take the rest for the whole.
const snapshotVersion = 2

const secondsBeforeUnix = 62_135_596_800 // from 0001-01-01T00:00:00Z, the zero instant, to 1970

// encodeEvent is the record of an event: an engine.Event, engine.AccountEvent or engine.RegistryEvent,
// *engine.Announced, *engine.AnnouncementWithdrawn or *codeRefused.
func encodeEvent(event any) ([]byte, error) {
	record := &Record{}
	switch e := event.(type) {
	case engine.AccountEvent:
		record.Event = accountRecord(e)
	case engine.RegistryEvent:
		record.Event = registryRecord(e)
	case *codeRefused:
		record.Event = &Record_CodeRefused{codeRefusedRecord(e)}
	case *engine.Announced:
		record.Event = &Record_Announced{announcedRecord(e.Transition)}
	case *engine.AnnouncementWithdrawn:
		record.Event = &Record_AnnouncementWithdrawn{announcementWithdrawnRecord(e)}
	case *engine.Refreshed:
		record.Event = &Record_Refreshed{refreshedRecord(e)}
	case *engine.Withdrawn:
		record.Event = &Record_Withdrawn{withdrawnRecord(e)}
	case *engine.Released:
		record.Event = &Record_Released{releasedRecord(e)}
	case *engine.Rejected:
		record.Event = &Record_Rejected{rejectedRecord(e)}
	}
	if record.Event == nil {
		return nil, fmt.Errorf("encode event: no record holds a %T", event)
	}
	data, err := record.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return data, nil
}

// refreshedTag is the first byte of a record that begins with a refresh, as nearly all do.
const refreshedTag = 2<<3 | 2

// decodeEvent reads a record. A record of a kind or version that this build does not know is
// ErrUnknownRecord; fields that it does not know are passed over. The event shares no memory with the record.
func (d *decoder) decodeEvent(data []byte) (any, error) {
	record := &d.record
	record.Requires, record.Event = 0, nil
	if len(data) > 0 && data[0] == refreshedTag {
		d.refresh.Refreshed.ResetVT()
		record.Event = &d.refresh
	}
	if err := record.UnmarshalVTUnsafe(data); err != nil {
		return nil, fmt.Errorf("decode record: %w", err)
	}
	if record.Requires > recordVersion {
		return nil, fmt.Errorf("decode record of format version %d, known up to %d: %w", record.Requires, recordVersion, ErrUnknownRecord)
	}
	d.err = nil
	event := d.event(record)
	switch {
	case d.err != nil:
		return nil, fmt.Errorf("decode record: %w", d.err)
	case event == nil:
		return nil, fmt.Errorf("decode record of an unknown kind (%d bytes): %w", len(data), ErrUnknownRecord)
	}
	return event, nil
}

// event is what a record holds, nil for a kind that this build does not know.
func (d *decoder) event(record *Record) any {
	switch r := record.Event.(type) {
	case *Record_Refreshed:
		return d.refreshed(r.Refreshed)
	case *Record_Withdrawn:
		return d.withdrawn(r.Withdrawn)
	case *Record_Released:
		return d.released(r.Released)
	case *Record_Rejected:
		return d.rejected(r.Rejected)
	case *Record_CodeIssued:
		return d.codeIssued(r.CodeIssued)
	case *Record_CodeFailed:
		return d.codeFailed(r.CodeFailed)
	case *Record_CodeRefused:
		return d.codeRefused(r.CodeRefused)
	case *Record_SessionOpened:
		return d.sessionOpened(r.SessionOpened)
	case *Record_SessionClosed:
		return &engine.SessionClosed{Token: d.digest(r.SessionClosed.Token)}
	case *Record_Announced:
		return &engine.Announced{Transition: d.transition(r.Announced)}
	case *Record_AnnouncementWithdrawn:
		return d.announcementWithdrawn(r.AnnouncementWithdrawn)
	}
	return d.accountEvent(record)
}

// decoder turns protobuf values into those of the engine. It keeps the first error, so that a conversion
// reads as one expression. The messages that it reads into borrow the bytes that they are read from: a text
// of theirs becomes one of the engine through text, own or decimal, never as it is.
type decoder struct {
	err    error
	texts  *knownTexts // nil: each text is copied
	borrow bool        // own copies nothing: what is decoded is not kept
	room   *eventRoom  // for events; may be nil
	ledger ledger      // what readSnapshot found besides books

	passing func(*ledger) // sees, and may empty, it after each part; nil: nobody does

	// Messages that are read into again and again.
	record  Record
	refresh Record_Refreshed
	account SnapshotAccount
	state   engine.AccountState // of it
	piece   SnapshotPart
	bytes   []byte // of it
}

func newDecoder() *decoder {
	return &decoder{texts: newTexts(), refresh: Record_Refreshed{&RecordRefreshed{}}}
}

func (d *decoder) date(days int32) engine.Date {
	date := engine.Date(days)
	if date < 0 || date > date.AddDays(0) { // which keeps within the years 1 to 9999
		d.keep(fmt.Errorf("date %d is outside the years 1 to 9999", days))
	}
	return date
}

func (d *decoder) instant(seconds int64, nanos uint32) time.Time {
	if nanos >= 1e9 {
		d.keep(fmt.Errorf("%d nanoseconds in a second", nanos))
	}
	if seconds == 0 && nanos == 0 {
		return time.Time{}
	}
	return time.Unix(seconds-secondsBeforeUnix, int64(nanos)).UTC()
}

func instant(t time.Time) (seconds int64, nanos uint32) {
	return t.Unix() + secondsBeforeUnix, uint32(t.Nanosecond())
}

func (d *decoder) key(institution string, channel RecordChannel, kind RecordKind) engine.QuoteKey {
	return engine.QuoteKey{Institution: d.text(institution), Channel: d.channel(channel), Kind: d.kind(kind)}
}

func (d *decoder) channel(code RecordChannel) engine.Channel {
	return word(d, channelWords[:], int32(code), "channel")
}

func (d *decoder) kind(code RecordKind) engine.Kind {
	return word(d, kindWords[:], int32(code), "kind")
}

func (d *decoder) precision(code RecordPrecision) engine.DatePrecision {
	return word(d, precisionWords[:], int32(code), "precision")
}

func word[W ~string](d *decoder, words []W, code int32, what string) W {
	if code < 0 || int(code) >= len(words) {
		d.keep(fmt.Errorf("%s %d: %w", what, code, ErrUnknownRecord))
		return ""
	}
	return words[code]
}

func (d *decoder) keep(err error) {
	if d.err == nil {
		d.err = err
	}
}

// The words behind the codes of the record format, by code.
var (
	channelWords   = [...]engine.Channel{"", engine.Unspecified, engine.Branch, engine.Digital, engine.Cash, engine.Transfer}
	kindWords      = [...]engine.Kind{"", engine.Commercial, engine.Reference}
	precisionWords = [...]engine.DatePrecision{"", engine.PrecisionDatetime, engine.PrecisionDay, engine.PrecisionUnknown}
)

// codeOf is the code of a word of a closed list. A word outside the list cannot get this far: the engine
// refuses it before a book sees it.
func codeOf[W ~string](words []W, w W, what string) int32 {
	for code, known := range words {
		if w == known {
			return int32(code)
		}
	}
	panic(fmt.Sprintf("actors: the record format has no code for %s %q", what, string(w)))
}

func channelCode(c engine.Channel) RecordChannel {
	return RecordChannel(codeOf(channelWords[:], c, "channel"))
}
func kindCode(k engine.Kind) RecordKind { return RecordKind(codeOf(kindWords[:], k, "kind")) }
func precisionCode(p engine.DatePrecision) RecordPrecision {
	return RecordPrecision(codeOf(precisionWords[:], p, "precision"))
}
