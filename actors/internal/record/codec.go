package record

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
)

type fieldNumber int32

// The wire types of protobuf. The encoder uses only wireVarint and wireBytes. The decoder skips fields of other types.
const (
	wireVarint     = 0
	wireFixed64    = 1
	wireBytes      = 2
	wireGroup      = 3
	wireGroupClose = 4
	wireFixed32    = 5
)

var (
	errOverflow  = errors.New("number of more than 64 bits")
	errTag       = errors.New("not the tag of a field")
	errWire      = errors.New("wrong wire type")
	errDuplicate = errors.New("duplicate field")
	errMissing   = errors.New("missing field")
)

// codec encodes or decodes messages. For each message one function calls a method of codec for each field, in the order
// of field numbers. When encoding, the method appends the field. When decoding, the method reads the field if the input
// continues with it, and else does nothing. In case the fields of the input are in another order, readMessage calls the
// function repeatedly until it has read all fields.
type codec struct {
	writing bool
	bytes   []byte // the output so far, or the input
	err     error  // the first error

	// The following fields are used only for reading.
	pos       int         // position in bytes; the value of nextField begins there
	nextField fieldNumber // the field that comes next in the input; 0 at the end of the message and after an error
	nextWire  byte        // wire type of nextField
	scope
}

// scope is the state of one message that is being read.
type scope struct {
	end    int    // position in codec.bytes after the message
	needed uint64 // bit n is set if field n is mandatory
	seen   uint64 // bit n is set if field n was in the message
}

// fail stores the first error, with field and position, and ends reading.
func (c *codec) fail(err error) {
	if c.err == nil {
		c.err = fmt.Errorf("field %d at byte %d: %w", c.nextField, c.pos, err)
	}
	c.nextField, c.pos = 0, len(c.bytes)
}

func message[T any](c *codec, n fieldNumber, v *T, fields func(*codec, *T)) {
	switch {
	case c.writing:
		c.putTag(n, wireBytes)
		lengthPrefixed(c, v, fields)
	case c.nextField == n:
		outer := c.scope
		end := c.length()
		readMessage(c, end, v, fields)
		c.scope = outer
		c.advance()
	}
}

// repeated writes or reads a list of messages. It counts them before it reads them, to allocate the list only once.
func repeated[T any](c *codec, n fieldNumber, list *[]T, fields func(*codec, *T)) {
	if c.writing {
		for i := range *list {
			message(c, n, &(*list)[i], fields)
		}
		return
	}
	if c.nextField == n && *list == nil {
		*list = make([]T, 0, c.countRun())
	}
	for c.nextField == n {
		var zero T
		*list = append(*list, zero)
		message(c, n, &(*list)[len(*list)-1], fields)
	}
}

// lengthPrefixed writes the length of a message, then the message. It reserves one byte for the length.
func lengthPrefixed[T any](c *codec, v *T, fields func(*codec, *T)) {
	c.bytes = append(c.bytes, 0)
	start := len(c.bytes)
	fields(c, v)
	c.insertLength(start)
}

// insertLength writes the length of the message that begins at start and is complete. If the length needs more than one
// byte, it moves the message. It is not part of lengthPrefixed, of which the program has a copy for each type.
func (c *codec) insertLength(start int) {
	size := len(c.bytes) - start
	if size < 0x80 {
		c.bytes[start-1] = byte(size)
		return
	}
	var head [10]byte
	length := appendVarint(head[:0], uint64(size))
	c.bytes = append(c.bytes, length[1:]...)
	copy(c.bytes[start-1+len(length):], c.bytes[start:start+size])
	copy(c.bytes[start-1:], length)
}

func readMessage[T any](c *codec, end int, v *T, fields func(*codec, *T)) {
	c.scope = scope{end: end}
	c.advance()
	for {
		at := c.pos
		fields(c, v)
		if c.nextField == 0 {
			break
		}
		if c.pos == at {
			c.skip()
			c.advance()
		}
	}
	if missing := c.needed &^ c.seen; missing != 0 && c.err == nil {
		c.nextField = fieldNumber(bits.TrailingZeros64(missing))
		c.fail(errMissing)
	}
}

