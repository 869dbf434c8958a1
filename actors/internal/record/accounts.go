package record

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

func accountCreatedFields(c *codec, e *account.Created) {
	c.uint64(1, &e.Account)
	c.email(2, &e.Email)
	c.instant(3, &e.At)
}

func keyCreatedFields(c *codec, e *account.KeyCreated) {
	c.uint64(1, &e.Account)
	if !c.writing {
		c.require(2)
	}
	message(c, 2, &e.Key, keyFields)
}

func keyFields(c *codec, k *account.KeyRecord) {
	c.text(1, &k.ID)
	c.text(2, &k.Name)
	c.text(3, &k.Hint)
	c.digest(4, &k.Digest)
	c.instant(5, &k.CreatedAt)
	c.instant(7, &k.RevokedAt)
	c.instant(9, &k.LastUsed)
}

func keyRevokedFields(c *codec, e *account.KeyRevoked) {
	c.uint64(1, &e.Account)
	c.text(2, &e.KeyID)
	c.instant(3, &e.At)
	c.internedText(5, &e.By)
}

func leasedFields(c *codec, e *account.Leased) {
	c.uint64(1, &e.Account)
	c.date(2, &e.Day)
	c.count(3, &e.Count)
	c.count(4, &e.Refunded)
	c.count(5, &e.Unspent)
	c.monotonic(6, &e.Monotonic)
	c.text(7, &e.KeyID)
	c.instant(8, &e.At)
	c.node(10, &e.Node)
	c.count(11, &e.RecentAdmitted)
}

func returnedFields(c *codec, e *account.Returned) {
	c.uint64(1, &e.Account)
	c.date(2, &e.Day)
	c.count(3, &e.Unspent)
	c.count(4, &e.RecentAdmitted)
	c.monotonic(5, &e.Monotonic)
	repeated(c, 6, &e.Uses, keyUseFields)
	c.node(7, &e.Node)
	c.count(8, &e.Granted)
}

func dayGrantedFields(c *codec, e *account.DayGranted) {
	c.uint64(1, &e.Shard)
	c.shards(2, &e.Shards)
	c.date(3, &e.Day)
	c.count(4, &e.Size)
	c.monotonic(5, &e.Monotonic)
	c.bool(6, &e.TakenBack)
}

// dayGrantFields lists the fields of a grant in a snapshot.
func dayGrantFields(c *codec, g *account.DayGrant) {
	c.uint64(1, &g.Shard)
	c.shards(2, &g.Shards)
	c.date(3, &g.Day)
	c.count(4, &g.Size)
	c.monotonic(5, &g.Until)
}

// shards writes or reads a number of shards, mandatory and not 0.
func (c *codec) shards(n fieldNumber, v *uint64) {
	if !c.writing {
		c.require(n)
	}
	if c.uint64(n, v); !c.writing && c.seen&(1<<n) != 0 && *v == 0 {
		c.fail(errors.New("a grant of 0 shards"))
	}
}

func keyUseFields(c *codec, u *account.KeyUse) {
	c.text(1, &u.KeyID)
	c.instant(2, &u.At)
}

func suspendedFields(c *codec, e *account.Suspended) {
	c.uint64(1, &e.Account)
	c.text(2, &e.Reason)
	c.instant(3, &e.At)
	c.internedText(5, &e.By)
}

func restoredFields(c *codec, e *account.Restored) {
	c.uint64(1, &e.Account)
	c.instant(2, &e.At)
	c.internedText(4, &e.By)
}

func quotaSetFields(c *codec, e *account.QuotaSet) {
	c.uint64(1, &e.Account)
	c.count(2, &e.Quota.Day)
	c.count(3, &e.Quota.Minute)
	c.instant(4, &e.At)
	c.internedText(6, &e.By)
}

// AppendAccount appends an encoded account.
func AppendAccount(dst []byte, state *account.State) []byte {
	c := &codec{writing: true, bytes: dst}
	accountFields(c, state)
	return c.bytes
}

// Account decodes an account. Danger: the next call overwrites the slices in the result.
func (d *Decoder) Account(data []byte) (account.State, error) {
	s := &d.state
	keys, days, leases := s.Record.Keys[:0], s.Days[:0], s.Leases[:0]
	*s = account.State{Record: account.Record{Keys: keys}, Days: days, Leases: leases}
	if err := decode(d, data, s, accountFields); err != nil {
		return account.State{}, fmt.Errorf("decode account %d: %w", s.Record.ID, err)
	}
	last := account.LeaseState{}
	for _, lease := range s.Leases {
		if err := checkLeaseOrder(lease, last.Node); err != nil {
			return account.State{}, fmt.Errorf("decode account %d: %w", s.Record.ID, err)
		}
		last = lease
	}
	return *s, nil
}

// checkLeaseOrder checks the position of a LeaseState (a quota lease) in an account. previous is the node of the
// preceding lease. Leases without a cluster (node 0) come first, in any number. Then at most one lease for each cluster
// node follows, by node ID.
func checkLeaseOrder(lease account.LeaseState, previous engine.NodeID) error {
	switch {
	case lease.Node < previous || lease.Node == previous && previous != 0:
		return fmt.Errorf("a lease of node %d after one of node %d", lease.Node, previous)
	case lease.Node == 0 && lease.RecentAdmitted != 0 || lease.Node != 0 && lease.Unspent != 0:
		return fmt.Errorf("a lease of node %d with %d recent and %d unspent", lease.Node, lease.RecentAdmitted, lease.Unspent)
	}
	return nil
}

// accountFields omits field 12 of earlier versions, the day until which no day was charged.
func accountFields(c *codec, s *account.State) {
	r := &s.Record
	c.uint64(1, &r.ID)
	c.email(2, &r.Email)
	c.instant(3, &r.CreatedAt)
	repeated(c, 5, &r.Keys, keyFields)
	c.instant(6, &r.SuspendedAt)
	c.text(8, &r.Reason)
	c.count(9, &r.Quota.Day)
	c.count(10, &r.Quota.Minute)
	repeated(c, 11, &s.Days, dayFields)
	repeated(c, 13, &s.Leases, leaseFields)
}

func dayFields(c *codec, d *account.DayState) {
	c.date(1, &d.Day)
	c.count(2, &d.Leased)
}

func leaseFields(c *codec, l *account.LeaseState) {
	c.monotonic(1, &l.Monotonic)
	c.count(2, &l.Unspent)
	c.count(3, &l.Count)
	c.node(4, &l.Node)
	c.count(5, &l.RecentAdmitted)
}

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

func addressFields(c *codec, row **account.AddressState) {
	if !c.writing && *row == nil {
		*row = new(account.AddressState)
	}
	a := *row // must not be written to while encoding: the registry reads it
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
	integer(c, field, &d.Count, 0, math.MaxInt32, "a count of")
}
