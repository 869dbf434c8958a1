//go:build faults

package faults

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// lifeChild is the name of the child that lives under strace. Its arguments are its directory, its kind and up to which step it goes;
// each step is acknowledged with one line on descriptor 3.
const lifeChild = "life"

// Kinds of lives.
const (
	lifeHonest = "honest"
	lifeEarly  = "early" // the planted bug: a batch is acknowledged before it is written
)

// lifeBegins is the instant of step 0.
var lifeBegins = time.Date(2026, 6, 17, 16, 0, 0, 0, time.UTC)

func instantOf(step int) time.Time { return lifeBegins.Add(time.Duration(step) * time.Minute) }

func stepAt(at time.Time) int { return int(at.Sub(lifeBegins) / time.Minute) }

// segmentBytes is the size of a segment of these lives.
const segmentBytes = 2048

// lifeConfig is a node whose segments fill and whose snapshots come within a few steps.
func lifeConfig(dir string) actors.Config {
	return actors.Config{
		Dir: dir, Log: actors.LogConfig{SegmentBytes: segmentBytes, ReserveBytes: -1}, SnapshotRecords: 14, SnapshotBytes: 4 << 10,
	}
}

func lifeLog(dir string) wal.Options {
	c := lifeConfig(dir).Log
	return wal.Options{SegmentBytes: c.SegmentBytes, ReserveBytes: c.ReserveBytes, Clock: func() time.Time { return lifeBegins }}
}

// threadJournal is the local journal of package actors, but that it makes all calls of the log on one thread of the operating system,
// because strace counts for each thread.
type threadJournal struct {
	log   *wal.Log
	calls chan func()
	early bool
	last  atomic.Uint64
	held  [][]byte
}

func (j *threadJournal) do(call func() error) error {
	done := make(chan error, 1)
	j.calls <- func() { done <- call() }
	return <-done
}

func openThreadJournal(dir, kind string) (*threadJournal, error) {
	j := &threadJournal{calls: make(chan func()), early: kind == lifeEarly}
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		for call := range j.calls {
			call()
		}
	}()
	err := j.do(func() (err error) {
		j.log, err = wal.Open(dir, lifeLog(dir))
		return err
	})
	if err == nil {
		j.last.Store(j.log.Last())
	}
	return j, err
}

func (j *threadJournal) Last() uint64 { return j.last.Load() }

func (j *threadJournal) Append(expected uint64, records [][]byte) (last uint64, err error) {
	if j.Last() != expected {
		return 0, fmt.Errorf("append behind %d: %w", expected, actors.ErrPosition)
	}
	if j.early {
		return j.appendLate(records)
	}
	err = j.do(func() (err error) { last, err = j.log.Append(records); return err })
	if err == nil {
		j.last.Store(last)
	}
	return last, err
}

// appendLate writes the batch before and only remembers this one.
func (j *threadJournal) appendLate(records [][]byte) (uint64, error) {
	if len(j.held) > 0 {
		if err := j.do(func() error { _, err := j.log.Append(j.held); return err }); err != nil {
			return 0, err
		}
	}
	j.held = nil
	for _, record := range records {
		j.held = append(j.held, slices.Clone(record))
	}
	return j.last.Add(uint64(len(records))), nil
}

func (j *threadJournal) Read(from uint64, visit func(uint64, []byte) error) error {
	return j.do(func() error { return j.log.Read(from, visit) })
}

func (j *threadJournal) Snapshot() (sequence uint64, r io.ReadCloser, ok bool, err error) {
	err = j.do(func() (err error) { sequence, r, ok, err = j.log.Snapshot(); return err })
	return sequence, r, ok, err
}

func (j *threadJournal) WriteSnapshot(sequence uint64, write func(io.Writer) error) error {
	if j.early {
		return nil
	}
	return j.do(func() error { return j.log.WriteSnapshot(sequence, write) })
}

