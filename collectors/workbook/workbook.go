package workbook

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"
)

// Limits of a workbook. The workbooks of the central bank have up to 40 parts, 2.4 MB unpacked, and 8,200 rows.
const (
	partsMax         = 1000     // files (parts) in the zip package
	unpackedBytesMax = 16 << 20 // of all parts
	packedRatioMax   = 100      // unpacked to packed size; real tables have 5 to 30, a decompression bomb 1,000
	packedRatioFrom  = 1 << 20  // packedRatioMax applies to packages above this unpacked size
	depthMax         = 64       // of nested elements in a sheet
	rowsMax          = 65_536
	cellsMax         = 300_000
)

// Errors of Open and Book.Rows wrap one of these two.
var (
	ErrDamaged  = errors.New("damaged workbook")   // truncated, corrupt, encrypted, or not a workbook at all
	ErrTooLarge = errors.New("workbook too large") // a limit is exceeded
)

// Book is an open workbook.
type Book struct{ file *excelize.File }

// Open opens a workbook.
//
// excelize accepts damaged files: it stops silently at invalid XML, and moves cells that are out of order to other
// columns. A sheet without its last rows would look like one without updates, and a rate in another column is a wrong
// rate. So checkPackage reads the sheets first.
func Open(body []byte) (book *Book, err error) {
	defer damagedIfPanic(&err)
	if err := checkPackage(body); err != nil {
		return nil, err
	}
	file, err := excelize.OpenReader(bytes.NewReader(body), excelize.Options{
		RawCellValue: true, UnzipSizeLimit: unpackedBytesMax, UnzipXMLSizeLimit: unpackedBytesMax, // equal: no temporary files
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return &Book{file}, nil
}

// damagedIfPanic converts a panic of excelize to an error, because the library is large and files are untrusted.
func damagedIfPanic(err *error) {
	if panicked := recover(); panicked != nil {
		*err = fmt.Errorf("%w: %v", ErrDamaged, panicked)
	}
}

// Sheets returns the names of all sheets in the order of the file.
func (b *Book) Sheets() []string { return b.file.GetSheetList() }

// Rows reads a sheet: rows[i][j] is the text of the cell in row i+1 and column j+1.
func (b *Book) Rows(sheet string) (all [][]string, err error) {
	defer damagedIfPanic(&err)
	rows, err := b.file.Rows(sheet)
	if err != nil {
		return nil, fmt.Errorf("%w: sheet %q: %w", ErrDamaged, sheet, err)
	}
	cells := 0
	for rows.Next() {
		row, err := rows.Columns()
		if err != nil {
			return nil, fmt.Errorf("%w: sheet %q, row %d: %w", ErrDamaged, sheet, len(all)+1, err)
		}
		if cells += len(row); len(all) == rowsMax || cells > cellsMax {
			return nil, fmt.Errorf("%w: sheet %q has more than %d rows or %d cells", ErrTooLarge, sheet, rowsMax, cellsMax)
		}
		for i, text := range row {
			row[i] = plainNumber(text)
		}
		all = append(all, row)
	}
	if err := rows.Close(); err != nil {
		return nil, fmt.Errorf("%w: sheet %q: %w", ErrDamaged, sheet, err)
	}
	return all, nil
}

// plainNumber converts a number, perhaps with 17 digits and an exponent, to the shortest decimal text for the same
// double. It returns other texts unchanged.
func plainNumber(text string) string {
	if text == "" || strings.Trim(text, "0123456789+-.eE") != "" {
		return text
	}
	value, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return text
	case value == 0:
		return "0" // FormatFloat returns -0 for a negative zero
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// checkPackage returns an error for a decompression bomb, and for a damaged sheet or table of texts. It relies on the
// sizes in the zip directory: archive/zip unpacks no more, and checks the checksums.
func checkPackage(body []byte) error {
	if entries := bytes.Count(body, []byte("PK\x01\x02")); entries > partsMax {
		return fmt.Errorf("%w: the package has %d parts, at most %d are accepted", ErrTooLarge, entries, partsMax)
	}
	archive, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // unsafe names do no harm: parts are not written to disk
		return fmt.Errorf("%w: the package can't be read: %w", ErrDamaged, err)
	}
	unpacked := uint64(0)
	for _, part := range archive.File {
		unpacked += part.UncompressedSize64
		if part.UncompressedSize64 > unpackedBytesMax || unpacked > unpackedBytesMax {
			return fmt.Errorf("%w: %d bytes or more when unpacked, at most %d are accepted", ErrTooLarge, unpacked, unpackedBytesMax)
		}
	}
	if unpacked > packedRatioFrom && unpacked/packedRatioMax > uint64(len(body)) {
		return fmt.Errorf("%w: %d bytes unpack to %d, more than %d times as many", ErrTooLarge, len(body), unpacked, packedRatioMax)
	}
	for _, part := range archive.File {
		name := strings.ToLower(strings.ReplaceAll(part.Name, `\`, "/"))
		if strings.Contains(name, "worksheets/") && strings.HasSuffix(name, ".xml") || strings.HasSuffix(name, "sharedstrings.xml") {
			if err := checkSheet(part); err != nil {
				return fmt.Errorf("%w: %s: %w", ErrDamaged, part.Name, err)
			}
		}
	}
	return nil
}

// checkSheet reads a part to its end. Its cell names must be in order: A1, B1, A2.
func checkSheet(part *zip.File) error {
	content, err := part.Open()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // a checksum is checked at the end of the content
	lastRow, lastColumn, depth := 0, 0, 0
	for decoder := xml.NewDecoder(content); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch element := token.(type) {
		case xml.EndElement:
			depth--
		case xml.StartElement:
			if depth++; depth > depthMax {
				return fmt.Errorf("elements are nested deeper than %d", depthMax)
			}
			for _, attr := range element.Attr {
				if element.Name.Local != "c" || attr.Name.Local != "r" {
					continue
				}
				column, row, err := excelize.CellNameToCoordinates(attr.Value)
				if err != nil || row < lastRow || row == lastRow && column <= lastColumn {
					return fmt.Errorf("the cell %.20q is not in its place", attr.Value)
				}
				lastRow, lastColumn = row, column
			}
		}
	}
}
