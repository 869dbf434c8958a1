package record

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Each kind of field is a method that writes a value or reads it; what it reads it checks.

func appendVarint(to []byte, v uint64) []byte { return binary.AppendUvarint(to, v) }

// integer is a number from low to high.
func integer[T ~int | ~int32 | ~int64 | ~uint16 | ~uint64](c *coder, n fieldNumber, v *T, low, high int64, what string) {
	switch {
	case c.writing:
		c.put(n, uint64(*v))
	case c.next == n:
		got := int64(c.number())
		if got < low || got > high {
			c.fail(fmt.Errorf("%s %d", what, got))
		}
		*v = T(got)
		c.advance()
	}
}

const dateMax = 3_652_059 // 9999-12-31

func (c *coder) uint64(n fieldNumber, v *uint64) { integer(c, n, v, math.MinInt64, math.MaxInt64, "") }
func (c *coder) int64(n fieldNumber, v *int64)   { integer(c, n, v, math.MinInt64, math.MaxInt64, "") }

// count is a number of things.
func (c *coder) count(n fieldNumber, v *int) { integer(c, n, v, 0, math.MaxInt32, "a count of") }

// node is a node of a cluster, 0 the only one.
func (c *coder) node(n fieldNumber, v *engine.NodeID) { integer(c, n, v, 0, math.MaxUint16, "a node") }

// date counts days from 1, which is 0001-01-01; 0 is no date.
func (c *coder) date(n fieldNumber, v *engine.Date) { integer(c, n, v, 0, dateMax, "date") }

// steady is a steady time, in nanoseconds.
func (c *coder) steady(n fieldNumber, v *time.Duration) {
	integer(c, n, v, 0, math.MaxInt64, "a steady time of")
}

// sint64 is a number that is as often negative: zigzag.
func (c *coder) sint64(n fieldNumber, v *int64) {
	switch {
	case c.writing:
		c.put(n, uint64(*v)<<1^uint64(*v>>63))
	case c.next == n:
		u := c.number()
		*v = int64(u>>1) ^ -int64(u&1)
		c.advance()
	}
}

func (c *coder) bool(n fieldNumber, v *bool) {
	switch {
	case c.writing && *v:
		c.put(n, 1)
	case c.next == n:
		*v = c.number() != 0
		c.advance()
	}
}

const secondsBeforeUnix = 62_135_596_800 // from 0001-01-01T00:00:00Z, the zero instant, to 1970

// instant is two fields: n has whole seconds since 0001-01-01T00:00:00Z, the one behind it the nanoseconds within. Both absent is no
// instant. So every instant can be told, also those that 64 bits of nanoseconds do not reach.
func (c *coder) instant(n fieldNumber, v *time.Time) {
	if c.writing {
		c.put(n, uint64(v.Unix()+secondsBeforeUnix))
		c.put(n+1, uint64(v.Nanosecond()))
		return
	}
	if c.next == n {
		*v = time.Unix(int64(c.number())-secondsBeforeUnix, int64(v.Nanosecond())).UTC()
		c.advance()
	}
	if c.next == n+1 {
		nanos := uint32(c.number())
		if nanos >= 1e9 {
			c.fail(fmt.Errorf("%d nanoseconds in a second", nanos))
			return
		}
		*v = time.Unix(v.Unix(), int64(nanos)).UTC()
		c.advance()
	}
}

// text is one that occurs again and again.
func (c *coder) text(n fieldNumber, v *string) { c.string(n, v, c.interned) }

// uniqueText is a text that hardly occurs twice.
func (c *coder) uniqueText(n fieldNumber, v *string) { c.string(n, v, nil) }

func (c *coder) string(n fieldNumber, v *string, known *internTable) {
	switch {
	case c.writing && *v != "":
		c.putTag(n, wireBytes)
		c.bytes = append(appendVarint(c.bytes, uint64(len(*v))), *v...)
	case c.next == n:
		if text := c.value(); !c.skipText {
			*v = known.text(text)
		}
		c.advance()
	}
}

