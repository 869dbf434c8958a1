package workbook

// Limits on what is believed to be a table of rates, with room for what the real ones may grow to. The largest known files have
// 1.4 MB; their largest sheets have 7,520 rows of 5 cells, and 4,075 rows of 17.
const (
	bodyBytesMax     = 16 << 20 // of the file
	partsMax         = 1000     // in the package of an XLSX; real ones have about 20
	partBytesMax     = 32 << 20 // of one part, unpacked
	packedRatio      = 100      // unpacked to packed, of parts over partRatioFrom; tables have 5 to 30, a bomb has 1,000
	partRatioFrom    = 1 << 20
	tokenBytesMax    = 128 << 10 // of one piece of XML: a tag, a text, a comment
	depthMax         = 64        // of elements in elements
	elementsMax      = 2_000_000 // of one part
	sheetsMax        = 256
	sharedStringsMax = 200_000  // shared by all cells
	rowsMax          = 65_536   // of a sheet: what XLS can have
	columnsMax       = 256      // of a row: what XLS can have
	cellsMax         = 300_000  // of a sheet, counted up to the last cell of each row, empty ones too
	textBytesMax     = 64 << 10 // of one cell; in XLSX its elements count too
)

// A text must fit into a piece of XML.
const _ = uint(tokenBytesMax - textBytesMax)