func (j *threadJournal) DropBefore(sequence uint64) error {
	return j.do(func() error { return j.log.DropBefore(sequence) })
}

// Close also ends the thread.
func (j *threadJournal) Close() error {
	err := j.do(j.log.Close)
	close(j.calls)
	return err
}

// codeBox keeps the newest login code.
type codeBox struct{ last atomic.Pointer[string] }

func (b *codeBox) Send(letter engine.Letter) error {
	code := letter.Code.Reveal()
	b.last.Store(&code)
	return nil
}

// runLife is the child.
func runLife(args []string) int {
	steps, err := strconv.Atoi(args[2])
	said := os.NewFile(3, "acknowledgements")
	if err == nil {
		err = live(args[0], args[1], steps, func(step int) { _, _ = fmt.Fprintln(said, step) })
	}
	if err != nil {
		_, _ = fmt.Fprintln(said, strings.ReplaceAll(err.Error(), "\n", "; "))
		return 1
	}
	return 0
}

// life is a node that takes steps.
type life struct {
	system *actors.System
	at     atomic.Int64 // what the clock shows, set by the steps
	mail   codeBox
}

// openLife waits until the state is there. A nil journal is the program's own.
func openLife(dir string, journal actors.Journal) (*life, error) {
	l := &life{}
	l.at.Store(lifeBegins.UnixNano())
	config := lifeConfig(dir)
	config.Mailer = &l.mail
	config.Clock = func() time.Time { return time.Unix(0, l.at.Load()).UTC() }
	config.Steady = func() time.Duration { return time.Duration(l.at.Load() - lifeBegins.UnixNano()) }
	if journal != nil {
		config.Journal = journal
	}
	var err error
	if l.system, err = actors.Open(config); err != nil {
		return nil, err
	}
	select {
	case <-l.system.Ready():
		return l, nil
	case <-l.system.Done():
		return nil, errors.Join(l.system.Err(), l.system.Close())
	}
}

func live(dir, kind string, steps int, acknowledge func(step int)) error {
	journal, err := openThreadJournal(dir, kind)
	if err != nil {
		return err
	}
	l, err := openLife(dir, journal)
	if err != nil {
		return err
	}
	found, err := l.view()
	if err != nil {
		return err
	}
	begun, late := stepOf(found), time.Duration(0)
	if begun > 0 {
		late = 2 * time.Minute // half of the next step may be there: an address gets one code a minute
	}
	for step := begun + 1; step <= steps; step++ {
		l.at.Store(instantOf(step).Add(late).UnixNano())
		if err := l.take(step); err != nil {
			return errors.Join(fmt.Errorf("step %d: %w", step, err), l.goOn(step, acknowledge))
		}
		acknowledge(step)
	}
	return l.system.Close()
}

// goOn does what callers do after a failure: they try again. Nothing of it may be acknowledged.
func (l *life) goOn(step int, acknowledge func(step int)) error {
	for range 3 {
		if l.take(step) == nil {
			acknowledge(afterFailure)
		}
	}
	return l.system.Close()
}

// afterFailure is the step of an acknowledgement that must not be.
const afterFailure = 1 << 20

// stepsOfARound is after how many steps one is about an account; the others publish a rate.
const stepsOfARound = 5

// take does one step; its outcome is durable when it returns.
func (l *life) take(step int) error {
	if step%stepsOfARound == 0 {
		return l.takeAccount(step / stepsOfARound)
	}
	currency, buy, sell := priceOf(step)
	receipt, err := l.system.Observe([]engine.Refresh{{
		SourceID: "popular-site", ObservedAt: instantOf(step),
		Observations: []engine.Observation{{InstitutionID: "popular", Currency: currency, Buy: buy, Sell: sell}},
	}})
	if err == nil && receipt.Accepted != 1 {
		err = fmt.Errorf("refused: %+v", receipt.Refused)
	}
	return err
}

