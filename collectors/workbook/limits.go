package workbook

// Limits of a workbook. The largest known workbook with rates has 1.4 MB. The largest known sheets have 7,520 rows of
// 5 cells and 4,075 rows of 17 cells.
const (
	bodyBytesMax     = 16 << 20  // of the file
	partsMax         = 1000      // files in an XLSX package; real packages have about 20
	partBytesMax     = 32 << 20  // decompressed size of one file (part) in the package
	packedRatioMax   = 100       // decompressed to compressed size; real tables have 5 to 30, a decompression bomb 1,000
	packedRatioFrom  = 1 << 20   // packedRatioMax applies to parts above this decompressed size
	tokenBytesMax    = 128 << 10 // of one XML token, such as a tag, a text or a comment
	depthMax         = 64        // of nested XML elements
	elementsMax      = 2_000_000 // XML elements of one part
	sheetsMax        = 256
	sharedStringsMax = 200_000
	rowsMax          = 65_536   // of a sheet, as in XLS
	columnsMax       = 256      // of a row, as in XLS
	cellsMax         = 300_000  // of a sheet; the empty cells before the last cell of a row count too
	textBytesMax     = 64 << 10 // text of one cell; in XLSX each XML element of the cell counts as one more byte
)

// Compile-time check: the longest text fits into one XML token.
const _ = uint(tokenBytesMax - textBytesMax)
