package archive

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tasard/tasard/collectors/source"
)

const (
	// AgeMaxDefault is a year, plus some time to compare documents with those of a year before.
	AgeMaxDefault    = 400 * 24 * time.Hour
	freeMin          = 512 << 20 // of the disk; the log of a node becomes read-only at 64 MiB
	documentBytesMax = 16 << 20  // package fetch accepts no larger document
	modeDir          = 0o700
	sweepEvery       = 24 * time.Hour
	dayForm          = "2006-01-02"
	timeForm         = "150405.000Z"
)

var (
	// fileNames matches a file of an archive, below its directory.
	fileNames = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)/([a-z0-9-]+)/(\d{6}\.\d{3}Z)-(\d\d)-([0-9a-f]{64})\.zst$`)
	// leftBehind matches temporary files of interrupted writes, and files of archives before version 1.1.
	leftBehind = regexp.MustCompile(`^(?:.*/\.new-[^/]*|entries/.*\.json|objects/.*\.zst)$`)
)

// Config configures a Writer. Dir and Clock are required.
type Config struct {
	Dir    string
	Clock  func() time.Time
	AgeMax time.Duration // 0 = AgeMaxDefault
	// Free returns the free bytes on the disk of a directory. nil = unchecked.
	Free   func(dir string) (int64, error)
	Logger *slog.Logger // nil = nothing is logged
}

// Stats counts the archive's documents and failures.
type Stats struct {
	Documents int64
	Bytes     int64
	Failures  int64 // documents that were not kept since the start
}

// Writer writes to an archive. It is safe for concurrent use.
type Writer struct {
	config Config

	mu      sync.Mutex
	stats   Stats
	newest  map[pageKey]string // digest of the newest document
	swept   time.Time          // time of the newest sweep; zero = newest is not known yet
	failing bool
}

// pageKey is "bhd-site/00": a source and the index of a page.
type pageKey string

// New returns a writer.
func New(c Config) *Writer {
	c.AgeMax = cmp.Or(c.AgeMax, AgeMaxDefault)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Writer{config: c}
}

// Stats returns the current counts. They are zero before the first document.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// Keep stores a document unless it equals the last one of its page. page is the index in Definition.Pages. A failure
// does not affect collecting: it is counted, and the first one is logged.
func (w *Writer) Keep(sourceID string, page int, document *source.Document) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.keep(sourceID, page, document)
	switch {
	case err != nil && !w.failing:
		w.config.Logger.Warn("fetched documents are not archived; collecting goes on", "archive", w.config.Dir, "cause", err.Error())
	case err == nil && w.failing:
		w.config.Logger.Info("fetched documents are archived again", "archive", w.config.Dir)
	}
	if w.failing = err != nil; w.failing {
		w.stats.Failures++
	}
}

func (w *Writer) keep(sourceID string, page int, document *source.Document) error {
	if err := os.MkdirAll(w.config.Dir, modeDir); err != nil {
		return err
	}
	if now := w.config.Clock(); w.newest == nil || now.Sub(w.swept) >= sweepEvery {
		w.swept = now
		if err := w.sweep(now); err != nil {
			return err
		}
	}
	key, digest := pageKey(fmt.Sprintf("%s/%02d", sourceID, page)), document.Digest()
	if w.newest[key] == digest {
		return nil
	}
	if w.config.Free != nil {
		if free, err := w.config.Free(w.config.Dir); err != nil || free < freeMin {
			return errors.Join(err, fmt.Errorf("%d MiB of the disk are free, and %d must stay free", free>>20, freeMin>>20))
		}
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return err
	}
	packed, at := encoder.EncodeAll(document.Body, nil), document.FetchedAt.UTC()
	name := filepath.Join(w.config.Dir, at.Format(dayForm), sourceID, fmt.Sprintf("%s-%02d-%s.zst", at.Format(timeForm), page, digest))
	if err := errors.Join(encoder.Close(), writeFile(name, packed)); err != nil {
		return err
	}
	w.newest[key] = digest
	w.stats.Documents++
	w.stats.Bytes += int64(len(packed))
	return nil
}

// sweep removes too old files, except the newest of each page, and counts the rest. File names sort by time.
func (w *Writer) sweep(now time.Time) error {
	newest, last, stats := map[pageKey]string{}, map[pageKey]string{}, Stats{Failures: w.stats.Failures}
	oldest := now.Add(-w.config.AgeMax)
	remove := func(name string) error {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_ = os.Remove(filepath.Dir(name))               // fails unless it is empty
		_ = os.Remove(filepath.Dir(filepath.Dir(name))) // the same
		return nil
	}
	err := filepath.WalkDir(w.config.Dir, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(w.config.Dir, path)
		name = filepath.ToSlash(name)
		match := fileNames.FindStringSubmatch(name)
		if err != nil || !entry.Type().IsRegular() || match == nil && !leftBehind.MatchString(name) {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if match == nil {
			if err == nil && info.ModTime().Before(oldest) {
				return remove(path)
			}
			return err
		}
		key := pageKey(match[2] + "/" + match[4])
		before := last[key]
		newest[key], last[key] = match[5], path
		stats.Documents++
		stats.Bytes += info.Size()
		if before == "" || filepath.Base(filepath.Dir(filepath.Dir(before))) >= oldest.UTC().Format(dayForm) {
			return err
		}
		if info, err := os.Stat(before); err == nil {
			stats.Documents--
			stats.Bytes -= info.Size()
		}
		return remove(before)
	})
	w.newest, w.stats = newest, stats
	return err
}

// writeFile writes a file that only its owner may read. After a crash the file is complete or missing.
func writeFile(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, modeDir); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, ".new-*") // mode 0600
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

// Document is a document of an archive.
type Document struct {
	Path string
	Page int // index in Definition.Pages
	Day  string
}

// Documents returns the documents of a source, the newest first.
func Documents(dir, sourceID string) (documents []Document, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", sourceID, "*.zst"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths) // by day and time
	slices.Reverse(paths)
	for _, path := range paths {
		name, _ := filepath.Rel(dir, path)
		if match := fileNames.FindStringSubmatch(filepath.ToSlash(name)); match != nil {
			page, _ := strconv.Atoi(match[4])
			documents = append(documents, Document{path, page, match[1]})
		}
	}
	return documents, nil
}

// Unpack returns the document in an archive's file. It returns an uncompressed file as it is.
func Unpack(data []byte) ([]byte, error) {
	if len(data) < 4 || string(data[:4]) != "\x28\xb5\x2f\xfd" {
		return data, nil
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(documentBytesMax))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	return decoder.DecodeAll(data, nil)
}
