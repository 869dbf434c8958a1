//go:build faults

package cmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// workloadChild is the name of the child that runs under strace. Its arguments are its directory, its kind, the step
// before its first one and its last step; each step is acknowledged with one line on descriptor 3.
const workloadChild = "life"

// Kinds of workloads.
const (
	workloadCorrect  = "honest"
	workloadEarlyAck = "early" // the planted bug: a batch is acknowledged before it is written
)

// workloadStart is the time of step 0.
var workloadStart = time.Date(2026, 6, 17, 16, 0, 0, 0, time.UTC)

func instantOf(step int) time.Time { return workloadStart.Add(time.Duration(step) * time.Minute) }

// segmentBytes is the size of a segment.
const segmentBytes = 2048

// threadJournal is the local journal of package actors on a single thread of the system, because strace counts by
// thread.
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
	j := &threadJournal{calls: make(chan func()), early: kind == workloadEarlyAck}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for call := range j.calls {
			call()
		}
	}()
	err := j.do(func() (err error) {
		j.log, err = wal.Open(dir, wal.Options{SegmentBytes: segmentBytes, ReserveBytes: -1, Clock: func() time.Time { return workloadStart }})
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

// workloadMain is the child.
func workloadMain(args []string) int {
	begun, err := strconv.Atoi(args[2])
	steps, wrong := strconv.Atoi(args[3])
	said := os.NewFile(3, "acknowledgements")
	if err = errors.Join(err, wrong); err == nil {
		err = runWorkload(args[0], args[1], begun, steps, func(step int) { _, _ = fmt.Fprintln(said, step) })
	}
	if err != nil {
		_, _ = fmt.Fprintln(said, strings.ReplaceAll(err.Error(), "\n", "; "))
		return 1
	}
	return 0
}

// workload is a node that runs steps. It fills segments and writes snapshots within a few of them.
type workload struct {
	system *actors.System
	at     atomic.Int64 // time of its clock, set by the steps
	code   atomic.Pointer[string]
	// between, if not nil, is called where a crash can leave a part of a step.
	between func(step int) error
}

// Send keeps the newest login code.
func (l *workload) Send(mail account.LoginMail) error {
	code := mail.Code.Reveal()
	l.code.Store(&code)
	return nil
}

// openWorkload waits until the state is loaded. A nil journal is the program's own.
func openWorkload(dir string, journal actors.Journal) (*workload, error) {
	l := &workload{}
	l.at.Store(workloadStart.UnixNano())
	config := actors.Config{
		Dir: dir, Log: actors.LogConfig{SegmentBytes: segmentBytes, ReserveBytes: -1}, SnapshotRecords: 14, SnapshotBytes: 4 << 10, Mailer: l,
		Clock:     func() time.Time { return time.Unix(0, l.at.Load()).UTC() },
		Monotonic: func() time.Duration { return time.Duration(l.at.Load() - workloadStart.UnixNano()) },
	}
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

func runWorkload(dir, kind string, begun, steps int, acknowledge func(step int)) error {
	journal, err := openThreadJournal(dir, kind)
	if err != nil {
		return err
	}
	l, err := openWorkload(dir, journal)
	if err != nil {
		return err
	}
	late := time.Duration(0)
	if begun > 0 {
		late = 2 * time.Minute // half of the next step may be there, and an address gets one code a minute
	}
	for step := begun + 1; step <= steps; step++ {
		if err := l.step(step, late); err != nil {
			for range 3 { // as clients do; no retry may be acknowledged
				if l.step(step, late) == nil {
					acknowledge(afterFailure)
				}
			}
			return errors.Join(fmt.Errorf("step %d: %w", step, err), l.system.Close())
		}
		acknowledge(step)
	}
	return l.system.Close()
}

// afterFailure is the step of an acknowledgement that must not happen.
const afterFailure = 1 << 20

// accountStepEvery is the interval of steps about accounts; the others publish a rate.
const accountStepEvery = 5

// step runs one step, which is durable when it returns, somewhat late.
func (l *workload) step(step int, late time.Duration) error {
	l.at.Store(instantOf(step).Add(late).UnixNano())
	if step%accountStepEvery == 0 {
		return l.accountStep(step)
	}
	price := engine.Observation{InstitutionID: "popular", Currency: "EUR", Buy: "63", Sell: fmt.Sprintf("68.%02d", step%97)} // another one than before
	if step%2 == 1 {
		price.Currency, price.Buy, price.Sell = "USD", "57", fmt.Sprintf("60.%02d", step%97)
	}
	receipt, err := l.system.Observe([]engine.Refresh{{SourceID: "popular-site", ObservedAt: instantOf(step), Observations: []engine.Observation{price}}})
	if err == nil && receipt.Accepted != 1 {
		err = fmt.Errorf("refused: %+v", receipt.Refused)
	}
	return err
}

// accountStep is, in turn, a new account with a key, its second key, and the revocation of its first key.
func (l *workload) accountStep(step int) error {
	n := step/accountStepEvery - 1
	number, what := n/3, n%3
	email, err := account.ParseEmail(fmt.Sprintf("caller-%d@example.com", number))
	if err != nil {
		return err
	}
	from := account.Requester{Address: netip.AddrFrom4([4]byte{10, byte(n >> 8), byte(n), 1})} // a network of its own
	if err := l.system.RequestCode(email, from); err != nil {
		return err
	}
	token, _, err := l.system.OpenSession(email, *l.code.Load(), from)
	if err == nil && what == 0 && l.between != nil {
		err = l.between(step)
	}
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
	oldest := slices.MinFunc(keys, func(a, b account.KeyRecord) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return l.system.RevokeKey(token.Digest(), oldest.ID)
}

// view returns what clients and the operator see, as text: the newest price of each currency, and each account with
// its keys.
func (l *workload) view() (string, error) {
	page, err := l.system.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 10}})
	var empty *engine.Error
	var words []string
	switch {
	case errors.As(err, &empty) && empty.Code == engine.CodeDataUnavailable:
		page = &engine.Page[*engine.Rate]{}
	case err != nil:
		return "", err
	}
	for _, rate := range page.Items {
		words = append(words, fmt.Sprintf("%s %s at %s", rate.Currency, rate.Sell.String(), rate.LastCheckedAt.Format(time.TimeOnly)))
	}
	accounts, err := l.system.ListAccounts()
	if err != nil {
		return "", err
	}
	slices.SortFunc(accounts, func(a, b account.Summary) int { return int(a.ID) - int(b.ID) })
	for _, account := range accounts {
		record, _, err := l.system.ShowAccount(account.ID)
		if err != nil {
			return "", err
		}
		words = append(words, fmt.Sprintf("account %d of %d", account.ActiveKeys, len(record.Keys)))
	}
	return strings.Join(words, ", "), nil
}

// untouched runs steps without any fault. It returns what was seen after each: view → 2 × step, or one less for what a
// crash in the middle of the step may leave; and the directory as a kill after the last step leaves it: its records
// are in the log, after a snapshot.
func untouched(t *testing.T, steps int) (views map[string]int, left map[string][]byte) {
	t.Helper()
	dir := filepath.Join(memoryDir(t), "data")
	l, err := openWorkload(dir, nil)
	noError(t, err)
	views = map[string]int{}
	see := func(at int) error {
		view, err := l.view()
		if before, is := views[view]; is {
			t.Errorf("steps %d and %d leave the same: %s", before/2, at/2, view)
		}
		views[view] = at
		return err
	}
	l.between = func(step int) error { return see(2*step - 1) }
	for step := range steps + 1 {
		if step > 0 {
			noError(t, l.step(step, 0))
		}
		noError(t, see(2*step))
	}
	left = readDir(t, dir)
	noError(t, l.system.Close())
	return views, left
}

// diskSlackBytes is allowed beyond twice the live data of a directory (goal W10): 64 MiB, scaled from segments of 4
// MiB to 2 KiB.
const diskSlackBytes = 64 << 20 / (4 << 20 / segmentBytes)

// checkDiskUse compares the size of a directory with its live data.
func checkDiskUse(dir string) error {
	report, err := wal.Verify(dir)
	if err != nil {
		return err
	}
	live := report.LogBytes
	for _, snapshot := range report.Snapshots {
		live += snapshot.Bytes
	}
	files, err := os.ReadDir(dir)
	total := int64(0)
	for _, file := range files {
		info, wrong := file.Info()
		if wrong != nil {
			return wrong
		}
		total += info.Size()
	}
	if total > 2*live+diskSlackBytes {
		return fmt.Errorf("the directory has %d bytes, %d of them live", total, live)
	}
	return err
}

// readDir returns the contents of a directory, except for its lock.
func readDir(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	noError(t, err)
	for _, entry := range entries {
		if !entry.Type().IsRegular() || entry.Name() == "LOCK" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a temporary snapshot that has been renamed
		}
		noError(t, err)
		all[entry.Name()] = data
	}
	return all
}