// priceOf is what a step publishes: another price than the steps before.
func priceOf(step int) (currency, buy, sell string) {
	if step%2 == 1 {
		return "USD", "57", fmt.Sprintf("60.%02d", step%97)
	}
	return "EUR", "63", fmt.Sprintf("68.%02d", step%97)
}

// takeAccount is the n-th step about accounts, from 1: a new account with a key, its second key, the end of its first key.
func (l *life) takeAccount(n int) error {
	number, what := (n-1)/3, (n-1)%3
	email, err := engine.ParseEmail(fmt.Sprintf("caller-%d@example.com", number))
	if err != nil {
		return err
	}
	from := netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
	if err := l.system.RequestCode(email, from); err != nil {
		return err
	}
	token, _, err := l.system.OpenSession(email, *l.mail.last.Load(), from)
	if err != nil {
		return err
	}
	if what < 2 {
		_, _, err = l.system.CreateKey(token.Digest(), fmt.Sprintf("key %d", n))
		return err
	}
	keys, err := l.system.Keys(token.Digest())
	if err != nil || len(keys) == 0 {
		return errors.Join(err, errors.New("the keys are gone"))
	}
	oldest := slices.MinFunc(keys, func(a, b engine.KeyRecord) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return l.system.RevokeKey(token.Digest(), oldest.ID)
}

// view is what callers and the operator see, as text: what each currency was last said to cost and when, and each account
// with its keys, those that are active and all.
func (l *life) view() (string, error) {
	page, err := l.system.Rates(engine.RatesQuery{Cut: engine.Cut{Limit: 10}})
	var empty *engine.Error
	var words []string
	switch {
	case errors.As(err, &empty) && empty.Code == engine.CodeDataUnavailable:
		page = &engine.Page[*engine.Rate]{}
	case err != nil:
		return "", err
	}
	for _, rate := range page.Items {
		words = append(words, fmt.Sprintf("%s %s of %d", rate.Currency, rate.Sell.String(), stepAt(rate.LastCheckedAt)))
	}
	accounts, err := l.system.ListAccounts()
	if err != nil {
		return "", err
	}
	slices.SortFunc(accounts, func(a, b engine.AccountSummary) int { return int(a.ID) - int(b.ID) })
	for _, account := range accounts {
		record, _, err := l.system.ShowAccount(account.ID)
		if err != nil {
			return "", err
		}
		words = append(words, fmt.Sprintf("account %d of %d", account.ActiveKeys, len(record.Keys)))
	}
	return strings.Join(words, ", "), nil
}

// viewAfter is what view must be after a step. half is another one that a crash in this step may leave, "" when there is none.
func viewAfter(step int) (whole, half string) {
	last := map[string]string{}
	var accounts []string
	for n := 1; n <= step; n++ {
		if n%stepsOfARound != 0 {
			currency, _, sell := priceOf(n)
			last[currency] = fmt.Sprintf("%s %s of %d", currency, sell, n)
			continue
		}
		switch (n/stepsOfARound - 1) % 3 {
		case 0:
			accounts = append(accounts, "account 1 of 1")
		case 1:
			accounts[len(accounts)-1] = "account 2 of 2"
		case 2:
			accounts[len(accounts)-1] = "account 1 of 2"
		}
	}
	words := slices.AppendSeq([]string{}, maps.Values(last))
	slices.Sort(words)
	whole = strings.Join(append(words, accounts...), ", ")
	if step%stepsOfARound == 0 && step > 0 && (step/stepsOfARound-1)%3 == 0 {
		half = strings.Join(append(words, append(slices.Clone(accounts[:len(accounts)-1]), "account 0 of 0")...), ", ")
	}
	return whole, half
}

// lifeLongest bounds the search for the step of a view.
const lifeLongest = 400

// stepOf is the last whole step that a view shows, -1 when no life leaves such a view.
func stepOf(view string) int {
	for step := range lifeLongest {
		whole, half := viewAfter(step)
		if view == whole {
			return step
		}
		if view == half && half != "" {
			return step - 1
		}
	}
	return -1
}
