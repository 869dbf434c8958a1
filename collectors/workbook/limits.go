package workbook

// Limits of a workbook with rates. The largest known files have 1.4 MB, their largest sheets 7,520 rows of 5 cells
// and 4,075 rows of 17.
const (
	bodyBytesMax     = 16 << 20  // of the file
	partsMax         = 1000      // in an XLSX package; real ones have about 20
	partBytesMax     = 32 << 20  // of one part, decompressed
	packedRatio      = 100       // largest ratio of decompressed to compressed size; tables have 5 to 30, a bomb has 1,000
	partRatioFrom    = 1 << 20   // decompressed size above which packedRatio is checked
	tokenBytesMax    = 128 << 10 // of one XML token: a tag, a text, a comment
	depthMax         = 64        // of nested elements
	elementsMax      = 2_000_000 // of one part
	sheetsMax        = 256
	sharedStringsMax = 200_000
	rowsMax          = 65_536   // of a sheet, as in XLS
	columnsMax       = 256      // of a row, as in XLS
	cellsMax         = 300_000  // of a sheet, up to the last cell of each row, empty ones included
	textBytesMax     = 64 << 10 // of one cell; in XLSX each of its elements counts as a byte
)

// The longest text fits into one XML token.
const _ = uint(tokenBytesMax - textBytesMax)