// require makes a field mandatory in the current message.
func (c *codec) require(n fieldNumber) {
	c.needed |= 1 << n
	if c.nextField == n {
		c.seen |= 1 << n
	}
}

// once makes a second occurrence of a field an error. protobuf would merge the two.
func (c *codec) once(n fieldNumber) {
	if c.nextField == n {
		if c.seen&(1<<n) != 0 {
			c.fail(errDuplicate)
		}
		c.seen |= 1 << n
	}
}

// countRun returns how many fields with the number nextField follow each other. It reads nothing.
func (c *codec) countRun() int {
	at, next, wire, err, count := c.pos, c.nextField, c.nextWire, c.err, 0
	for c.nextField == next && c.nextWire == wireBytes {
		c.pos = c.length()
		c.advance()
		count++
	}
	c.pos, c.nextField, c.nextWire, c.err = at, next, wire, err
	return count
}

// advance reads the number and the wire type of the next field.
func (c *codec) advance() {
	if c.pos >= c.end {
		c.nextField = 0
		return
	}
	tag := uint64(c.bytes[c.pos])
	if tag < 0x80 {
		c.pos++
	} else {
		tag = c.varint()
	}
	c.nextField, c.nextWire = fieldNumber(tag>>3), byte(tag&7)
	if c.nextField <= 0 || c.nextWire == wireGroupClose {
		if c.err == nil {
			c.fail(errTag)
		}
		c.nextField = 0
	}
}

// varint reads a varint of at most ten bytes. It ignores bits beyond the 64th.
func (c *codec) varint() uint64 {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		if c.pos >= c.end {
			c.fail(io.ErrUnexpectedEOF)
			return 0
		}
		b := c.bytes[c.pos]
		c.pos++
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	c.fail(errOverflow)
	return 0
}

// number reads the value of the next field, which must be a varint.
func (c *codec) number() uint64 {
	if c.nextWire != wireVarint {
		c.fail(errWire)
		return 0
	}
	if c.pos < c.end && c.bytes[c.pos] < 0x80 {
		c.pos++
		return uint64(c.bytes[c.pos-1])
	}
	return c.varint()
}

// length reads the length of the next field's value. It returns the position after the value.
func (c *codec) length() (end int) {
	if c.nextWire != wireBytes {
		c.fail(errWire)
		return c.pos
	}
	size := c.varint()
	if size > uint64(max(c.end-c.pos, 0)) {
		c.fail(io.ErrUnexpectedEOF)
		return c.pos
	}
	return c.pos + int(size)
}

// value reads the bytes of the next field. The result aliases the input.
func (c *codec) value() []byte {
	end := c.length()
	value := c.bytes[c.pos:end:end]
	c.pos = end
	return value
}

func (c *codec) skip() {
	for depth := 0; ; {
		switch c.nextWire {
		case wireVarint:
			c.varint()
		case wireFixed64:
			c.pos += 8
		case wireBytes:
			c.value()
		case wireGroup:
			depth++
		case wireGroupClose:
			depth--
		case wireFixed32:
			c.pos += 4
		default:
			c.fail(errTag)
		}
		if c.pos > c.end && c.err == nil {
			c.fail(io.ErrUnexpectedEOF)
		}
		if depth == 0 || c.err != nil {
			return
		}
		c.nextWire = byte(c.varint() & 7)
	}
}

func (c *codec) putTag(n fieldNumber, wire byte) {
	c.bytes = appendVarint(c.bytes, uint64(n)<<3|uint64(wire))
}

// put writes a field with a number. It omits the field if the number is 0.
func (c *codec) put(n fieldNumber, v uint64) {
	if v != 0 {
		c.putTag(n, wireVarint)
		c.bytes = appendVarint(c.bytes, v)
	}
}

// putBytes writes a field with bytes. It does not omit an empty field.
func (c *codec) putBytes(n fieldNumber, v []byte) {
	c.putTag(n, wireBytes)
	c.bytes = append(appendVarint(c.bytes, uint64(len(v))), v...)
}
