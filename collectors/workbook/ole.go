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

// Limits of the tables of an OLE container. The library follows these tables wherever a hostile file leads it, and
// its memory grows with the square of the depth of folders; so it may read only so much while it opens a file. A
// workbook has one folder and about five streams: two sectors of directory.
const (
	tableBytesMax = 128 << 10 // of whole sectors: the directory and the allocation table; 1,024 entries
	linksMax      = 32 << 10  // steps from one sector to the next
	chunkBytes    = 32 << 10  // of one read; the library's work grows with its square
)

var errDirectoryTooLarge = errors.New("the container has more tables than a workbook needs")

// limitedFile is a file of which the library may read a limited amount.
type limitedFile struct {
	file         *bytes.Reader
	bytes, links int // that it may still read
}

// ReadAt reads, or returns errDirectoryTooLarge beyond the limit.
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

// workbookStream returns the stream with the workbook of an OLE container.
func workbookStream(body []byte) (stream []byte, err error) {
	// The library panics on some invalid sizes.
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
		return nil, damaged("its stream %s should have %d bytes, but the whole file has %d: truncated?", file.Name, file.Size, len(body))
	}
	// A stream that fits into the file stays below these.
	source.bytes, source.links = 2*len(body)+tableBytesMax, len(body)
	return readStream(file)
}

// pickStream finds the stream of the workbook, which lies in the root folder. A file for two generations of Excel has
// "Book" for the older and "Workbook" for the newer one.
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
		return nil, damaged("it is encrypted: it needs a password")
	}
	slices.Sort(names)
	return nil, notWorkbook("an OLE container without a stream Workbook; it has %.200q", names)
}

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
