package archive

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	removedMax  = 10_000    // entries that one sweep removes
	unusedKept  = time.Hour // an object may be younger than its entry, which another process still writes
	sweepsBelow = 7         // eighths of Config.BytesMax that remain after a sweep, so that not every document needs one
)

// inventory is what a directory has.
type inventory struct {
	entries map[string][]entryName // by source, oldest first
	objects map[string]fs.FileInfo // by digest
	temps   []string               // files of writers that were interrupted, or that still write
	uses    map[string]int         // number of entries of each object
	sizes   map[string]int64       // of the entries and objects of each source
	bytes   int64                  // of the entries and the objects that they use
}

// sweep removes what is too old or too much, and files without use. It counts what remains.
func (w *Writer) sweep() error {
	now := w.config.Clock()
	w.swept = now
	inv, err := w.dir.inventory()
	if err != nil {
		return err
	}
	problems := []error{w.prune(inv, now)}
	for digest, info := range inv.objects {
		if inv.uses[digest] == 0 && now.Sub(info.ModTime()) > unusedKept {
			problems = append(problems, os.Remove(w.dir.object(digest)))
		}
	}
	for _, temp := range inv.temps {
		if info, err := os.Lstat(temp); err == nil && now.Sub(info.ModTime()) > unusedKept {
			problems = append(problems, os.Remove(temp))
		}
	}
	count := 0
	clear(w.last) // a page whose newest entry was removed gets its document again
	for sourceID, names := range inv.entries {
		count += len(names)
		for _, name := range names {
			w.last[pageKey{sourceID, name.page}] = name.digest
		}
	}
	w.documents.Store(int64(count))
	w.bytes.Store(inv.bytes)
	return errors.Join(problems...)
}

// prune removes entries: those older than Config.AgeMax, and, if there are more bytes than Config.BytesMax, the oldest
// of the source with the most bytes, until enough are gone.
func (w *Writer) prune(inv *inventory, now time.Time) error {
	removed, oldest := 0, now.Add(-w.config.AgeMax)
	for sourceID := range inv.entries {
		for removed < removedMax && len(inv.entries[sourceID]) > 0 && inv.entries[sourceID][0].at.Before(oldest) {
			if err := w.removeOldest(inv, sourceID); err != nil {
				return err
			}
			removed++
		}
	}
	if inv.bytes <= w.config.BytesMax {
		return nil
	}
	for ; removed < removedMax && inv.bytes > w.config.BytesMax/8*sweepsBelow; removed++ {
		sourceID := inv.largest()
		if sourceID == "" {
			return nil
		}
		if err := w.removeOldest(inv, sourceID); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) removeOldest(inv *inventory, sourceID string) error {
	names := inv.entries[sourceID]
	if err := os.Remove(filepath.Join(w.dir.entries(sourceID), names[0].name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	inv.entries[sourceID] = names[1:]
	inv.use(sourceID, names[0].digest, -1)
	return nil
}

// use counts an entry of a source that has an object, or with -1 its removal.
func (inv *inventory) use(sourceID, digest string, change int) {
	before, size := inv.uses[digest], int64(0)
	if info := inv.objects[digest]; info != nil {
		size = inBlocks(info.Size())
	}
	inv.uses[digest] += change
	inv.sizes[sourceID] += int64(change) * (blockBytes + size)
	if inv.bytes += int64(change) * blockBytes; before == 0 || inv.uses[digest] == 0 {
		inv.bytes += int64(change) * size
	}
}

// largest returns the source whose entries have the most bytes, or "" if there is no entry.
func (inv *inventory) largest() (largest string) {
	for sourceID, names := range inv.entries {
		if len(names) > 0 && (largest == "" || inv.sizes[sourceID] > inv.sizes[largest]) {
			largest = sourceID
		}
	}
	return largest
}

func (d Dir) inventory() (*inventory, error) {
	inv := &inventory{entries: map[string][]entryName{}, objects: map[string]fs.FileInfo{}, uses: map[string]int{}, sizes: map[string]int64{}}
	if err := d.eachFile("objects", inv.addObject); err != nil {
		return nil, err
	}
	err := d.eachFile("entries", func(dir, name string) {
		if entry, ok := parseEntryName(name); ok {
			sourceID := filepath.Base(dir)
			inv.entries[sourceID] = append(inv.entries[sourceID], entry)
			inv.use(sourceID, entry.digest, 1)
			return
		}
		inv.addTemp(dir, name)
	})
	for _, names := range inv.entries {
		slices.SortFunc(names, byName)
	}
	return inv, err
}

func (inv *inventory) addObject(dir, name string) {
	m := objectNames.FindStringSubmatch(name)
	if m == nil {
		inv.addTemp(dir, name)
		return
	}
	if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() && filepath.Base(dir) == name[:2] {
		inv.objects[m[1]] = info
	}
}

func (inv *inventory) addTemp(dir, name string) {
	if ok, _ := filepath.Match(tempPattern, name); ok {
		inv.temps = append(inv.temps, filepath.Join(dir, name))
	}
}

// eachFile calls visit for each file in the directories below one of the two directories of the archive.
func (d Dir) eachFile(top string, visit func(dir, name string)) error {
	top = filepath.Join(string(d), top)
	dirs, err := readNames(top)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		dir = filepath.Join(top, dir)
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue // not a file of an archive
		}
		names, err := readNames(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			visit(dir, name)
		}
	}
	return nil
}
