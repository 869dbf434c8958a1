package actors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/tasard/tasard/engine"
)

// seatedOwner is an owner of state that keeps what it is told.
type seatedOwner struct {
	mu     sync.Mutex
	heard  uint64
	fates  []*engine.Error // of its writes, in order
	broken string
}

func (o *seatedOwner) receive(l letter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch m := l.(type) {
	case *foreignQuotes:
		o.heard++
		m.credit.release()
	case *committed:
		o.fates = append(o.fates, m.err)
	default:
		o.broken = fmt.Sprintf("it was sent a %T", l)
	}
}

func (o *seatedOwner) vital(letter) bool   { return true }
func (o *seatedOwner) abort(*engine.Error) {}

// seatedWrite is a write and what became of it.
type seatedWrite struct {
	write   *write
	owner   int
	decided uint64 // records about the owner that the owner had heard of
	sent    bool
	fated   bool
	fate    *engine.Error
}

func (w *seatedWrite) name() string { return string(w.write.records[0]) }

// table is a journal actor alone: the test is its owners, its writer, its follower and the log.
type table struct {
	t        *rapid.T
	stage    *stage
	clerk    *journalActor
	owners   []*seatedOwner
	refs     []*ref
	names    []string
	writes   []*seatedWrite
	log      []tableRecord
	told     int // records that were delivered
	offer    *job
	places   chan struct{}
	majority bool
	blind    bool // the planted bug: writes claim to know everything
	outage   int  // how often the majority was lost
	failed   error
}

// tableRecord is a record of the log: a bundle of this node's writes, or one of another node about some owners.
type tableRecord struct {
	own     bool
	records []string
	touched []int
}

func (d *table) Node() engine.NodeID { return 1 }
func (d *table) Standing() Standing  { return Standing{Majority: d.majority} }
func (d *table) Follow(context.Context, func(uint64, []byte)) error {
	return errors.New("nobody follows it")
}

func newTable(t *rapid.T, blind bool) *table {
	d := &table{t: t, majority: true, blind: blind, places: make(chan struct{}, creditsMax)}
	d.stage = newStage(16, 1, func(err error) { d.failed = err })
	d.clerk = &journalActor{
		fail: func(err error) { d.failed = err }, logger: slog.New(slog.DiscardHandler),
		vitals: newVitals(&Config{Clock: (&testClock{now: noon}).read}), writer: &writer{jobs: make(chan job, 1)},
		snapshot: snapshotPlan{recordsMax: 1 << 30, bytesMax: 1 << 60},
	}
	books := map[string]*ref{}
	for i := range 3 {
		owner := &seatedOwner{}
		r, err := d.stage.spawn(fmt.Sprint("owner", i), owner)
		if err != nil {
			t.Fatal(err)
		}
		d.owners, d.refs, d.names = append(d.owners, owner), append(d.refs, r), append(d.names, fmt.Sprint("C", i))
		books[d.names[i]] = r
	}
	d.clerk.shared = &sharing{journal: sharedTable{table: d}, desk: &desk{}, books: books, told: map[*ref]uint64{}}
	return d
}

// tableWrong is how a planted bug is caught.
type tableWrong struct{}

// wrong ends the test; with a planted bug, only this run.
func (d *table) wrong(format string, args ...any) {
	if d.blind {
		panic(tableWrong{})
	}
	d.t.Fatalf(format, args...)
}

// sharedTable is the table as a Shared of which the journal actor asks nothing but how it stands.
type sharedTable struct {
	*table
	Journal
}

// close ends what newTable started.
func (d *table) close() {
	for _, r := range d.refs {
		r.stop()
	}
	d.stage.close()
}

// rest waits until the owners have read their letters, and takes over what they learned.
func (d *table) rest() {
	for i, r := range d.refs {
		for !r.mailbox.quiet() {
			runtime.Gosched()
		}
		owner := d.owners[i]
		owner.mu.Lock()
		fates := owner.fates
		owner.fates = nil
		if owner.broken != "" {
			d.wrong("owner %d: %s", i, owner.broken)
		}
		owner.mu.Unlock()
		for _, fate := range fates {
			d.fated(i, fate)
		}
	}
	select {
	case offer := <-d.clerk.writer.jobs:
		if d.offer != nil {
			d.wrong("two offers at once")
		}
		d.offer = &offer
	default:
	}
}

