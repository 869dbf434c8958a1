package workbook

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
)

const bookRoot = "workbook"

// errOtherRoot means that a part has an unexpected root element, for example because the package is a text document.
var errOtherRoot = errors.New("another root element")

// elementLimits has the maximum number of some elements in a part.
var elementLimits = map[string]struct {
	count int
	noun  string
}{
	"Relationship": {partsMax, "relations"},
	"sheet":        {sheetsMax, "sheets"},
	"si":           {sharedStringsMax, "shared strings"},
}

// partTokens reads the XML tokens of one part and checks the limits. Another xml.Decoder decodes these tokens into
// structs, so the limits bound the memory of the structs.
type partTokens struct {
	source         io.Reader
	decoder        *xml.Decoder   // reads from partTokens.Read
	root           string         // required name of the root element
	tokenBytesLeft int            // bytes that the current token may still have
	elements       int            // number of elements so far
	listed         map[string]int // like elements, for each name in elementLimits
	depth          int
	itemDepth      int // depth of the current cell or shared string; 0 = outside
	itemBytesLeft  int // bytes that the current cell or shared string may still have; an element counts as one byte
}

// Read reads from source. It fails if the current token is too long.
func (p *partTokens) Read(b []byte) (int, error) {
	if p.tokenBytesLeft <= 0 {
		return 0, tooLarge("one XML token has more than %d bytes", tokenBytesMax)
	}
	n, err := p.source.Read(b[:min(len(b), p.tokenBytesLeft)])
	p.tokenBytesLeft -= n
	return n, err
}

// Token implements xml.TokenReader.
func (p *partTokens) Token() (xml.Token, error) {
	p.tokenBytesLeft = tokenBytesMax
	token, err := p.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case xml.StartElement:
		p.depth++
		err = p.countElement(t.Name.Local)
	case xml.CharData:
		p.itemBytesLeft -= len(t)
	case xml.EndElement:
		if p.depth == p.itemDepth {
			p.itemDepth = 0
		}
		p.depth--
	}
	if err == nil && p.itemDepth > 0 && p.itemBytesLeft < 0 {
		err = tooLarge("a text of more than %d bytes", textBytesMax)
	}
	if err != nil {
		return nil, err // xml.Decoder ignores an error that comes with a token
	}
	return token, nil
}

func (p *partTokens) countElement(name string) error {
	if p.elements++; p.elements > elementsMax {
		return tooLarge("more than %d elements", elementsMax)
	}
	if p.depth > depthMax {
		return damaged("elements are nested deeper than %d", depthMax)
	}
	if p.depth == 1 && name != p.root {
		return fmt.Errorf("%w: %q, should be %q", errOtherRoot, name, p.root)
	}
	if limit, ok := elementLimits[name]; ok {
		if p.listed[name]++; p.listed[name] > limit.count {
			return tooLarge("more than %d %s", limit.count, limit.noun)
		}
	}
	if p.itemBytesLeft--; p.itemDepth == 0 && (name == "c" || name == "si") {
		p.itemDepth, p.itemBytesLeft = p.depth, textBytesMax
	}
	return nil
}

// decode decodes a part (an XML file of the package) into v. root is the name that its root element must have. It reads
// the part to its end, because archive/zip checks the checksum there. After an error, v must not be used.
func decode(file *zip.File, root string, v any) error {
	if err := checkSize(file); err != nil {
		return err
	}
	source, err := file.Open()
	if err != nil {
		return damaged("part %s can't be unpacked: %v", file.Name, err)
	}
	defer func() { _ = source.Close() }() // Decode has returned any read error
	p := &partTokens{source: source, root: root, listed: map[string]int{}}
	p.decoder = xml.NewDecoder(p)
	for decoder := xml.NewTokenDecoder(p); err == nil; {
		err = decoder.Decode(v)
	}
	switch {
	case errors.Is(err, io.EOF) && p.elements > 0:
		return nil
	case errors.Is(err, io.EOF):
		err = damaged("nothing is in it")
	case errors.Is(err, errOtherRoot) && root == bookRoot:
		return fmt.Errorf("%w: %w", ErrNotWorkbook, err)
	case !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrDamaged):
		err = damaged("%v", err)
	}
	line, column := p.decoder.InputPos()
	return fmt.Errorf("%w; part %s, line %d, column %d", err, file.Name, line, column)
}

// checkSize rejects decompression bombs by the sizes in the zip directory. archive/zip does not decompress more than
// the directory says.
func checkSize(file *zip.File) error {
	size := file.UncompressedSize64
	if size > partBytesMax {
		return tooLarge("part %s has %d bytes unpacked, the most is %d", file.Name, size, partBytesMax)
	}
	if size > packedRatioFrom && size/packedRatioMax > file.CompressedSize64 {
		return tooLarge("part %s unpacks %d bytes to %d, more than %d times as many", file.Name, file.CompressedSize64, size, packedRatioMax)
	}
	return nil
}
