package workbook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/richardlehane/mscfb"
)

const oleSignature = "\xD0\xCF\x11\xE0"

// Limits on what the container's own tables may be. The library follows the tables of a hostile file wherever they lead, and
// what it keeps grows with the square of the depth of folders; so it is given only so much to read while it opens a file.
// A workbook has one folder and about five streams: two sectors of directory.
const (
	tableBytesMax = 128 << 10 // of whole sectors: the directory and the table of tables; 1,024 entries
	linksMax      = 32 << 10  // of steps from one sector to the next
	chunkBytes    = 32 << 10  // of one read; the library's work grows with the square of it
)

// errDirectoryTooLarge ends the library's reading when the container's tables are beyond their limits.
var errDirectoryTooLarge = errors.New("the container has more tables than a workbook needs")

// limitedFile lets the library read a file, as long as it stays within the limits.
type limitedFile struct {
	file         *bytes.Reader
	bytes, links int // that it may still read
}

// ReadAt reads for the library, or says that it has read enough.
func (t *limitedFile) ReadAt(p []byte, offset int64) (int, error) {
	if t.links--; t.links < 0 {
		return 0, errDirectoryTooLarge
	}
	if len(p) > 4 { // a step from sector to sector reads four bytes
		if t.bytes -= len(p); t.bytes < 0 {
			return 0, errDirectoryTooLarge
		}
	}
	n, err := t.file.ReadAt(p, offset)
	return n, err
}

// workbookStream takes the stream with the workbook out of its OLE container.
func workbookStream(body []byte) (stream []byte, err error) {
	// The library does arithmetic on unchecked sizes and panics on some.
	defer func() {
		if fault := recover(); fault != nil {
			stream, err = nil, damaged("its OLE container can't be read: %v", fault)
		}
	}()
	source := &limitedFile{file: bytes.NewReader(body), bytes: tableBytesMax, links: linksMax}
	container, err := mscfb.New(source)
	switch {
	case source.bytes < 0 || source.links < 0:
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, errDirectoryTooLarge)
	case err != nil:
		return nil, damaged("its OLE container can't be read: %v", err)
	}
	file, err := pickStream(container)
	if err != nil {
		return nil, err
	}
	if file.Size > int64(len(body)) {
		return nil, damaged("its stream %s should have %d bytes, but the whole file has %d: cut off?", file.Name, file.Size, len(body))
	}
	// No stream that fits into the file can use up these.
	source.bytes, source.links = 2*len(body)+tableBytesMax, len(body)
	return readStream(file)
}

// pickStream finds the stream of the workbook, which lies at the top and not in a folder. A file for two generations of Excel
// has "Book" for the older and "Workbook" for the newer one.
func pickStream(container *mscfb.Reader) (*mscfb.File, error) {
	var names []string
	found := map[string]*mscfb.File{}
	for file, err := container.Next(); err == nil; file, err = container.Next() {
		if len(file.Path) > 0 || file.FileInfo().IsDir() {
			continue
		}
		names = append(names, file.Name)
		found[file.Name] = file
	}
	for _, name := range []string{"Workbook", "Book"} {
		if file, ok := found[name]; ok {
			return file, nil
		}
	}
	if _, encrypted := found["EncryptedPackage"]; encrypted {
		return nil, damaged("it is encrypted: it opens with a password only")
	}
	slices.Sort(names)
	return nil, notWorkbook("an OLE container without a stream Workbook; it has %.200q", names)
}

// readStream reads a stream in chunks.
func readStream(file *mscfb.File) ([]byte, error) {
	stream := make([]byte, file.Size)
	for done := 0; done < len(stream); {
		n, err := file.Read(stream[done:min(len(stream), done+chunkBytes)])
		done += n
		if done < len(stream) && (err != nil || n == 0) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, damaged("its stream %s ends after %d of %d bytes: %v", file.Name, done, len(stream), err)
		}
	}
	return stream, nil
}