// fated notes an outcome of the one write that an owner has.
func (d *table) fated(owner int, fate *engine.Error) {
	w := d.under(owner)
	if w == nil || !w.sent {
		d.wrong("owner %d has no write, and is told how it came out: %v", owner, fate)
	}
	w.fated, w.fate = true, fate
	place := slices.IndexFunc(d.log, func(r tableRecord) bool { return r.own && slices.Contains(r.records, w.name()) })
	switch {
	case fate == nil && (place < 0 || place >= d.told):
		d.wrong("%s is durable, and was not delivered", w.name())
	case fate != nil && place >= 0:
		d.wrong("%s is in the log at %d, and its owner is told %v", w.name(), place+1, fate)
	case fate == errConflict && !d.blind && d.touched(owner, d.told) == w.decided:
		d.wrong("%s was in conflict with nothing", w.name())
	case fate != nil && fate != errConflict && d.outage == 0:
		d.wrong("%s was refused with a majority: %v", w.name(), fate)
	}
}

// touched counts the records of other nodes about an owner among the first of the log.
func (d *table) touched(owner, first int) uint64 {
	count := uint64(0)
	for _, r := range d.log[:first] {
		if !r.own && slices.Contains(r.touched, owner) {
			count++
		}
	}
	return count
}

// under is the write that an owner waits for, nil when there is none.
func (d *table) under(owner int) *seatedWrite {
	for _, w := range d.writes {
		if w.owner == owner && !w.fated {
			return w
		}
	}
	return nil
}

// decide has an owner decide a write; it is on its way until send.
func (d *table) decide(t *rapid.T) {
	owner := rapid.IntRange(0, len(d.owners)-1).Draw(t, "owner")
	if d.under(owner) != nil {
		return
	}
	heard := d.owners[owner].heard
	d.writes = append(d.writes, &seatedWrite{owner: owner, decided: heard, write: &write{
		from: d.refs[owner], heard: heard, records: [][]byte{fmt.Appendf(nil, "%d/%d", owner, len(d.writes))},
	}})
}

func (d *table) send(t *rapid.T) {
	for _, w := range d.writes {
		if !w.sent && rapid.Bool().Draw(t, "sent") {
			d.dispatch(w)
			return
		}
	}
}

func (d *table) dispatch(w *seatedWrite) {
	w.sent = true
	if d.blind {
		w.write.heard = d.clerk.shared.told[w.write.from]
	}
	d.clerk.receive(w.write)
}

// place puts a record into the log: what is offered, or another node's.
func (d *table) place(t *rapid.T) {
	own := rapid.IntRange(0, 2).Draw(t, "own") > 0
	free := d.offer != nil && int(d.offer.expected) == len(d.log)
	switch {
	case !d.majority:
	case own && free:
		d.take()
	case !own:
		touched := rapid.SliceOfNDistinct(rapid.IntRange(0, len(d.owners)-1), 0, len(d.owners), rapid.ID[int]).Draw(t, "touched")
		d.log = append(d.log, tableRecord{touched: touched})
	}
}

// take puts what is offered into the log.
func (d *table) take() {
	b, err := newDecoder().bundle(d.offer.records[0])
	if err != nil {
		d.wrong("%v", err)
	}
	r := tableRecord{own: true}
	for _, record := range b.records {
		r.records = append(r.records, string(record))
		d.current(string(record))
	}
	d.log = append(d.log, r)
}

// current fails when a write that becomes durable was decided on a state that is no more.
func (d *table) current(name string) {
	for _, w := range d.writes {
		switch {
		case w.name() != name:
		case w.fated:
			d.wrong("%s was given up, and becomes durable", name)
		case d.touched(w.owner, len(d.log)) != w.decided:
			d.wrong("%s was decided before another node's record, and becomes durable behind it", name)
		}
	}
}

// answer frees the writer, when the place is taken.
func (d *table) answer(*rapid.T) {
	if d.offer == nil || int(d.offer.expected) >= len(d.log) {
		return
	}
	var err error
	if !d.log[d.offer.expected].own {
		err = fmt.Errorf("planted: %w", ErrPosition)
	}
	d.offer = nil
	d.clerk.receive(&written{err: err})
}

