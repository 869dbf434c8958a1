package record

import (
	"fmt"
	"math"
	"time"
	"unique"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

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
	*v = ""
	if text := c.value(); len(text) > 0 {
		recent := &c.recent[(len(text)+int(text[0])*7+int(text[len(text)-1]))%len(c.recent)]
		if *recent != string(text) {
			*recent = unique.Make(string(text)).Value()
		}
		*v = *recent
	}
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
		c.put(n, codeOf(values, *v, name))
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

func codeOf[V ~string](values []V, v V, name string) uint64 {
	for code, known := range values {
		if v == known {
			return uint64(code)
		}
	}
	panic(fmt.Sprintf("record: the format has no code for %s %q", name, string(v)))
}
