package actors

import "sync"

// job is one thing that the writer does: append records, or let go of old ones.
type job struct {
	expected   uint64
	records    [][]byte
	dropBefore uint64 // 0: append
}

// written is the outcome of an append.
type written struct {
	fact
	last uint64
	err  error
}

// dropped is the outcome of letting go of old records.
type dropped struct {
	fact
	err error
}

// writer is the goroutine that waits for the disk, so that no actor does. It does one job at a time: the
// journal actor gives it the next one after the outcome of the last.
type writer struct {
	journal Journal
	jobs    chan job // one place: taking never blocks the actor
	done    sync.WaitGroup
	to      *ref
}

func newWriter(journal Journal) *writer {
	return &writer{journal: journal, jobs: make(chan job, 1)}
}

// start lets it work and report to the journal actor.
func (w *writer) start(to *ref) {
	w.to = to
	w.done.Add(1)
	go w.run()
}

func (w *writer) take(j job) { w.jobs <- j }

func (w *writer) run() {
	defer w.done.Done()
	for j := range w.jobs {
		if j.dropBefore > 0 {
			w.to.send(&dropped{err: w.journal.DropBefore(j.dropBefore)})
			continue
		}
		last, err := w.journal.Append(j.expected, j.records)
		w.to.send(&written{last: last, err: err})
	}
}

// stop waits until the last job is done.
func (w *writer) stop() {
	close(w.jobs)
	w.done.Wait()
}
