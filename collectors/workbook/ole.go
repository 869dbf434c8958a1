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

// Limits of reading an OLE container with the library mscfb. In a hostile file the sector chains may be endless, and
// the memory of the library grows with the square of the depth of folders. So the library may read only a limited
// number of bytes while it opens a file. A real workbook has one folder and about five streams; its directory has two
// sectors.
const (
	tableBytesMax = 128 << 10 // directory and allocation table; enough for 1,024 entries
	readsMax      = 32 << 10  // number of reads; most get the four bytes that link a sector to its next one
	chunkBytes    = 32 << 10  // size of one read from a stream; the time of a read grows with the square of its size
)

var errDirectoryTooLarge = errors.New("the container has more tables than a workbook needs")

// limitedFile limits how much the library reads from a file.
type limitedFile struct {
	file      *bytes.Reader
	bytesLeft int // bytes that may still be read; links between sectors do not count
	readsLeft int // reads that are still allowed
}

// ReadAt implements io.ReaderAt. It returns errDirectoryTooLarge after bytesLeft or readsLeft is used up.
func (f *limitedFile) ReadAt(p []byte, offset int64) (int, error) {
	if f.readsLeft--; f.readsLeft < 0 {
		return 0, errDirectoryTooLarge
	}
	if len(p) > 4 { // not a link to the next sector
		if f.bytesLeft -= len(p); f.bytesLeft < 0 {
			return 0, errDirectoryTooLarge
		}
	}
	n, err := f.file.ReadAt(p, offset)
	return n, err
}

// workbookStream returns the BIFF8 stream of the workbook in an OLE container.
func workbookStream(body []byte) (stream []byte, err error) {
	// The library panics on some invalid sizes.
	defer func() {
		if panicked := recover(); panicked != nil {
			stream, err = nil, damaged("its OLE container can't be read: %v", panicked)
		}
	}()
	limited := &limitedFile{file: bytes.NewReader(body), bytesLeft: tableBytesMax, readsLeft: readsMax}
	container, err := mscfb.New(limited)
	switch {
	case limited.bytesLeft < 0 || limited.readsLeft < 0:
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
	// A stream is at most as large as the file, so these limits stop only endless chains.
	limited.bytesLeft, limited.readsLeft = 2*len(body)+tableBytesMax, len(body)
	return readStream(file)
}

// pickStream returns the stream of the workbook. The stream is in the root folder, with the name "Workbook", or "Book"
// in files of older versions of Excel. If a file has both, pickStream returns "Workbook".
func pickStream(container *mscfb.Reader) (*mscfb.File, error) {
	var names []string
	streams := map[string]*mscfb.File{}
	for file, err := container.Next(); err == nil; file, err = container.Next() {
		if len(file.Path) > 0 || file.FileInfo().IsDir() {
			continue
		}
		names = append(names, file.Name)
		streams[file.Name] = file
	}
	for _, name := range []string{"Workbook", "Book"} {
		if file, ok := streams[name]; ok {
			return file, nil
		}
	}
	if _, encrypted := streams["EncryptedPackage"]; encrypted {
		return nil, damaged("it is encrypted: it needs a password")
	}
	slices.Sort(names)
	return nil, notWorkbook("an OLE container without a stream Workbook; it has %.200q", names)
}

func readStream(file *mscfb.File) ([]byte, error) {
	stream := make([]byte, file.Size)
	for offset := 0; offset < len(stream); {
		n, err := file.Read(stream[offset:min(len(stream), offset+chunkBytes)])
		offset += n
		if offset < len(stream) && (err != nil || n == 0) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, damaged("its stream %s ends after %d of %d bytes: %v", file.Name, offset, len(stream), err)
		}
	}
	return stream, nil
}