// deliver tells the journal actor of the next record.
func (d *table) deliver(*rapid.T) {
	if d.told == len(d.log) {
		return
	}
	r := d.log[d.told]
	d.told++
	d.places <- struct{}{}
	m := &delivered{sequence: uint64(d.told), own: r.own, records: 1, bytes: 1, books: map[string][]engine.Event{}, credit: &credit{places: d.places}}
	m.credit.take()
	for _, owner := range r.touched {
		m.books[d.names[owner]] = []engine.Event{&engine.Withdrawn{Currency: d.names[owner]}}
	}
	d.clerk.receive(m)
}

// stand loses the majority, or finds it again.
func (d *table) stand(t *rapid.T) {
	d.majority = rapid.IntRange(0, 3).Draw(t, "majority") > 0
	if !d.majority {
		d.outage++
		d.clerk.receive(&standing{})
	}
}

// drain lets everything come true that can, and then every write must have its outcome.
func (d *table) drain(t *rapid.T) {
	d.majority = true
	for range 3 * (len(d.writes) + len(d.log) + 3) {
		for _, w := range d.writes {
			if !w.sent {
				d.dispatch(w)
			}
		}
		d.rest()
		if d.offer != nil && int(d.offer.expected) == len(d.log) {
			d.take()
		}
		d.deliver(t)
		d.rest()
		d.answer(t)
		d.rest()
	}
	for _, w := range d.writes {
		if !w.fated {
			d.wrong("%s has no outcome; %d of %d records delivered", w.name(), d.told, len(d.log))
		}
	}
	if len(d.places) > 0 {
		d.wrong("%d places are not given back", len(d.places))
	}
}

// playTable plays a journal actor that shares its log. With a planted bug it reports whether something was wrong.
func playTable(t *rapid.T, blind bool) (caught bool) {
	d := newTable(t, blind)
	defer d.close()
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case tableWrong:
			caught = true
		default:
			panic(reason)
		}
	}()
	step := func(do func(*rapid.T)) func(*rapid.T) {
		return func(t *rapid.T) {
			do(t)
			d.rest()
			if d.failed != nil {
				d.wrong("the node stopped: %v", d.failed)
			}
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"decide": step(d.decide), "send": step(d.send), "place": step(d.place), "answer": step(d.answer),
		"deliver": step(d.deliver), "stand": step(d.stand),
	})
	d.drain(t)
	return false
}

// TestSharing_OneOutcome holds the journal actor alone against a model of a log that others write too. Whatever the order of offers,
// answers, deliveries and lost majorities: every write has exactly one outcome, it is durable exactly when its owner is told so, and
// nothing that was decided before another node's record about the same owner becomes durable behind it.
func TestSharing_OneOutcome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { playTable(t, false) })
}

// TestSharing_Control_ConflictsAreNotSeen is TestSharing_OneOutcome with writes that claim to know every record.
func TestSharing_Control_ConflictsAreNotSeen(t *testing.T) {
	caught := 0
	rapid.Check(t, func(t *rapid.T) {
		if playTable(t, true) {
			caught++
		}
	})
	if caught == 0 {
		t.Error("nobody noticed that writes were decided on an old state")
	}
}

// TestSharing_BundlesFit has owners write as much as one write may be: no bundle is larger than a record of the log may be, and all are
// offered.
func TestSharing_BundlesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newTable(t, false)
		defer d.close()
		most := batchBytesMax(true) - recordOverheadBytes
		for i, r := range d.refs {
			size := rapid.SampledFrom([]int{1, most / 3, most / 2, most - 1, most}).Draw(t, "size")
			d.clerk.receive(&write{from: r, records: [][]byte{bytes.Repeat([]byte{byte(i)}, size)}})
		}
		for offered := 0; offered < len(d.refs); {
			select {
			case offer := <-d.clerk.writer.jobs:
				if n := len(offer.records[0]); n > bundleBytesMax {
					t.Fatalf("a bundle of %d bytes, at most %d", n, bundleBytesMax)
				}
				b, err := newDecoder().bundle(offer.records[0])
				if err != nil {
					t.Fatal(err)
				}
				offered += len(b.records)
			default:
				t.Fatalf("%d of %d writes were offered", offered, len(d.refs))
			}
			d.log = append(d.log, tableRecord{own: true})
			d.clerk.receive(&written{})
			d.deliver(t)
		}
	})
}
