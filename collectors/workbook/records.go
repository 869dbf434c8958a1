package workbook

import (
	"encoding/binary"
	"fmt"
)

// The records of a BIFF8 stream that are read; all others are passed over. A record is two bytes with its kind, two with
// its length, and its data:
//
//	+------+--------+----------------------+
//	| kind | length | data                 |   all numbers little endian
//	+------+--------+----------------------+
//
// Data that does not fit into one goes on in records of kind CONTINUE.
const (
	recordFormula   = 0x0006
	recordEnd       = 0x000A // of a part of the stream: of the globals, of one sheet
	recordFilePass  = 0x002F // the rest is encrypted
	recordContinue  = 0x003C
	recordSheet     = 0x0085 // name and place of one sheet
	recordMulRK     = 0x00BD
	recordRichLabel = 0x00D6
	recordStrings   = 0x00FC // the shared texts
	recordLabelSST  = 0x00FD
	recordNumber    = 0x0203
	recordLabel     = 0x0204
	recordBoolError = 0x0205
	recordString    = 0x0207 // the text that the formula before gave
	recordRK        = 0x027E
	recordBegin     = 0x0809 // of a part of the stream
)

const (
	recordHeader = 4
	biff8        = 0x0600 // the version in recordBegin
	globalsPart  = 0x0005 // the kind of part in recordBegin
	sheetPart    = 0x0010
)

// record is one record, with where it stands.
type record struct {
	kind   int
	offset int
	data   []byte
}

// at names the record for people.
func (r record) at() string {
	return fmt.Sprintf("record %#04x at byte %d of the stream", r.kind, r.offset)
}

// short says that a record ends before its data does.
func (r record) short() error { return damaged("%s has only %d bytes", r.at(), len(r.data)) }

// records reads a stream, one record after another.
type records struct {
	stream []byte
	offset int
}

// next reads one record. The end of the stream is an error: every part says itself where it ends.
func (r *records) next() (record, error) {
	rest := r.stream[r.offset:]
	if len(rest) < recordHeader {
		return record{}, damaged("the stream ends at byte %d, in the middle of a part: cut off?", r.offset)
	}
	length := int(binary.LittleEndian.Uint16(rest[2:]))
	found := record{kind: int(binary.LittleEndian.Uint16(rest)), offset: r.offset}
	if len(rest) < recordHeader+length {
		return record{}, damaged("%s should have %d bytes, the stream ends before that", found.at(), length)
	}
	found.data = rest[recordHeader : recordHeader+length : recordHeader+length]
	r.offset += recordHeader + length
	return found, nil
}

// continued gives the data of a record and of the CONTINUE records behind it, piece by piece: texts count the pieces.
func (r *records) continued(first record) ([][]byte, error) {
	pieces := [][]byte{first.data}
	for len(r.stream)-r.offset >= recordHeader && binary.LittleEndian.Uint16(r.stream[r.offset:]) == recordContinue {
		more, err := r.next()
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, more.data)
	}
	return pieces, nil
}

// begin reads the first record of a part and says which kind of part it is.
func (r *records) begin() (int, error) {
	first, err := r.next()
	switch {
	case err != nil:
		return 0, err
	case first.kind != recordBegin && first.kind&0xFF == recordBegin&0xFF:
		return 0, noWorkbook("a workbook of Excel 4 or older, which is not read")
	case first.kind != recordBegin:
		return 0, damaged("%s is not the beginning of a part", first.at())
	case len(first.data) < 4:
		return 0, first.short()
	}
	if version := binary.LittleEndian.Uint16(first.data); version != biff8 {
		return 0, noWorkbook("a workbook of Excel 95 or older (BIFF version %#04x), which is not read", version)
	}
	return int(binary.LittleEndian.Uint16(first.data[2:])), nil
}
