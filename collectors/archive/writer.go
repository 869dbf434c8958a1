package archive

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tasard/tasard/collectors/source"
)

// The defaults of Config, and limits of Writer.
const (
	BytesMaxDefault = 1 << 30
	AgeMaxDefault   = 400 * 24 * time.Hour // a year, and time to compare it with the one before
	freeMin         = 512 << 20            // of the disk; the log of a node becomes read-only at 64 MiB
	queueMax        = 64                   // documents that wait for the disk
	pendingBytesMax = 64 << 20             // their size
	modeDir         = 0o700
	tempPattern     = ".new-*"
	sweepEvery      = 24 * time.Hour
	blockBytes      = 4 << 10 // files are counted in blocks of the disk
)

// Config configures a Writer. Dir and Clock are required.
type Config struct {
	Dir      string
	Clock    func() time.Time
	BytesMax int64         // of all files; 0 = BytesMaxDefault
	AgeMax   time.Duration // 0 = AgeMaxDefault
	// Free returns the bytes that can be written on the disk of a directory. With less than 512 MiB nothing is kept, so
	// that the archive does not use up a disk that others need. nil = that is not checked.
	Free   func(dir string) (int64, error)
	Logger *slog.Logger // nil = nothing is logged
}

// Record is a fetched document, and what was read from it.
type Record struct {
	Definition *source.Definition
	Page       int              // index in Definition.Pages
	Document   *source.Document // must not be changed afterwards
	Published  bool
	Rates      []Rate
	Failure    string
}

// Stats counts what an archive has, and what it could not keep.
type Stats struct {
	Documents int64 // entries
	Bytes     int64 // of all files
	Failures  int64 // documents that were not kept since the start
}

// Writer writes to an archive. One goroutine does all the work. Its methods are safe for concurrent use, but Keep must
// not be called after Close.
type Writer struct {
	config  Config
	dir     Dir
	queue   chan Record
	pending atomic.Int64 // bytes of the documents in queue
	done    chan struct{}

	documents, bytes, failures atomic.Int64
	mu                         sync.Mutex
	failing                    error // why the newest document was not kept; nil = it was. Guarded by mu.

	// Only the goroutine uses these.
	last  map[pageKey]string // digest of the newest document
	swept time.Time          // time of the newest sweep
}

type pageKey struct {
	source string
	page   int
}

// New returns a writer. Until Start it keeps nothing.
func New(c Config) *Writer {
	c.BytesMax, c.AgeMax = cmp.Or(c.BytesMax, BytesMaxDefault), cmp.Or(c.AgeMax, AgeMaxDefault)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Writer{config: c, dir: Dir(c.Dir), queue: make(chan Record, queueMax), done: make(chan struct{}), last: map[pageKey]string{}}
}

// Start starts the goroutine that writes. It must be called once.
func (w *Writer) Start() {
	go func() {
		defer close(w.done)
		w.report(w.sweep())
		for r := range w.queue {
			if digest := r.Document.Digest(); w.last[r.page()] != digest {
				w.report(w.keep(&r, digest))
			}
			w.pending.Add(-int64(len(r.Document.Body)))
		}
	}()
}

// Close waits until the records of earlier calls of Keep are written. It returns why the newest was not kept, or nil.
func (w *Writer) Close() error {
	close(w.queue)
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failing
}

// Stats returns the current counts.
func (w *Writer) Stats() Stats {
	return Stats{Documents: w.documents.Load(), Bytes: w.bytes.Load(), Failures: w.failures.Load()}
}

// Keep keeps a document unless it is equal to the last one of its page. It does not wait for the disk: if too much
// waits already, the document is not kept.
func (w *Writer) Keep(r Record) {
	bytes := int64(len(r.Document.Body))
	if w.pending.Add(bytes) <= pendingBytesMax {
		select {
		case w.queue <- r:
			return
		default:
		}
	}
	w.pending.Add(-bytes)
	w.report(errors.New("the disk is too slow: too many documents wait"))
}

// report counts a failure. It logs the first failure, and the first success after failures.
func (w *Writer) report(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch before := w.failing; {
	case err != nil && before == nil:
		w.config.Logger.Warn("fetched documents are not archived; collecting goes on", "archive", w.config.Dir, "cause", err.Error())
	case err == nil && before != nil:
		w.config.Logger.Info("fetched documents are archived again", "archive", w.config.Dir)
	}
	if w.failing = err; err != nil {
		w.failures.Add(1)
	}
}

func (r *Record) page() pageKey { return pageKey{r.Definition.ID, r.Page} }

func (w *Writer) keep(r *Record, digest string) error {
	now := w.config.Clock()
	if err := w.checkFree(); err != nil {
		return err
	}
	bytes, err := w.writeObject(digest, r.Document.Body, now)
	if err != nil {
		return err
	}
	text, err := json.Marshal(r.entry(digest))
	if err != nil {
		return err
	}
	name := newEntryName(r.Document.FetchedAt, r.Page, digest)
	if err := writeFile(filepath.Join(w.dir.entries(r.Definition.ID), name.name), append(text, '\n')); err != nil {
		return err
	}
	w.last[r.page()] = digest
	w.documents.Add(1)
	if w.bytes.Add(bytes+blockBytes) > w.config.BytesMax || now.Sub(w.swept) >= sweepEvery {
		return w.sweep()
	}
	return nil
}

func (r *Record) entry(digest string) *Entry {
	d := r.Document
	page := &r.Definition.Pages[r.Page]
	e := &Entry{
		Source: r.Definition.ID, Page: page.Name, URL: d.URL, Headers: d.Headers, FetchedAt: d.FetchedAt, Digest: digest, Bytes: len(d.Body),
		Published: r.Published, Rates: r.Rates, Failure: r.Failure,
	}
	if len(page.Requests) > 0 {
		e.PageURL = page.Requests[0].URL
	}
	if !slices.ContainsFunc(page.Requests, func(r source.Request) bool { return r.URL == d.URL }) {
		e.URL, _, _ = strings.Cut(d.URL, "?") // the query of a redirect may be the token of a session
	}
	return e
}

func (w *Writer) checkFree() error {
	if w.config.Free == nil {
		return nil
	}
	if err := os.MkdirAll(w.config.Dir, modeDir); err != nil {
		return err
	}
	free, err := w.config.Free(w.config.Dir)
	if err == nil && free < freeMin {
		err = fmt.Errorf("%d MiB of the disk are free, and %d must stay free", free>>20, freeMin>>20)
	}
	return err
}

// writeObject stores a document and returns the bytes that this needs. The time of the file is now, also if it is there
// already, so that no sweep removes it before its entry is written.
func (w *Writer) writeObject(digest string, body []byte, now time.Time) (int64, error) {
	path := w.dir.object(digest)
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		return 0, os.Chtimes(path, now, now)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return 0, err
	}
	packed := encoder.EncodeAll(body, nil)
	if err := errors.Join(encoder.Close(), writeFile(path, packed)); err != nil {
		return 0, err
	}
	return inBlocks(int64(len(packed))), os.Chtimes(path, now, now)
}

// inBlocks returns what a file needs on a disk.
func inBlocks(bytes int64) int64 { return (bytes + blockBytes - 1) / blockBytes * blockBytes }

// writeFile writes a file that only its owner may read. After a crash the file is complete or missing.
func writeFile(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, modeDir); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, tempPattern) // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	opened, err := os.Open(dir) //nolint:gosec // G304: below the directory of the archive
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}
