package record

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

type fieldNumber = protowire.Number

var (
	errWire    = errors.New("wrong wire type")
	errMissing = errors.New("missing field")
)

// codec encodes or decodes messages. Each message has one function, named after it with the ending Fields. The function
// calls a method of codec for each field, in the order of field numbers. When encoding, the method appends the field.
// When decoding, the method reads the field if it comes next in the input, and otherwise does nothing. readMessage
// repeats the function until all fields are read, because the input may contain them in another order.
type codec struct {
	writing bool
	bytes   []byte // the output so far, or the input
	err     error  // the first error

	// The following fields are used only for reading.
	pos       int            // position in bytes; when a field number was read, its value begins here
	nextField fieldNumber    // next field in the input; 0 at the end of the message and after an error
	nextWire  protowire.Type // wire type of nextField
	recent    *recentTexts
	scope
}

// recentTexts caches texts for internedText, which would otherwise allocate a text to look it up.
type recentTexts [64]string

// scope is the state of one message during decoding.
type scope struct {
	end    int    // position in codec.bytes after the message
	needed uint64 // bit n is set if field n is mandatory
	seen   uint64 // bit n is set if mandatory field n was in the message
}

// fail stores the first error, with field and position. It ends decoding.
func (c *codec) fail(err error) {
	if c.err == nil {
		c.err = fmt.Errorf("field %d at byte %d: %w", c.nextField, c.pos, err)
	}
	c.nextField, c.pos = 0, len(c.bytes)
}

func message[T any](c *codec, n fieldNumber, v *T, fields func(*codec, *T)) {
	switch {
	case c.writing:
		c.putTag(n, protowire.BytesType)
		lengthPrefixed(c, v, fields)
	case c.nextField == n:
		outer := c.scope
		readMessage(c, c.length(), v, fields)
		c.scope = outer
		c.advance()
	}
}

// repeated writes or reads a list of messages.
func repeated[T any](c *codec, n fieldNumber, list *[]T, fields func(*codec, *T)) {
	if c.writing {
		for i := range *list {
			message(c, n, &(*list)[i], fields)
		}
		return
	}
	for c.nextField == n {
		var zero T
		*list = append(*list, zero)
		message(c, n, &(*list)[len(*list)-1], fields)
	}
}

// lengthPrefixed writes the length of a message, then the message.
func lengthPrefixed[T any](c *codec, v *T, fields func(*codec, *T)) {
	start := len(c.bytes)
	fields(c, v)
	var length [10]byte
	c.bytes = slices.Insert(c.bytes, start, protowire.AppendVarint(length[:0], uint64(len(c.bytes)-start))...)
}

func readMessage[T any](c *codec, end int, v *T, fields func(*codec, *T)) {
	c.scope = scope{end: end}
	c.advance()
	for {
		at := c.pos
		if fields(c, v); c.nextField == 0 {
			break
		}
		if c.pos == at {
			c.skip()
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

// consumed moves the position by n, the number of bytes read by protowire. A negative n is protowire's error.
func (c *codec) consumed(n int) {
	if n < 0 {
		c.fail(protowire.ParseError(n))
		return
	}
	c.pos += n
}

// advance reads the number and the wire type of the next field.
func (c *codec) advance() {
	if c.pos >= c.end || c.err != nil {
		c.nextField = 0
		return
	}
	number, wire, n := protowire.ConsumeTag(c.bytes[c.pos:c.end])
	c.nextField, c.nextWire = number, wire
	c.consumed(n)
}

// number reads the value of the next field, which must be a varint.
func (c *codec) number() uint64 {
	if c.nextWire != protowire.VarintType {
		c.fail(errWire)
		return 0
	}
	return c.varint()
}

func (c *codec) varint() uint64 {
	if c.pos >= c.end {
		c.fail(io.ErrUnexpectedEOF)
		return 0
	}
	v, n := protowire.ConsumeVarint(c.bytes[c.pos:c.end])
	c.consumed(n)
	return v
}

// length reads the length of the next field's value. It returns the position after the value.
func (c *codec) length() (end int) {
	if c.nextWire != protowire.BytesType {
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

// value reads the bytes of the next field. The result shares memory with the input.
func (c *codec) value() []byte {
	end := c.length()
	value := c.bytes[c.pos:end:end]
	c.pos = end
	return value
}

// skip skips an unknown field.
func (c *codec) skip() {
	c.consumed(protowire.ConsumeFieldValue(c.nextField, c.nextWire, c.bytes[c.pos:c.end]))
	c.advance()
}

func (c *codec) putTag(n fieldNumber, wire protowire.Type) {
	c.bytes = protowire.AppendTag(c.bytes, n, wire)
}

// put writes a field with a number. It omits the field if the number is 0.
func (c *codec) put(n fieldNumber, v uint64) {
	if v != 0 {
		c.putTag(n, protowire.VarintType)
		c.bytes = protowire.AppendVarint(c.bytes, v)
	}
}

// putBytes writes a field with bytes. It does not omit an empty field.
func (c *codec) putBytes(n fieldNumber, v []byte) {
	c.putTag(n, protowire.BytesType)
	c.bytes = protowire.AppendBytes(c.bytes, v)
}