// segments returns the names of the log's segments, oldest first.
func segments(all map[string][]byte) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool {
		return len(name) != 20 || strings.Trim(name, "0123456789") != ""
	})
}

// addTornTails adds what a power cut leaves: half a frame, half a mark, half a snapshot.
func addTornTails(all map[string][]byte) map[string][]byte {
	names := segments(all)
	first, last := all[names[0]], names[len(names)-1]
	all = flipBit(all, "mark", 700)
	all[last] = append(slices.Clone(all[last]), first[:20]...)
	all["snapshot-00000000000000009999.tmp"] = first[:100]
	return all
}

// flipBit flips a bit in one byte of a file.
func flipBit(all map[string][]byte, name string, at int) map[string][]byte {
	all = maps.Clone(all)
	all[name] = slices.Clone(all[name])
	all[name][at] ^= 1
	return all
}

// TestFaultsW3_EverySystemCall kills a node before each system call on its directory: from its first start to a clean
// end, after a kill, and with a torn tail. The log is the program's, driven by the program's actors; only its thread
// is pinned. Snapshots and compaction are among the calls (goal W10). The tests of package wal stop repairs and
// restores at each step.
func TestFaultsW3_EverySystemCall(t *testing.T) {
	_, left := untouched(t, 31)
	scenarios := []scenario{
		{name: "first life", kind: workloadCorrect, steps: 140},
		{name: "after a kill", kind: workloadCorrect, initialDir: left, stepsBefore: 31, steps: 155},
		{name: "torn tail", kind: workloadCorrect, initialDir: addTornTails(left), stepsBefore: 31, steps: 140},
	}
	bad, kinds := 0, map[string]int{}
	for _, s := range scenarios {
		w := newSweep(t, s)
		w.run(strings.Split(writePath, ","), 0, 1)
		w.report()
		bad += len(w.failures)
		for call, n := range w.fired {
			kinds[call] += n
		}
		progress(t, "%s: %d crashes fired, %d runs ended untouched, %d bad, %d torn tails; calls %v",
			s.name, sum(w.fired), w.untouched, len(w.failures), w.torn, w.calls.counts)
		if sum(w.fired) == 0 || w.undershoot > sum(w.fired)/10 {
			t.Errorf("%s: %d crashes fired, %d that should have did not", s.name, sum(w.fired), w.undershoot)
		}
	}
	figure(t, "crashed at %d system calls of the write path, %d bad; %v", sum(kinds), bad, kinds)
	if sum(kinds) < 2000 {
		t.Errorf("%d crashes fired, want 2000", sum(kinds))
	}
	for _, call := range []string{"openat", "write", "pwrite64", "fsync", "renameat", "unlinkat", "ftruncate", "mkdirat"} {
		if kinds[call] == 0 {
			t.Errorf("no crash at %s", call)
		}
	}
}

