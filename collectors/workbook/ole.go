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

// Limits of the tables of an OLE container. In a hostile file these tables may be endless, and the memory of the
// library grows with the square of the depth of folders. So the library may read only a limited amount while it opens a
// file. A workbook has one folder and about five streams, in two sectors of directory.
const (
	tableBytesMax = 128 << 10 // sectors of the directory and of the allocation table; 1,024 entries
	linksMax      = 32 << 10  // steps from one sector to the next
	chunkBytes    = 32 << 10  // bytes of one read; the time of a read grows with its square
)

var errDirectoryTooLarge = errors.New("the container has more tables than a workbook needs")

// limitedFile limits how much the library reads from a file.
type limitedFile struct {
	file                 *bytes.Reader
	bytesLeft, linksLeft int // how much may still be read
}

// ReadAt reads, or returns errDirectoryTooLarge beyond the limit.
func (f *limitedFile) ReadAt(p []byte, offset int64) (int, error) {
	if f.linksLeft--; f.linksLeft < 0 {
		return 0, errDirectoryTooLarge
	}
	if len(p) > 4 { // a step from sector to sector reads four bytes
		if f.bytesLeft -= len(p); f.bytesLeft < 0 {
			return 0, errDirectoryTooLarge
		}
	}
	n, err := f.file.ReadAt(p, offset)
	return n, err
}

// workbookStream returns the stream with the workbook of an OLE container.
func workbookStream(body []byte) (stream []byte, err error) {
	// The library panics on some invalid sizes.
	defer func() {
		if panicked := recover(); panicked != nil {
			stream, err = nil, damaged("its OLE container can't be read: %v", panicked)
		}
	}()
	limited := &limitedFile{file: bytes.NewReader(body), bytesLeft: tableBytesMax, linksLeft: linksMax}
	container, err := mscfb.New(limited)
	switch {
	case limited.bytesLeft < 0 || limited.linksLeft < 0:
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
	// Reading a stream that is not larger than the file needs less than these limits.
	limited.bytesLeft, limited.linksLeft = 2*len(body)+tableBytesMax, len(body)
	return readStream(file)
}

// pickStream returns the stream of the workbook, which is in the root folder: "Workbook", or "Book" in files of older
// versions of Excel. Some files have both.
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
