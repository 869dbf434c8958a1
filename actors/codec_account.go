package actors

import (
	"fmt"
	"math"
	"time"

	"github.com/tasard/tasard/engine"
)

// accountRecord is nil for an event that no record holds.
func accountRecord(event engine.AccountEvent) isRecord_Event {
	switch e := event.(type) {
	case *engine.AccountCreated:
		r := &RecordAccountCreated{Account: e.Account, Email: emailRecord(e.Email)}
		r.At, r.AtNanos = instant(e.At)
		return &Record_AccountCreated{r}
	case *engine.KeyCreated:
		return &Record_KeyCreated{&RecordKeyCreated{Account: e.Account, Key: keyRecord(&e.Key)}}
	case *engine.KeyRevoked:
		r := &RecordKeyRevoked{Account: e.Account, KeyId: e.KeyID, By: e.By}
		r.At, r.AtNanos = instant(e.At)
		return &Record_KeyRevoked{r}
	case *engine.Leased:
		r := &RecordLeased{
			Account: e.Account, Day: int32(e.Day), Count: int64(e.Count), Refunded: int64(e.Refunded), Unspent: int64(e.Unspent),
			Steady: int64(e.Steady), KeyId: e.KeyID, Node: uint32(e.Node), Recent: int64(e.Recent),
		}
		r.At, r.AtNanos = instant(e.At)
		return &Record_Leased{r}
	case *engine.Returned:
		return &Record_Returned{&RecordReturned{
			Account: e.Account, Day: int32(e.Day), Unspent: int64(e.Unspent), Recent: int64(e.Recent), Steady: int64(e.Steady),
			Uses: converted(e.Uses, keyUseRecord), Node: uint32(e.Node),
		}}
	case *engine.Suspended:
		r := &RecordSuspended{Account: e.Account, Reason: e.Reason, By: e.By}
		r.At, r.AtNanos = instant(e.At)
		return &Record_Suspended{r}
	case *engine.Restored:
		r := &RecordRestored{Account: e.Account, By: e.By}
		r.At, r.AtNanos = instant(e.At)
		return &Record_Restored{r}
	case *engine.AllowanceSet:
		r := &RecordAllowanceSet{Account: e.Account, Day: int64(e.Allowance.Day), Minute: int64(e.Allowance.Minute), By: e.By}
		r.At, r.AtNanos = instant(e.At)
		return &Record_AllowanceSet{r}
	}
	return nil
}

// accountEvent is nil for a record of another kind.
func (d *decoder) accountEvent(record *Record) any {
	switch e := record.Event.(type) {
	case *Record_AccountCreated:
		r := e.AccountCreated
		return &engine.AccountCreated{Account: r.Account, Email: d.email(r.Email), At: d.instant(r.At, r.AtNanos)}
	case *Record_KeyCreated:
		return &engine.KeyCreated{Account: e.KeyCreated.Account, Key: d.keyRecord(e.KeyCreated.Key)}
	case *Record_KeyRevoked:
		r := e.KeyRevoked
		return &engine.KeyRevoked{Account: r.Account, KeyID: d.own(r.KeyId), At: d.instant(r.At, r.AtNanos), By: d.text(r.By)}
	case *Record_Leased:
		r := e.Leased
		leased := d.room.newLeased()
		*leased = engine.Leased{
			Account: r.Account, Day: d.date(r.Day), Count: d.count(r.Count), Refunded: d.count(r.Refunded), Unspent: d.count(r.Unspent),
			Steady: d.steady(r.Steady), KeyID: d.own(r.KeyId), At: d.instant(r.At, r.AtNanos), Node: d.node(r.Node), Recent: d.count(r.Recent),
		}
		return leased
	case *Record_Returned:
		r := e.Returned
		return &engine.Returned{
			Account: r.Account, Day: d.date(r.Day), Unspent: d.count(r.Unspent), Recent: d.count(r.Recent), Steady: d.steady(r.Steady),
			Uses: d.keyUses(r.Uses), Node: d.node(r.Node),
		}
	case *Record_Suspended:
		r := e.Suspended
		return &engine.Suspended{Account: r.Account, Reason: d.own(r.Reason), At: d.instant(r.At, r.AtNanos), By: d.text(r.By)}
	case *Record_Restored:
		r := e.Restored
		return &engine.Restored{Account: r.Account, At: d.instant(r.At, r.AtNanos), By: d.text(r.By)}
	case *Record_AllowanceSet:
		r := e.AllowanceSet
		return &engine.AllowanceSet{
			Account: r.Account, Allowance: d.allowance(r.Day, r.Minute), At: d.instant(r.At, r.AtNanos), By: d.text(r.By),
		}
	}
	return nil
}

func keyRecord(k *engine.KeyRecord) *RecordKey {
	r := &RecordKey{Id: k.ID, Name: k.Name, Hint: k.Hint, Digest: k.Digest[:]}
	r.Created, r.CreatedNanos = instant(k.CreatedAt)
	r.Revoked, r.RevokedNanos = instant(k.RevokedAt)
	r.Used, r.UsedNanos = instant(k.LastUsed)
	return r
}

func (d *decoder) keyRecord(r *RecordKey) engine.KeyRecord {
	if r == nil {
		r = &RecordKey{}
	}
	return engine.KeyRecord{
		ID: d.own(r.Id), Name: d.own(r.Name), Hint: d.own(r.Hint), Digest: d.digest(r.Digest), CreatedAt: d.instant(r.Created, r.CreatedNanos),
		RevokedAt: d.instant(r.Revoked, r.RevokedNanos), LastUsed: d.instant(r.Used, r.UsedNanos),
	}
}

func keyUseRecord(u *engine.KeyUse) *RecordKeyUse {
	r := &RecordKeyUse{KeyId: u.KeyID}
	r.At, r.AtNanos = instant(u.At)
	return r
}

func (d *decoder) keyUses(records []*RecordKeyUse) []engine.KeyUse {
	var uses []engine.KeyUse
	for _, r := range records {
		uses = append(uses, engine.KeyUse{KeyID: d.own(r.KeyId), At: d.instant(r.At, r.AtNanos)})
	}
	return uses
}

func emailRecord(e engine.EmailID) *RecordEmail {
	digest := e.Digest()
	return &RecordEmail{Digest: digest[:], Mask: e.String()}
}

func (d *decoder) email(r *RecordEmail) engine.EmailID {
	if r == nil {
		r = &RecordEmail{}
	}
	return engine.NewEmailID(d.digest(r.Digest), d.text(r.Mask))
}

func (d *decoder) digest(data []byte) engine.Digest {
	var digest engine.Digest
	if len(data) != len(digest) {
		d.keep(fmt.Errorf("a digest of %d bytes, want %d", len(data), len(digest)))
		return digest
	}
	copy(digest[:], data)
	return digest
}

func (d *decoder) steady(nanos int64) time.Duration {
	if nanos < 0 {
		d.keep(fmt.Errorf("a steady time of %d ns", nanos))
	}
	return time.Duration(nanos)
}

func (d *decoder) count(n int64) int {
	if n < 0 || n > math.MaxInt32 {
		d.keep(fmt.Errorf("a count of %d", n))
		return 0
	}
	return int(n)
}

func (d *decoder) node(n uint32) engine.NodeID {
	if n > math.MaxUint16 {
		d.keep(fmt.Errorf("a node %d", n))
		return 0
	}
	return engine.NodeID(n)
}

func (d *decoder) allowance(day, minute int64) engine.Allowance {
	return engine.Allowance{Day: d.count(day), Minute: d.count(minute)}
}
