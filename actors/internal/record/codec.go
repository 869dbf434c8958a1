package record

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"time"
	"unique"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
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
	scope
}

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

// Each method below is for one type of field: it writes v as field n, or reads v from field n.

// integer accepts numbers from low to high. The error for any other number begins with the text what.
func integer[T ~int | ~int32 | ~int64 | ~uint16 | ~uint64](c *codec, n fieldNumber, v *T, low, high int64, what string) {
	switch {
	case c.writing:
		c.put(n, uint64(*v))
	case c.nextField == n:
		got := int64(c.number())
		if got < low || got > high {
			c.fail(fmt.Errorf("%s %d", what, got))
		}
		*v = T(got)
		c.advance()
	}
}

const dateMax = 3_652_059 // 9999-12-31

func (c *codec) uint64(n fieldNumber, v *uint64) { integer(c, n, v, math.MinInt64, math.MaxInt64, "") }
func (c *codec) int64(n fieldNumber, v *int64)   { integer(c, n, v, math.MinInt64, math.MaxInt64, "") }

func (c *codec) count(n fieldNumber, v *int) { integer(c, n, v, 0, math.MaxInt32, "a count of") }

func (c *codec) node(n fieldNumber, v *engine.NodeID) { integer(c, n, v, 0, math.MaxUint16, "a node") }

func (c *codec) date(n fieldNumber, v *engine.Date) { integer(c, n, v, 0, dateMax, "date") }

// monotonic writes or reads a monotonic time (account.ClockReading), in nanoseconds.
func (c *codec) monotonic(n fieldNumber, v *time.Duration) {
	integer(c, n, v, 0, math.MaxInt64, "a monotonic time of")
}

// sint64 writes or reads a signed number in protobuf's zigzag encoding: small negative numbers are short.
func (c *codec) sint64(n fieldNumber, v *int64) {
	switch {
	case c.writing:
		c.put(n, protowire.EncodeZigZag(*v))
	case c.nextField == n:
		*v = protowire.DecodeZigZag(c.number())
		c.advance()
	}
}

func (c *codec) bool(n fieldNumber, v *bool) {
	switch {
	case c.writing && *v:
		c.put(n, 1)
	case c.nextField == n:
		*v = c.number() != 0
		c.advance()
	}
}

const secondsBeforeUnix = 62_135_596_800 // from 0001-01-01T00:00:00Z to 1970-01-01T00:00:00Z

// instant uses two fields: n for the seconds since 0001-01-01T00:00:00Z, n+1 for the nanoseconds. If both are missing,
// the time is zero. A single int64 of nanoseconds would cover only 584 years.
func (c *codec) instant(n fieldNumber, v *time.Time) {
	if c.writing {
		c.put(n, uint64(v.Unix()+secondsBeforeUnix))
		c.put(n+1, uint64(v.Nanosecond()))
		return
	}
	if c.nextField == n {
		*v = time.Unix(int64(c.number())-secondsBeforeUnix, int64(v.Nanosecond())).UTC()
		c.advance()
	}
	if c.nextField == n+1 {
		nanos := uint32(c.number())
		if nanos >= 1e9 {
			c.fail(fmt.Errorf("%d nanoseconds in a second", nanos))
			return
		}
		*v = time.Unix(v.Unix(), int64(nanos)).UTC()
		c.advance()
	}
}

// internedText writes or reads a text that many records repeat. Equal texts share one copy.
func (c *codec) internedText(n fieldNumber, v *string) {
	if c.writing || c.nextField != n {
		c.text(n, v)
		return
	}
	*v = unique.Make(string(c.value())).Value()
	c.advance()
}

func (c *codec) text(n fieldNumber, v *string) {
	switch {
	case c.writing && *v != "":
		c.putTag(n, protowire.BytesType)
		c.bytes = protowire.AppendString(c.bytes, *v)
	case c.nextField == n:
		*v = string(c.value())
		c.advance()
	}
}

