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
	recordFormula    = 0x0006
	recordEOF        = 0x000A // of a part of the stream: of the globals, of one sheet
	recordFilePass   = 0x002F // the rest is encrypted
	recordContinue   = 0x003C
	recordBoundSheet = 0x0085 // name and place of one sheet
	recordMulRK      = 0x00BD
	recordRString    = 0x00D6
	recordSST        = 0x00FC // the shared texts
	recordLabelSST   = 0x00FD
	recordNumber     = 0x0203
	recordLabel      = 0x0204
	recordBoolErr    = 0x0205
	recordString     = 0x0207 // the text that the formula before gave
	recordRK         = 0x027E
	recordBOF        = 0x0809 // of a part of the stream
)

const (
	recordHeader     = 4
	biff8            = 0x0600 // the version in recordBegin
	globalsSubstream = 0x0005 // the kind of part in recordBegin
	sheetSubstream   = 0x0010
)

// record is one record, with where it stands.
type record struct {
	kind   int
	offset int
	data   []byte
}

// describe names the record for people.
func (r record) describe() string {
	return fmt.Sprintf("record %#04x at byte %d of the stream", r.kind, r.offset)
}

// tooShort says that a record ends before its data does.
func (r record) tooShort() error { return damaged("%s has only %d bytes", r.describe(), len(r.data)) }

// recordReader reads a stream, one record after another.
type recordReader struct {
	stream []byte
	offset int
}

// next reads one record. The end of the stream is an error: every part says itself where it ends.
func (r *recordReader) next() (record, error) {
	rest := r.stream[r.offset:]
	if len(rest) < recordHeader {
		return record{}, damaged("the stream ends at byte %d, in the middle of a part: cut off?", r.offset)
	}
	length := int(binary.LittleEndian.Uint16(rest[2:]))
	found := record{kind: int(binary.LittleEndian.Uint16(rest)), offset: r.offset}
	if len(rest) < recordHeader+length {
		return record{}, damaged("%s should have %d bytes, the stream ends before that", found.describe(), length)
	}
	found.data = rest[recordHeader : recordHeader+length : recordHeader+length]
	r.offset += recordHeader + length
	return found, nil
}

// continued gives the data of a record and of the CONTINUE records behind it, piece by piece: texts count the pieces.
func (r *recordReader) continued(first record) ([][]byte, error) {
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

// countElement reads the first record of a part and says which kind of part it is.
func (r *recordReader) readBOF() (int, error) {
	first, err := r.next()
	switch {
	case err != nil:
		return 0, err
	case first.kind != recordBOF && first.kind&0xFF == recordBOF&0xFF:
		return 0, notWorkbook("a workbook of Excel 4 or older, which is not read")
	case first.kind != recordBOF:
		return 0, damaged("%s is not the beginning of a part", first.describe())
	case len(first.data) < 4:
		return 0, first.tooShort()
	}
	if version := binary.LittleEndian.Uint16(first.data); version != biff8 {
		return 0, notWorkbook("a workbook of Excel 95 or older (BIFF version %#04x), which is not read", version)
	}
	return int(binary.LittleEndian.Uint16(first.data[2:])), nil
}