// decimal is the text that was published, verbatim; "" is null.
func (c *coder) decimal(n fieldNumber, v *engine.Decimal) {
	switch {
	case c.writing:
		text := v.String()
		c.uniqueText(n, &text)
	case c.next == n:
		value, err := c.interned.decimal(c.value())
		if err != nil {
			c.fail(err)
		}
		*v = value
		c.advance()
	}
}

// byteStrings is a field that occurs for each of several pieces of bytes, which are borrowed.
func (c *coder) byteStrings(n fieldNumber, v *[][]byte) {
	if c.writing {
		for _, one := range *v {
			c.putBytes(n, one)
		}
		return
	}
	if c.next == n && *v == nil {
		*v = make([][]byte, 0, c.countRun())
	}
	for c.next == n {
		*v = append(*v, c.value())
		c.advance()
	}
}

// digest is the 32 bytes of a SHA-256; they must be there.
func (c *coder) digest(n fieldNumber, v *account.Digest) {
	if c.writing {
		c.putBytes(n, v[:])
		return
	}
	c.require(n)
	if c.next == n {
		c.setDigest(c.value(), v)
		c.advance()
	}
}

func (c *coder) setDigest(data []byte, v *account.Digest) {
	if len(data) != len(v) {
		c.fail(fmt.Errorf("a digest of %d bytes, want %d", len(data), len(v)))
		return
	}
	copy(v[:], data)
}

// seal is a digest that may be absent.
func (c *coder) seal(n fieldNumber, v *account.CodeSeal) {
	switch {
	case c.writing && *v != account.CodeSeal{}:
		c.putBytes(n, v[:])
	case c.next == n:
		*v = account.CodeSeal{}
		if data := c.value(); len(data) > 0 {
			c.setDigest(data, (*account.Digest)(v))
		}
		c.advance()
	}
}

// email is what is kept of an address: the digest that finds it again and a mask to show. It must be there.
func (c *coder) email(n fieldNumber, v *account.EmailID) {
	if !c.writing {
		c.require(n)
	}
	message(c, n, v, (*coder).emailFields)
}

func (c *coder) emailFields(v *account.EmailID) {
	digest, mask := v.Digest(), v.String()
	c.digest(1, &digest)
	c.text(2, &mask)
	if !c.writing {
		*v = account.NewEmailID(digest, mask)
	}
}

// The words of closed lists, by the codes that stand for them: old records have these codes for ever.
var (
	channelValues   = [...]engine.Channel{"", engine.Unspecified, engine.Branch, engine.Digital, engine.Cash, engine.Transfer}
	kindValues      = [...]engine.Kind{"", engine.Commercial, engine.Reference}
	precisionValues = [...]engine.DatePrecision{"", engine.PrecisionDatetime, engine.PrecisionDay, engine.PrecisionUnknown}
)

func (c *coder) channel(n fieldNumber, v *engine.Channel) { enum(c, n, v, channelValues[:], "channel") }
func (c *coder) kind(n fieldNumber, v *engine.Kind)       { enum(c, n, v, kindValues[:], "kind") }
func (c *coder) precision(n fieldNumber, v *engine.DatePrecision) {
	enum(c, n, v, precisionValues[:], "precision")
}

// enum is a word of a closed list, by its code. A word outside the list cannot get as far as writing: the engine refuses it before a book
// sees it.
func enum[W ~string](c *coder, n fieldNumber, v *W, words []W, what string) {
	switch {
	case c.writing:
		c.put(n, codeOf(words, *v, what))
	case c.next == n:
		code := int32(c.number())
		if code < 0 || int(code) >= len(words) {
			c.fail(fmt.Errorf("%s %d: %w", what, code, ErrUnknown))
			return
		}
		*v = words[code]
		c.advance()
	}
}

func codeOf[W ~string](words []W, w W, what string) uint64 {
	for code, known := range words {
		if w == known {
			return uint64(code)
		}
	}
	panic(fmt.Sprintf("record: the format has no code for %s %q", what, string(w)))
}