// decimal writes or reads the text of a number. The empty text is the null Decimal.
func (c *codec) decimal(n fieldNumber, v *engine.Decimal) {
	switch {
	case c.writing:
		text := v.String()
		c.text(n, &text)
	case c.nextField == n:
		*v = engine.Decimal{}
		if text := c.value(); len(text) > 0 {
			value, err := engine.ParseDecimal(string(text))
			if err != nil {
				c.fail(err)
			}
			*v = value
		}
		c.advance()
	}
}

// byteStrings writes or reads a list of byte strings. The strings that it reads share memory with the input.
func (c *codec) byteStrings(n fieldNumber, v *[][]byte) {
	if c.writing {
		for _, one := range *v {
			c.putBytes(n, one)
		}
		return
	}
	for c.nextField == n {
		*v = append(*v, c.value())
		c.advance()
	}
}

// digest writes or reads a mandatory SHA-256.
func (c *codec) digest(n fieldNumber, v *account.Digest) {
	if c.writing {
		c.putBytes(n, v[:])
		return
	}
	c.require(n)
	if c.nextField == n {
		c.setDigest(c.value(), v)
		c.advance()
	}
}

func (c *codec) setDigest(data []byte, v *account.Digest) {
	if len(data) != len(v) {
		c.fail(fmt.Errorf("a digest of %d bytes, want %d", len(data), len(v)))
		return
	}
	copy(v[:], data)
}

// optionalDigest is like digest, but the field may be missing.
func (c *codec) optionalDigest(n fieldNumber, v *account.Digest) {
	switch {
	case c.writing && *v != account.Digest{}:
		c.putBytes(n, v[:])
	case c.nextField == n:
		*v = account.Digest{}
		if data := c.value(); len(data) > 0 {
			c.setDigest(data, v)
		}
		c.advance()
	}
}

// email writes or reads the digest and the mask of an e-mail address, both mandatory. The mask shows a few characters.
func (c *codec) email(n fieldNumber, v *account.EmailID) {
	if !c.writing {
		c.require(n)
	}
	message(c, n, v, emailFields)
}

func emailFields(c *codec, v *account.EmailID) {
	digest, mask := v.Digest(), v.String()
	c.digest(1, &digest)
	c.internedText(2, &mask)
	if !c.writing {
		*v = account.NewEmailID(digest, mask)
	}
}

// Values of enums. A value's index is its code in the log: never change it.
var (
	channelValues   = [...]engine.Channel{"", engine.Unspecified, engine.Branch, engine.Digital, engine.Cash, engine.Transfer}
	kindValues      = [...]engine.Kind{"", engine.Commercial, engine.Reference}
	precisionValues = [...]engine.DatePrecision{"", engine.PrecisionDatetime, engine.PrecisionDay, engine.PrecisionUnknown}
)

func (c *codec) channel(n fieldNumber, v *engine.Channel) { enum(c, n, v, channelValues[:], "channel") }
func (c *codec) kind(n fieldNumber, v *engine.Kind)       { enum(c, n, v, kindValues[:], "kind") }
func (c *codec) precision(n fieldNumber, v *engine.DatePrecision) {
	enum(c, n, v, precisionValues[:], "precision")
}

// enum writes or reads a value in the list values. It panics when it writes another value, because the engine never
// produces one.
func enum[V ~string](c *codec, n fieldNumber, v *V, values []V, name string) {
	switch {
	case c.writing:
		code := slices.Index(values, *v)
		if code < 0 {
			panic(fmt.Sprintf("record: the format has no code for %s %q", name, string(*v)))
		}
		c.put(n, uint64(code))
	case c.nextField == n:
		code := int32(c.number())
		if code < 0 || int(code) >= len(values) {
			c.fail(fmt.Errorf("%s %d: %w", name, code, ErrUnknown))
			return
		}
		*v = values[code]
		c.advance()
	}
}
