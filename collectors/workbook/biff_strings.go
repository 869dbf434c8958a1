package workbook

import (
	"encoding/binary"
	"fmt"
	"unicode/utf16"
)

// stringReader reads BIFF8 strings from the data of a record and of the CONTINUE records after it. A string is
//
//	+--------+-------+------+--------+------------+---------+----------+
//	| length | flags | runs | extent | characters | formats | phonetic |
//	+--------+-------+------+--------+------------+---------+----------+
//
// runs is the number of formats, and present only with flagRichText. extent is the size of the phonetic text, and
// present only with flagExtended. Formats and phonetic text are skipped. If a record ends within the characters, the
// next record begins with new flags, because the remaining characters may have another width.
type stringReader struct {
	first  record   // first record of the data, for error messages
	chunks [][]byte // unread data; one chunk for each record
}

// Flags of a string.
const (
	flagUTF16    = 0x01 // a character has two bytes; without the flag only the low byte is stored
	flagExtended = 0x04
	flagRichText = 0x08
)

// chunk returns at least one and at most n bytes, all from one record.
func (p *stringReader) chunk(n int) ([]byte, error) {
	for len(p.chunks) > 0 && len(p.chunks[0]) == 0 {
		p.chunks = p.chunks[1:]
	}
	if len(p.chunks) == 0 {
		return nil, damaged("%s ends in the middle of a text", p.first.describe())
	}
	n = min(n, len(p.chunks[0]))
	data := p.chunks[0][:n]
	p.chunks[0] = p.chunks[0][n:]
	return data, nil
}

// readUint reads a little-endian number of size bytes, at most four.
func (p *stringReader) readUint(size int) (int, error) {
	var field [4]byte
	for n := 0; n < size; {
		data, err := p.chunk(size - n)
		if err != nil {
			return 0, err
		}
		n += copy(field[n:], data)
	}
	return int(binary.LittleEndian.Uint32(field[:])), nil
}

func (p *stringReader) skip(n int) error {
	for n > 0 {
		data, err := p.chunk(n)
		if err != nil {
			return err
		}
		n -= len(data)
	}
	return nil
}

// readString reads one string. lengthBytes is the size of the length before its characters: 1 or 2 bytes.
func (p *stringReader) readString(lengthBytes int) (string, error) {
	length, err := p.readUint(lengthBytes)
	if err != nil {
		return "", err
	}
	flags, err := p.readUint(1)
	if err != nil {
		return "", err
	}
	runs, extent := 0, 0
	if flags&flagRichText != 0 {
		if runs, err = p.readUint(2); err != nil {
			return "", err
		}
	}
	if flags&flagExtended != 0 {
		if extent, err = p.readUint(4); err != nil {
			return "", err
		}
	}
	text, err := p.readCharacters(length, flags)
	if err != nil {
		return "", err
	}
	return text, p.skip(4*runs + extent)
}

// readCharacters reads length UTF-16 code units. It does not allocate them in advance, because length may be wrong.
func (p *stringReader) readCharacters(length, flags int) (string, error) {
	var units []uint16
	for len(units) < length {
		if len(p.chunks[0]) == 0 { // the next chunk begins with its own flags
			var err error
			if flags, err = p.readUint(1); err != nil {
				return "", err
			}
		}
		width := 1 + flags&flagUTF16
		data, err := p.chunk(width * (length - len(units)))
		if err != nil {
			return "", err
		}
		if len(data)%width != 0 {
			return "", damaged("%s cuts a character in two", p.first.describe())
		}
		for i := 0; i < len(data); i += width {
			unit := uint16(data[i])
			if width == 2 {
				unit = binary.LittleEndian.Uint16(data[i:])
			}
			units = append(units, unit)
		}
	}
	text := string(utf16.Decode(units))
	if len(text) > textBytesMax {
		return "", tooLarge("%s has a text of %d bytes, the most is %d", p.first.describe(), len(text), textBytesMax)
	}
	return text, nil
}

func readSharedStrings(first record, data [][]byte) ([]string, error) {
	p := &stringReader{first: first, chunks: data}
	if err := p.skip(4); err != nil { // how often cells refer to the strings
		return nil, err
	}
	count, err := p.readUint(4)
	if err != nil {
		return nil, err
	}
	if count > sharedStringsMax {
		return nil, tooLarge("it has %d shared strings, the most is %d", count, sharedStringsMax)
	}
	var texts []string
	for len(texts) < count {
		text, err := p.readString(2)
		if err != nil {
			return nil, fmt.Errorf("shared string %d of %d: %w", len(texts)+1, count, err)
		}
		texts = append(texts, text)
	}
	return texts, nil
}