// TestFaultsW3_ControlEarly plants a log that acknowledges a batch before it writes it: the same sweep must notice.
func TestFaultsW3_ControlEarly(t *testing.T) {
	w := newSweep(t, scenario{name: "acknowledged early", kind: workloadEarlyAck, steps: 30})
	w.run(strings.Split(writePath, ","), 0, 7)
	fired := sum(w.fired)
	figure(t, "control, acknowledged before it is written: %d crashes fired, %d noticed", fired, len(w.failures))
	if fired == 0 || len(w.failures) < fired/4 {
		t.Errorf("%d of %d crashes noticed", len(w.failures), fired)
	}
}

// failureCalls are the calls that write and sync.
func failureCalls() []string { return []string{"write", "pwrite64", "fsync"} }

// TestFaultsW6_EachWriteAndSyncFails makes the K-th write and the K-th sync fail, K = 1 to 200, at the first start,
// in appends, segment rolls, snapshots and compaction: nothing is written, synced or acknowledged after it, and
// everything acknowledged is there at the next start.
func TestFaultsW6_EachWriteAndSyncFails(t *testing.T) {
	t.Parallel()
	const each = 200
	w := newSweep(t, scenario{name: "EIO", kind: workloadCorrect, steps: 150, errno: "EIO"})
	w.run(failureCalls(), each, 1)
	w.report()
	figure(t, "EIO injected at %d writes and syncs (%v), %d bad", sum(w.fired), w.fired, len(w.failures))
	for _, call := range failureCalls() {
		if w.fired[call] < each*9/10 {
			t.Errorf("%s failed %d times, want %d", call, w.fired[call], each)
		}
	}
}

// TestFaultsW7_EachWriteFindsNoSpace makes the K-th write run out of space, K = 1 to 60, although there was some when
// the log checked: a failed write like any other, and everything acknowledged is there at the next start.
func TestFaultsW7_EachWriteFindsNoSpace(t *testing.T) {
	w := newSweep(t, scenario{name: "ENOSPC", kind: workloadCorrect, steps: 60, errno: "ENOSPC"})
	w.run([]string{"write", "pwrite64"}, 60, 1)
	w.report()
	figure(t, "ENOSPC injected at %d writes (%v), %d bad", sum(w.fired), w.fired, len(w.failures))
	if sum(w.fired) < 110 {
		t.Errorf("%d writes failed", sum(w.fired))
	}
}

// sum returns the total of all kinds.
func sum(kinds map[string]int) (all int) {
	for _, count := range kinds {
		all += count
	}
	return all
}
