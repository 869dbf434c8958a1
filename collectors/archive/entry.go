package archive

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// Limits of what is read from an archive. A larger file is damaged or foreign.
const (
	documentBytesMax = 16 << 20 // package fetch accepts no larger document
	entryBytesMax    = 1 << 20
	namesMax         = 200_000 // files of one directory
)

// Rate is a quote that was read from a document.
type Rate struct {
	InstitutionID string         `json:"institutionId"`
	Currency      string         `json:"currency"`
	Channel       engine.Channel `json:"channel"`
	Kind          engine.Kind    `json:"kind"`
	Buy           string         `json:"buy,omitempty"`
	Sell          string         `json:"sell,omitempty"`
	EffectiveDate string         `json:"effectiveDate,omitempty"`
	Refused       engine.Reason  `json:"refused,omitempty"` // why the rate was not published; "" = it was
}

// RateOf returns an observation as a Rate that was not refused.
func RateOf(o *engine.Observation) Rate {
	key := o.Key()
	rate := Rate{InstitutionID: o.InstitutionID, Currency: o.Currency, Channel: key.Channel, Kind: key.Kind, Buy: o.Buy, Sell: o.Sell}
	if !o.EffectiveDate.IsZero() {
		rate.EffectiveDate = o.EffectiveDate.String()
	}
	return rate
}

// Entry describes a kept document.
type Entry struct {
	Source    string            `json:"source"`         // id of the definition
	Page      string            `json:"page,omitempty"` // name of the page in the definition
	PageURL   string            `json:"pageUrl"`        // address of the page's first request
	URL       string            `json:"url"`            // address of the response; if not of the definition, without its query
	Headers   map[string]string `json:"headers,omitempty"`
	FetchedAt time.Time         `json:"fetchedAt"`
	Digest    string            `json:"digest"` // SHA-256 of the document
	Bytes     int               `json:"bytes"`
	Published bool              `json:"published"`         // false = it was only tried, or nothing could be read
	Rates     []Rate            `json:"rates,omitempty"`   // current quotes, as they were read then
	Failure   string            `json:"failure,omitempty"` // why nothing was read
}

// Dir is the directory of an archive.
type Dir string

// entryName is the name of an entry's file. Such names sort by time.
type entryName struct {
	name   string // as it is in the directory
	page   int    // index in source.Definition.Pages
	digest string
	at     time.Time
}

const timeForm = "20060102T150405.000Z"

var (
	entryNames  = regexp.MustCompile(`^(\d{8}T\d{6}\.\d{3}Z)-(\d\d)-([0-9a-f]{64})\.json$`)
	objectNames = regexp.MustCompile(`^([0-9a-f]{64})\.zst$`)
	sourceIDs   = regexp.MustCompile(`^[a-z0-9-]+$`)
)

func newEntryName(at time.Time, page int, digest string) entryName {
	at = at.UTC().Truncate(time.Millisecond)
	return entryName{fmt.Sprintf("%s-%02d-%s.json", at.Format(timeForm), page, digest), page, digest, at}
}

func byName(a, b entryName) int { return cmp.Compare(a.name, b.name) }

// parseEntryName returns false for the name of a file that is not an entry.
func parseEntryName(name string) (entryName, bool) {
	m := entryNames.FindStringSubmatch(name)
	if m == nil {
		return entryName{}, false
	}
	at, err := time.Parse(timeForm, m[1])
	page, _ := strconv.Atoi(m[2]) // two digits
	return entryName{name, page, m[3], at}, err == nil
}

func (d Dir) entries(sourceID string) string { return filepath.Join(string(d), "entries", sourceID) }

func (d Dir) object(digest string) string {
	return filepath.Join(string(d), "objects", digest[:2], digest+".zst")
}

// names returns the entries of a source, oldest first. If there are none, the result is empty.
func (d Dir) names(sourceID string) (names []entryName, err error) {
	if !sourceIDs.MatchString(sourceID) {
		return nil, nil
	}
	listed, err := readNames(d.entries(sourceID))
	for _, name := range listed {
		if entry, ok := parseEntryName(name); ok {
			names = append(names, entry)
		}
	}
	slices.SortFunc(names, byName)
	return names, err
}

// readNames returns at most namesMax names of a directory. A missing directory is empty.
func readNames(dir string) ([]string, error) {
	file, err := os.Open(dir) //nolint:gosec // G304: below the directory of the archive
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := file.Readdirnames(namesMax)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, errors.Join(err, file.Close())
}

// List returns the entries of a source that were fetched at since or later, oldest first. The second result has an
// error for each entry that can't be read.
func (d Dir) List(sourceID string, since time.Time) ([]Entry, []error) {
	names, err := d.names(sourceID)
	names = slices.DeleteFunc(names, func(name entryName) bool { return name.at.Before(since) })
	return d.read(sourceID, names, err)
}

// At returns the newest entry of each page of a source that was fetched at a time or before, in the order of the pages.
// The zero time means the newest of all.
// If a page did not change, this is the document of an earlier time. The second result has an error for each entry that
// can't be read.
func (d Dir) At(sourceID string, at time.Time) ([]Entry, []error) {
	names, err := d.names(sourceID)
	newest := map[int]entryName{}
	for _, name := range names {
		if at.IsZero() || !name.at.After(at) {
			newest[name.page] = name
		}
	}
	names = names[:0]
	for page := range 100 { // of two digits
		if name, ok := newest[page]; ok {
			names = append(names, name)
		}
	}
	return d.read(sourceID, names, err)
}

func (d Dir) read(sourceID string, names []entryName, err error) (entries []Entry, problems []error) {
	if err != nil {
		problems = append(problems, err)
	}
	for _, name := range names {
		entry, err := d.readEntry(sourceID, name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		entries = append(entries, entry)
	}
	return entries, problems
}

func (d Dir) readEntry(sourceID string, name entryName) (entry Entry, err error) {
	path := filepath.Join(d.entries(sourceID), name.name)
	data, err := readLimited(path, entryBytesMax)
	if err != nil {
		return entry, err
	}
	if err := json.Unmarshal(data, &entry); err != nil {
		return entry, fmt.Errorf("%s: not an entry of an archive: %w", path, err)
	}
	if entry.Source != sourceID || entry.Digest != name.digest {
		return entry, fmt.Errorf("%s: the entry is of another document", path)
	}
	return entry, nil
}

// readLimited reads a regular file of at most bytesMax bytes.
func readLimited(path string, bytesMax int64) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > bytesMax:
		return nil, fmt.Errorf("%s: want a file of at most %d bytes", path, bytesMax)
	}
	return os.ReadFile(path) //nolint:gosec // G304: below the directory of the archive
}

// Document returns the kept document of an entry. It is an error if its bytes do not have the digest of the entry.
func (d Dir) Document(e *Entry) (*source.Document, error) {
	if len(e.Digest) != 64 {
		return nil, fmt.Errorf("the entry of %s has no digest", e.Source)
	}
	path := d.object(e.Digest)
	packed, err := readLimited(path, 2*documentBytesMax)
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(documentBytesMax))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	body, err := decoder.DecodeAll(packed, nil)
	document := &source.Document{URL: e.URL, ContentType: e.Headers["Content-Type"], Headers: e.Headers, Body: body, FetchedAt: e.FetchedAt}
	if err == nil && document.Digest() != e.Digest {
		err = errors.New("its bytes do not have its digest")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the document is damaged: %w", path, err)
	}
	return document, nil
}
