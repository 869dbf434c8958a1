package record

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tasard/tasard/engine/account"
)

func codeIssuedFields(c *codec, e *account.CodeIssued) {
	c.email(1, &e.Email)
	c.instant(2, &e.At)
	c.monotonic(4, &e.Monotonic)
	c.bool(5, &e.Mailed)
	c.optionalDigest(6, (*account.Digest)(&e.Sealed))
	c.optionalDigest(7, &e.Browser)
}

func codeFailedFields(c *codec, e *account.CodeFailed) {
	c.email(1, &e.Email)
	c.instant(2, &e.At)
	c.monotonic(4, &e.Monotonic)
	c.optionalDigest(5, &e.Browser)
}

func codeRefusedFields(c *codec, e *CodeRefused) {
	c.email(1, &e.Email)
	c.instant(2, &e.At)
}

func sessionOpenedFields(c *codec, e *account.SessionOpened) {
	c.uint64(1, &e.Account)
	c.bool(2, &e.New)
	c.email(3, &e.Email)
	c.digest(4, &e.Token)
	c.instant(5, &e.Expires)
	c.instant(7, &e.At)
	c.monotonic(9, &e.Monotonic)
	c.optionalDigest(10, &e.Browser)
}

func loginUnlockedFields(c *codec, e *account.LoginUnlocked) {
	c.email(1, &e.Email)
	c.instant(2, &e.At)
	c.internedText(4, &e.By)
}

func sessionClosedFields(c *codec, e *account.SessionClosed) { c.digest(1, &e.Token) }

func announcedFields(c *codec, e *account.Announced) { keyPolicyFields(c, &e.KeyPolicy) }

func keyPolicyFields(c *codec, t *account.KeyPolicy) {
	c.instant(1, &t.AnnouncedAt)
	c.instant(3, &t.RequiredAt)
	c.internedText(5, &t.By)
}

func announcementWithdrawnFields(c *codec, e *account.AnnouncementWithdrawn) {
	c.instant(1, &e.At)
	c.internedText(3, &e.By)
}

func addressFields(c *codec, a *account.AddressState) {
	c.email(1, &a.Email)
	c.uint64(2, &a.Account)
	c.monotonic(3, &a.NextCodeAt)
	c.monotonic(4, &a.LastEventAt)
	c.date(5, &a.Mails.Day)
	dayCount(c, 6, &a.Mails)
	c.date(7, &a.WrongTries.Day)
	dayCount(c, 8, &a.WrongTries)
	c.optionalDigest(9, &a.Browser)
	c.date(10, &a.KnownMails.Day)
	dayCount(c, 11, &a.KnownMails)
}

func sessionFields(c *codec, s *account.SessionState) {
	c.digest(1, &s.Token)
	c.uint64(2, &s.Account)
	c.email(3, &s.Email)
	c.instant(4, &s.Expires)
	c.monotonic(6, &s.Until)
}

func codeFields(c *codec, s *account.CodeState) {
	c.email(1, &s.Email)
	c.digest(2, (*account.Digest)(&s.Seal))
	c.instant(3, &s.Expires)
	c.monotonic(5, &s.Until)
	c.count(6, &s.Tries)
	c.optionalDigest(7, &s.Browser)
}

// registryFields lists what occurs once in a snapshot.
func registryFields(c *codec, s *Snapshot) {
	r := &s.Registry
	message(c, 1, &r.WrongTries, hourCounterFields)
	message(c, 2, &r.Codes, hourCounterFields)
	c.monotonic(3, &r.LastSweep)
	c.uint64(4, &r.LastID)
	if !c.writing || s.KeyPolicy != (account.KeyPolicy{}) {
		message(c, 5, &s.KeyPolicy, keyPolicyFields)
	}
	c.monotonic(6, &s.Monotonic)
	if !c.writing || r.Newcomers != (account.HourCounter{}) {
		message(c, 7, &r.Newcomers, hourCounterFields)
	}
}

func hourCounterFields(c *codec, s *account.HourCounter) {
	c.minutes(1, s.Counts[:])
	c.int64(2, &s.Newest)
	if !c.writing && s.Newest < 0 {
		c.fail(fmt.Errorf("newest minute %d", s.Newest))
	}
}

// minutes writes or reads a list of numbers in one field (packed, in protobuf's words).
func (c *codec) minutes(n fieldNumber, v []uint16) {
	switch {
	case c.writing:
		var packed []byte
		for _, one := range v {
			packed = protowire.AppendVarint(packed, uint64(one))
		}
		c.putBytes(n, packed)
	case c.nextField == n:
		end, i := c.length(), 0
		for ; c.pos < end && i < len(v); i++ {
			got := uint32(c.varint())
			if got > math.MaxUint16 {
				c.fail(fmt.Errorf("%d events in a minute", got))
				return
			}
			v[i] = uint16(got)
		}
		if c.pos != end && c.err == nil {
			c.fail(fmt.Errorf("more than %d minutes of an hour", len(v)))
		}
		c.advance()
	}
}

// dayCount writes or reads a DayCounter's count.
func dayCount(c *codec, field fieldNumber, d *account.DayCounter) {
	count := int(d.Count)
	c.count(field, &count)
	d.Count = int32(count)
}
