package workbook

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"path"
	"strings"
)

const zipSignature = "PK"

// directorySignature begins each entry of a package's directory.
const directorySignature = "PK\x01\x02"

// xlsxBook is an XLSX: a zip package of XML parts, which point to each other by relations.
type xlsxBook struct {
	parts  map[string]*zip.File // by lower name
	sheets []string             // names of their parts
	texts  []string             // shared by all sheets
}

// The kinds of relations that are followed, as the last step of their URI: there are two families of URIs for the same.
const (
	relationBook  = "officeDocument"
	relationSheet = "worksheet"
	relationTexts = "sharedStrings"
)

func openXLSX(body []byte) (*Book, error) {
	parts, err := openPackage(body)
	if err != nil {
		return nil, err
	}
	read := &xlsxBook{parts: parts}
	bookPart, err := read.findBook()
	if err != nil {
		return nil, err
	}
	relations, err := read.relations(bookPart)
	if err != nil {
		return nil, err
	}
	for _, r := range relations {
		if r.kind == relationTexts {
			if err := read.readTexts(r.target); err != nil {
				return nil, err
			}
		}
	}
	book := &Book{format: read}
	return book, read.readSheets(book, bookPart, relations)
}

// openPackage reads the directory of the package.
func openPackage(body []byte) (map[string]*zip.File, error) {
	// Every entry costs memory, and the number that the package itself gives is not to be believed.
	if entries := bytes.Count(body, []byte(directorySignature)); entries > partsMax {
		return nil, tooLarge("its package has %d parts, the most is %d", entries, partsMax)
	}
	archive, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // nothing is written by its name
		return nil, damaged("its package can't be read, was it cut off? %v", err)
	}
	parts := make(map[string]*zip.File, len(archive.File))
	for _, file := range archive.File {
		name := partKey(file.Name)
		if parts[name] != nil {
			return nil, damaged("its package has two parts of the name %q", file.Name)
		}
		parts[name] = file
	}
	return parts, nil
}

// partKey is a part's name as it is looked up: some writers differ in case, some use the wrong slash.
func partKey(name string) string {
	return strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(name, "\\", "/"), "/"))
}

// findBook finds the part of the workbook.
func (b *xlsxBook) findBook() (string, error) {
	name := "xl/workbook.xml"
	relations, err := b.relations("")
	if err != nil {
		return "", err
	}
	for _, r := range relations {
		if r.kind == relationBook {
			name = r.target
		}
	}
	switch {
	case strings.HasSuffix(name, ".bin"):
		return "", noWorkbook("a binary workbook (XLSB), which is not read")
	case b.parts[partKey(name)] == nil:
		return "", noWorkbook("a zip package of %d parts, none of which is a workbook", len(b.parts))
	}
	return name, nil
}

// part finds a part that must be there.
func (b *xlsxBook) part(name string) (*zip.File, error) {
	file := b.parts[partKey(name)]
	if file == nil {
		return nil, damaged("part %s is missing", name)
	}
	return file, nil
}

// relation is a pointer from one part to another.
type relation struct {
	id, kind, target string
}

// relationReader reads the relations of a part.
type relationReader struct {
	folder string
	found  []relation
}

func (r *relationReader) open(at []string, attributes []xml.Attr) error {
	if !under(at, "Relationships", "Relationship") || attribute(attributes, "TargetMode") == "External" {
		return nil
	}
	target := attribute(attributes, "Target")
	if !strings.HasPrefix(target, "/") {
		target = path.Join(r.folder, target)
	}
	r.found = append(r.found, relation{id: attribute(attributes, "Id"), kind: path.Base(attribute(attributes, "Type")), target: target})
	if len(r.found) > partsMax {
		return tooLarge("more than %d relations", partsMax)
	}
	return nil
}

func (r *relationReader) text([]string, []byte) error { return nil }
func (r *relationReader) close([]string) error        { return nil }

// relations reads the relations of a part, "" for those of the package. A part need not have any.
func (b *xlsxBook) relations(part string) ([]relation, error) {
	folder, name := path.Split(part)
	file := b.parts[partKey(path.Join(folder, "_rels", name+".rels"))]
	if file == nil {
		return nil, nil
	}
	read := &relationReader{folder: folder}
	err := walk(file, "Relationships", read)
	return read.found, err
}

// sheetReader reads the names of the sheets from the part of the workbook.
type sheetReader struct {
	names, ids []string
}

func (s *sheetReader) open(at []string, attributes []xml.Attr) error {
	if !under(at, bookRoot, "sheets", "sheet") {
		return nil
	}
	s.names = append(s.names, attribute(attributes, "name"))
	s.ids = append(s.ids, attribute(attributes, "id"))
	if len(s.names) > sheetsMax {
		return tooLarge("more than %d sheets", sheetsMax)
	}
	return nil
}

func (s *sheetReader) text([]string, []byte) error { return nil }
func (s *sheetReader) close([]string) error        { return nil }

// readSheets takes in the names of the sheets and of their parts.
func (b *xlsxBook) readSheets(book *Book, bookPart string, relations []relation) error {
	file, err := b.part(bookPart)
	if err != nil {
		return err
	}
	listed := &sheetReader{}
	if err := walk(file, bookRoot, listed); err != nil {
		return err
	}
	byID := make(map[string]relation, len(relations))
	for _, r := range relations {
		byID[r.id] = r
	}
	for i, id := range listed.ids {
		r, ok := byID[id]
		if !ok {
			return damaged("sheet %q points to the relation %q, which is not there", listed.names[i], id)
		}
		if r.kind == relationSheet {
			book.sheets = append(book.sheets, listed.names[i])
			b.sheets = append(b.sheets, r.target)
		}
	}
	return nil
}

// readTexts takes in the shared texts.
func (b *xlsxBook) readTexts(part string) error {
	file, err := b.part(part)
	if err != nil {
		return err
	}
	read := &textReader{}
	if err := walk(file, "sst", read); err != nil {
		return err
	}
	b.texts = read.texts
	return nil
}

// rows reads one sheet.
func (b *xlsxBook) rows(sheet int) ([][]string, error) {
	file, err := b.part(b.sheets[sheet])
	if err != nil {
		return nil, err
	}
	read := &sheetCells{texts: b.texts, row: -1}
	if err := walk(file, "worksheet", read); err != nil {
		return nil, err
	}
	return read.grid.rows, nil
}

// inPart adds to an error the part and the place in it.
func inPart(name string, decoder *xml.Decoder, err error) error {
	line, column := decoder.InputPos()
	return fmt.Errorf("%w; part %s, line %d, column %d", err, name, line, column)
}
