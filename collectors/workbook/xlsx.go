package workbook

import (
	"archive/zip"
	"bytes"
	"errors"
	"path"
	"slices"
	"strings"
)

const zipSignature = "PK"

// directorySignature is the beginning of each entry in a zip directory.
const directorySignature = "PK\x01\x02"

// xlsxBook is an XLSX file: a zip package of XML files (parts). Relationships tell which part refers to which.
type xlsxBook struct {
	parts         map[string]*zip.File // by partKey
	sheets        []string             // names of the parts of the worksheets
	sharedStrings []richText
}

// Types of relationships. A type is the last segment of a URI; the segments before it differ between two variants of
// the format.
const (
	relationBook          = "officeDocument"
	relationSheet         = "worksheet"
	relationSharedStrings = "sharedStrings"
)

func openXLSX(body []byte) (*Book, error) {
	parts, err := openPackage(body)
	if err != nil {
		return nil, err
	}
	x := &xlsxBook{parts: parts}
	bookPart, err := x.findBook()
	if err != nil {
		return nil, err
	}
	relations, err := x.relations(bookPart)
	if err != nil {
		return nil, err
	}
	for _, r := range relations {
		if r.Kind == relationSharedStrings {
			if err := x.readSharedStrings(r.Target); err != nil {
				return nil, err
			}
		}
	}
	book := &Book{rows: x.rows}
	return book, x.readSheets(book, bookPart, relations)
}

// openPackage returns the parts of the package by partKey.
func openPackage(body []byte) (map[string]*zip.File, error) {
	// zip.NewReader allocates memory for each entry. The number of entries that the package declares may be wrong.
	if entries := bytes.Count(body, []byte(directorySignature)); entries > partsMax {
		return nil, tooLarge("its package has %d parts, the most is %d", entries, partsMax)
	}
	archive, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // unsafe names do no harm: parts are not written to disk
		return nil, damaged("its package can't be read, is it truncated? %v", err)
	}
	parts := make(map[string]*zip.File, len(archive.File))
	for _, file := range archive.File {
		name := partKey(file.Name)
		if parts[name] != nil {
			return nil, damaged("its package has two parts named %q", file.Name)
		}
		parts[name] = file
	}
	return parts, nil
}

// partKey normalises the name of a part. Some programs write capital letters or backslashes.
func partKey(name string) string {
	return strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(name, "\\", "/"), "/"))
}

// findBook returns the name of the part with the list of sheets, usually xl/workbook.xml.
func (b *xlsxBook) findBook() (string, error) {
	name := "xl/workbook.xml"
	relations, err := b.relations("")
	if err != nil {
		return "", err
	}
	for _, r := range relations {
		if r.Kind == relationBook {
			name = r.Target
		}
	}
	switch {
	case strings.HasSuffix(name, ".bin"):
		return "", notWorkbook("a binary workbook (XLSB), which is not read")
	case b.parts[partKey(name)] == nil:
		return "", notWorkbook("a zip package of %d parts, none of which is a workbook", len(b.parts))
	}
	return name, nil
}

// decode decodes a part into v. root is the name that its root element must have. A missing part is an error.
func (b *xlsxBook) decode(name, root string, v any) error {
	file := b.parts[partKey(name)]
	if file == nil {
		return damaged("part %s is missing", name)
	}
	return decode(file, root, v)
}

// relation is a reference from one part to another.
type relation struct {
	ID     string `xml:"Id,attr"`
	Kind   string `xml:"Type,attr"` // such as relationSheet
	Target string `xml:"Target,attr"`
	Mode   string `xml:"TargetMode,attr"`
}

// relations returns the references of a part to other parts. For "" it returns those of the whole package.
func (b *xlsxBook) relations(part string) ([]relation, error) {
	folder, name := path.Split(part)
	file := b.parts[partKey(path.Join(folder, "_rels", name+".rels"))]
	if file == nil {
		return nil, nil
	}
	var relationships struct {
		All []relation `xml:"Relationship"`
	}
	err := decode(file, "Relationships", &relationships)
	internal := slices.DeleteFunc(relationships.All, func(r relation) bool { return r.Mode == "External" })
	for i, r := range internal {
		internal[i].Kind = path.Base(r.Kind)
		if !strings.HasPrefix(r.Target, "/") {
			internal[i].Target = path.Join(folder, r.Target)
		}
	}
	return internal, err
}

// readSheets adds the names of the worksheets to book, and the names of their parts to b.
func (b *xlsxBook) readSheets(book *Book, bookPart string, relations []relation) error {
	var bookXML struct {
		Sheets []struct {
			Name string `xml:"name,attr"`
			ID   string `xml:"id,attr"`
		} `xml:"sheets>sheet"`
	}
	if err := b.decode(bookPart, bookRoot, &bookXML); err != nil {
		return err
	}
	byID := make(map[string]relation, len(relations))
	for _, r := range relations {
		byID[r.ID] = r
	}
	for _, s := range bookXML.Sheets {
		r, ok := byID[s.ID]
		if !ok {
			return damaged("sheet %q points to the relation %q, which is not there", s.Name, s.ID)
		}
		if r.Kind == relationSheet {
			book.sheets = append(book.sheets, s.Name)
			b.sheets = append(b.sheets, r.Target)
		}
	}
	return nil
}

func (b *xlsxBook) readSharedStrings(part string) error {
	var table struct {
		All []richText `xml:"si"`
	}
	err := b.decode(part, "sst", &table)
	b.sharedStrings = table.All
	return err
}

func (b *xlsxBook) rows(sheet int) ([][]string, error) {
	var sheetXML struct {
		Rows sheetCells `xml:"sheetData>row"`
	}
	sheetXML.Rows.sharedStrings, sheetXML.Rows.row = b.sharedStrings, -1
	err := b.decode(b.sheets[sheet], "worksheet", &sheetXML)
	return sheetXML.Rows.grid.rows, err
}
