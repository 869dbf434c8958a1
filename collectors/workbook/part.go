package workbook

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
)

// bookRoot is the root element of the workbook's own part.
const bookRoot = "workbook"

// errOtherRoot says that a part is of another kind: the package of a text document looks like that of a workbook.
var errOtherRoot = errors.New("another root element")

// visitor takes in one part of an XLSX, piece by piece. The path holds the names of the open elements, without name spaces.
type visitor interface {
	open(path []string, attributes []xml.Attr) error
	text(path []string, letters []byte) error
	close(path []string) error
}

// meter lets the decoder read a part and stops it when one piece of XML grows too long: the decoder keeps it whole.
type meter struct {
	source io.Reader
	left   int // bytes that may be read for the piece at hand
}

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, tooLarge("one piece of XML has more than %d bytes", tokenBytesMax)
	}
	n, err := m.source.Read(p[:min(len(p), m.left)])
	m.left -= n
	return n, err
}

// walk reads a part to its end and shows it to the visitor. Reading to the end matters: only there is the checksum compared,
// and only there is it known that nothing was cut off. Nothing counts before walk has returned without an error.
func walk(file *zip.File, root string, v visitor) error {
	if err := checkSize(file); err != nil {
		return err
	}
	source, err := file.Open()
	if err != nil {
		return damaged("part %s can't be unpacked: %v", file.Name, err)
	}
	metered := &meter{source: source}
	decoder := xml.NewDecoder(metered)
	err = pieceByPiece(decoder, metered, root, v)
	if closeErr := source.Close(); err == nil {
		err = closeErr
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errOtherRoot) && root == bookRoot:
		return fmt.Errorf("%w: %w", ErrNoWorkbook, err)
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrDamaged):
		return inPart(file.Name, decoder, err)
	}
	return inPart(file.Name, decoder, damaged("%v", err))
}

// checkSize refuses bombs by what the package says of a part. A part that holds more than it says is not read beyond that.
func checkSize(file *zip.File) error {
	size := file.UncompressedSize64
	if size > partBytesMax {
		return tooLarge("part %s has %d bytes unpacked, the most is %d", file.Name, size, partBytesMax)
	}
	if size > partRatioFrom && size/packedRatio > file.CompressedSize64 {
		return tooLarge("part %s unpacks %d bytes to %d, more than %d times as many", file.Name, file.CompressedSize64, size, packedRatio)
	}
	return nil
}

// pieceByPiece is walk without the file. The limits on depth and number hold whatever the visitor does.
func pieceByPiece(decoder *xml.Decoder, metered *meter, root string, v visitor) error {
	var path []string
	for elements := 0; ; {
		metered.left = tokenBytesMax
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF):
			if elements == 0 {
				return damaged("nothing is in it")
			}
			return nil
		case err != nil:
			return err
		}
		switch piece := token.(type) {
		case xml.StartElement:
			path = append(path, piece.Name.Local)
			if elements++; elements > elementsMax {
				return tooLarge("more than %d elements", elementsMax)
			}
			if len(path) > depthMax {
				return damaged("elements in elements, deeper than %d", depthMax)
			}
			if len(path) == 1 && path[0] != root {
				return fmt.Errorf("%w: %q, should be %q", errOtherRoot, path[0], root)
			}
			err = v.open(path, piece.Attr)
		case xml.CharData:
			if len(path) > 0 {
				err = v.text(path, piece)
			}
		case xml.EndElement:
			err = v.close(path)
			path = path[:len(path)-1]
		}
		if err != nil {
			return err
		}
	}
}

// under says whether path is exactly these elements.
func under(path []string, names ...string) bool { return slices.Equal(path, names) }

// attribute gives the value of an attribute, "" when it is not there.
func attribute(attributes []xml.Attr, name string) string {
	for _, a := range attributes {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
