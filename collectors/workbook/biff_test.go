package workbook

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf16"
)

// A small writer of XLS, for what the real files lack and for what no good file has.

func le16(n int) []byte { return binary.LittleEndian.AppendUint16(nil, uint16(n)) }
func le32(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

func double(value float64) []byte {
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(value))
}

// biffRecord is one record.
func biffRecord(kind int, data ...[]byte) []byte {
	all := slices.Concat(data...)
	return slices.Concat(le16(kind), le16(len(all)), all)
}

// biffCell is a record that begins with a place and a format.
func biffCell(kind, row, column int, data ...[]byte) []byte {
	return biffRecord(kind, append([][]byte{le16(row), le16(column), le16(0)}, data...)...)
}

func biffBegin(part int) []byte {
	return biffRecord(recordBegin, le16(biff8), le16(part), make([]byte, 12))
}
func biffEnd() []byte { return biffRecord(recordEnd) }

// narrow and wide are the letters of a text in either width.
func narrow(text string) []byte {
	var out []byte
	for _, letter := range text {
		out = append(out, byte(letter))
	}
	return out
}

func wide(text string) []byte {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = append(out, le16(int(unit))...)
	}
	return out
}

// narrowText and wideText are whole texts with a length in two bytes.
func narrowText(text string) []byte {
	return slices.Concat(le16(len([]rune(text))), []byte{0}, narrow(text))
}

func wideText(text string) []byte {
	return slices.Concat(le16(len(utf16.Encode([]rune(text)))), []byte{wideLetters}, wide(text))
}

// sharedTable is the record of the shared texts.
func sharedTable(texts ...[]byte) []byte {
	return biffRecord(recordStrings, le32(len(texts)), le32(len(texts)), slices.Concat(texts...))
}

// biffSheet is one sheet to write.
type biffSheet struct {
	name  string
	kind  byte   // 0 = a worksheet
	cells []byte // its records, without begin and end
}

// biffStream is the stream of a workbook: globals, then sheets.
func biffStream(globals []byte, sheets ...biffSheet) []byte {
	entry := func(s biffSheet, start int) []byte {
		return biffRecord(recordSheet, le32(start), []byte{0, s.kind, byte(len(utf16.Encode([]rune(s.name)))), wideLetters}, wide(s.name))
	}
	length := len(biffBegin(globalsPart)) + len(globals) + len(biffEnd())
	for _, s := range sheets {
		length += len(entry(s, 0))
	}
	stream, parts := biffBegin(globalsPart), []byte(nil)
	for _, s := range sheets {
		stream = append(stream, entry(s, length+len(parts))...)
		parts = append(parts, slices.Concat(biffBegin(sheetPart), s.cells, biffEnd())...)
	}
	return slices.Concat(stream, globals, biffEnd(), parts)
}

// xls is a workbook with one sheet, "Diaria".
func xls(globals []byte, cells ...[]byte) []byte {
	return ole(oleStream{"Workbook", biffStream(globals, biffSheet{name: "Diaria", cells: slices.Concat(cells...)})})
}

// oleStream is one stream of a container.
type oleStream struct {
	name string
	data []byte
}

const (
	sector     = 512
	miniSector = 64
	miniBelow  = 4096
	chainEnds  = -2
	noEntry    = -1
)

// oleWriter lays out a container: its sectors, and of each the next one in its chain.
type oleWriter struct {
	sectors bytes.Buffer
	next    []int
	mini    bytes.Buffer
	nextOf  []int // in the mini stream
}

// chain appends data as a chain of pieces of a size and gives its first one.
func chain(to *bytes.Buffer, next *[]int, size int, data []byte) int {
	first := len(*next)
	if len(data) == 0 {
		return chainEnds
	}
	for at := 0; at < len(data); at += size {
		piece := data[at:min(len(data), at+size)]
		to.Write(piece)
		to.Write(make([]byte, size-len(piece)))
		*next = append(*next, len(*next)+1)
	}
	(*next)[len(*next)-1] = chainEnds
	return first
}

func oleEntry(name string, kind byte, child, right, start, size int) []byte {
	entry := make([]byte, 128)
	copy(entry, wide(name))
	copy(entry[64:], le16(2*len(name)+2))
	entry[66], entry[67] = kind, 1
	copy(entry[68:], slices.Concat(le32(noEntry), le32(right), le32(child)))
	copy(entry[116:], slices.Concat(le32(start), le32(size)))
	return entry
}

// links is a table of chains, filled up to whole sectors.
func links(next []int) []byte {
	var table []byte
	for _, n := range next {
		table = append(table, le32(n)...)
	}
	for len(table)%sector != 0 {
		table = append(table, le32(noEntry)...)
	}
	return table
}

// ole is a container with these streams at its top.
func ole(streams ...oleStream) []byte {
	const file, root = 2, 5
	w := &oleWriter{}
	var directory []byte
	for i, s := range streams {
		start := 0
		if len(s.data) < miniBelow {
			start = chain(&w.mini, &w.nextOf, miniSector, s.data)
		} else {
			start = chain(&w.sectors, &w.next, sector, s.data)
		}
		right := i + 2
		if i == len(streams)-1 {
			right = noEntry
		}
		directory = append(directory, oleEntry(s.name, file, noEntry, right, start, len(s.data))...)
	}
	miniStart := chain(&w.sectors, &w.next, sector, w.mini.Bytes())
	miniTable := links(w.nextOf)
	miniTableStart := chain(&w.sectors, &w.next, sector, miniTable)
	directoryStart := chain(&w.sectors, &w.next, sector,
		append(oleEntry("Root Entry", root, 1, noEntry, miniStart, w.mini.Len()), directory...))
	tables := 1
	for tables*sector/4 < len(w.next)+tables {
		tables++
	}
	tableStart := len(w.next)
	for range tables {
		w.next = append(w.next, -3)
	}
	w.sectors.Write(links(w.next))

	header := make([]byte, sector)
	copy(header, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")
	copy(header[24:], slices.Concat(le16(0x3E), le16(3), le16(0xFFFE), le16(9), le16(6)))
	copy(header[44:], slices.Concat(le32(tables), le32(directoryStart)))
	copy(header[56:], slices.Concat(le32(miniBelow), le32(miniTableStart), le32(len(miniTable)/sector), le32(chainEnds), le32(0)))
	for i := range 109 {
		at := noEntry
		if i < tables {
			at = tableStart + i
		}
		copy(header[76+4*i:], le32(at))
	}
	return append(header, w.sectors.Bytes()...)
}
