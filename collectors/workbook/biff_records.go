package workbook

import (
	"encoding/binary"
	"fmt"
)

// Kinds of BIFF8 records that this package reads; it skips all others. A record is
//
//	+------+--------+----------------------+
//	| kind | length | data                 |   kind and length have two bytes each, little endian
//	+------+--------+----------------------+
//
// Data that does not fit into one record continues in CONTINUE records.
const (
	recordFormula    = 0x0006
	recordEOF        = 0x000A // end of a substream
	recordFilePass   = 0x002F // all records after it are encrypted
	recordContinue   = 0x003C
	recordBoundSheet = 0x0085 // name and position of one sheet
	recordMulRK      = 0x00BD
	recordRString    = 0x00D6
	recordSST        = 0x00FC // the shared strings
	recordLabelSST   = 0x00FD
	recordNumber     = 0x0203
	recordLabel      = 0x0204
	recordBoolErr    = 0x0205
	recordString     = 0x0207 // the text result of the preceding formula
	recordRK         = 0x027E
	recordBOF        = 0x0809 // start of a substream
)

const (
	recordHeader     = 4      // bytes
	biff8            = 0x0600 // the version in a BOF record
	globalsSubstream = 0x0005 // kind of the first substream, in its BOF record
	sheetSubstream   = 0x0010 // kind of the substream of a sheet
)

type record struct {
	kind   int
	offset int // in the stream
	data   []byte
}

// describe names the record in an error message.
func (r record) describe() string {
	return fmt.Sprintf("record %#04x at byte %d of the stream", r.kind, r.offset)
}

func (r record) tooShort() error { return damaged("%s has only %d bytes", r.describe(), len(r.data)) }

// recordReader reads the records of a stream in order.
type recordReader struct {
	stream []byte
	offset int
}

// next reads one record. The end of the stream is an error, because every substream ends with an EOF record.
func (r *recordReader) next() (record, error) {
	data := r.stream[r.offset:]
	if len(data) < recordHeader {
		return record{}, damaged("the stream ends at byte %d, within a substream: truncated?", r.offset)
	}
	length := int(binary.LittleEndian.Uint16(data[2:]))
	rec := record{kind: int(binary.LittleEndian.Uint16(data)), offset: r.offset}
	if len(data) < recordHeader+length {
		return record{}, damaged("%s should have %d bytes, the stream ends before that", rec.describe(), length)
	}
	rec.data = data[recordHeader : recordHeader+length : recordHeader+length]
	r.offset += recordHeader + length
	return rec, nil
}

// continued returns the data of a record and of the CONTINUE records after it. It does not join them, because strings
// depend on where a record ends (see stringReader).
func (r *recordReader) continued(first record) ([][]byte, error) {
	chunks := [][]byte{first.data}
	for len(r.stream)-r.offset >= recordHeader && binary.LittleEndian.Uint16(r.stream[r.offset:]) == recordContinue {
		next, err := r.next()
		if err != nil {
			return nil, err
		}
		chunks = append(chunks, next.data)
	}
	return chunks, nil
}

// readBOF reads the BOF record at the start of a substream and returns the kind of the substream.
func (r *recordReader) readBOF() (int, error) {
	first, err := r.next()
	switch {
	case err != nil:
		return 0, err
	case first.kind != recordBOF && first.kind&0xFF == recordBOF&0xFF:
		return 0, notWorkbook("a workbook of Excel 4 or older, which is not read")
	case first.kind != recordBOF:
		return 0, damaged("%s does not begin a substream", first.describe())
	case len(first.data) < 4:
		return 0, first.tooShort()
	}
	if version := binary.LittleEndian.Uint16(first.data); version != biff8 {
		return 0, notWorkbook("a workbook of Excel 95 or older (BIFF version %#04x), which is not read", version)
	}
	return int(binary.LittleEndian.Uint16(first.data[2:])), nil
}
