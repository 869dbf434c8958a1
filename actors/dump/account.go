package dump

import (
	"encoding/hex"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine/account"
)

// digestShown is the number of bytes that are shown of the digest of an API key or session token: enough to recognize
// the digest, too few to find the key or token.
const digestShown = 4

// accountLine is the JSON of an event of an account, of a login or of the key policy (from when on API keys are
// required). All kinds of events use this struct. The JSON leaves out empty fields.
type accountLine struct {
	Event        string    `json:"event"`
	Account      uint64    `json:"account,omitempty"`
	Email        string    `json:"email,omitempty"` // masked e-mail address
	Key          *keyLine  `json:"key,omitempty"`
	KeyID        string    `json:"keyId,omitempty"`
	Day          string    `json:"day,omitempty"`
	Count        int       `json:"count,omitempty"`
	Refunded     int       `json:"refunded,omitempty"`
	Unspent      int       `json:"unspent,omitempty"`
	Recent       int       `json:"recent,omitempty"`
	Node         int       `json:"node,omitempty"` // number of the cluster node
	Uses         []useLine `json:"uses,omitempty"`
	Monotonic    string    `json:"monotonic,omitempty"`
	Reason       string    `json:"reason,omitempty"`
	DayLimit     int       `json:"dayLimit,omitempty"`
	MinuteLimit  int       `json:"minuteLimit,omitempty"`
	Mailed       bool      `json:"mailed,omitempty"`
	Sealed       bool      `json:"sealed,omitempty"` // the record has the hash of the login code
	New          bool      `json:"new,omitempty"`
	Token        string    `json:"token,omitempty"` // shortened digest of the session token
	ExpiresAt    string    `json:"expiresAt,omitempty"`
	KeysRequired string    `json:"keysRequiredAt,omitempty"`
	At           string    `json:"at,omitempty"`
	By           string    `json:"by,omitempty"`
}

type keyLine struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	Hint      string `json:"hint"`
	Digest    string `json:"digest"` // shortened digest of the API key
	CreatedAt string `json:"createdAt"`
}

type useLine struct {
	KeyID string `json:"keyId"`
	At    string `json:"at"`
}

func shortDigest(d account.Digest) string { return hex.EncodeToString(d[:digestShown]) + "…" }

func describeAccount(event any) accountLine {
	switch e := event.(type) {
	case *account.Created:
		return accountLine{Event: "accountCreated", Account: e.Account, Email: e.Email.String(), At: formatTime(e.At)}
	case *account.KeyCreated:
		return accountLine{Event: "keyCreated", Account: e.Account, Key: &keyLine{
			ID: e.Key.ID, Name: e.Key.Name, Hint: e.Key.Hint, Digest: shortDigest(e.Key.Digest), CreatedAt: formatTime(e.Key.CreatedAt),
		}}
	case *account.KeyRevoked:
		return accountLine{Event: "keyRevoked", Account: e.Account, KeyID: e.KeyID, At: formatTime(e.At), By: e.By}
	case *account.Leased:
		return accountLine{
			Event: "leased", Account: e.Account, Day: e.Day.String(), Count: e.Count, Refunded: e.Refunded, Unspent: e.Unspent,
			Recent: e.RecentAdmitted, Node: int(e.Node), Monotonic: e.Monotonic.String(), KeyID: e.KeyID, At: formatTime(e.At),
		}
	case *account.Returned:
		return accountLine{
			Event: "returned", Account: e.Account, Day: e.Day.String(), Unspent: e.Unspent, Recent: e.RecentAdmitted, Node: int(e.Node),
			Monotonic: e.Monotonic.String(), Uses: mapSlice(e.Uses, func(u *account.KeyUse) useLine { return useLine{u.KeyID, formatTime(u.At)} }),
		}
	case *account.Suspended:
		return accountLine{Event: "suspended", Account: e.Account, Reason: e.Reason, At: formatTime(e.At), By: e.By}
	case *account.Restored:
		return accountLine{Event: "restored", Account: e.Account, At: formatTime(e.At), By: e.By}
	case *account.QuotaSet:
		return accountLine{
			Event: "quotaSet", Account: e.Account, DayLimit: e.Quota.Day, MinuteLimit: e.Quota.Minute, At: formatTime(e.At), By: e.By,
		}
	}
	return describeLogin(event)
}

func describeLogin(event any) accountLine {
	switch e := event.(type) {
	case *account.CodeIssued:
		return accountLine{
			Event: "codeIssued", Email: e.Email.String(), Mailed: e.Mailed, Sealed: e.Sealed != account.CodeSeal{}, Monotonic: e.Monotonic.String(),
			At: formatTime(e.At),
		}
	case *account.CodeFailed:
		return accountLine{Event: "codeFailed", Email: e.Email.String(), Monotonic: e.Monotonic.String(), At: formatTime(e.At)}
	case *record.CodeRefused:
		return accountLine{Event: "codeRefused", Email: e.Email.String(), At: formatTime(e.At)}
	case *account.SessionOpened:
		return accountLine{
			Event: "sessionOpened", Account: e.Account, New: e.New, Email: e.Email.String(), Token: shortDigest(e.Token),
			ExpiresAt: formatTime(e.Expires), Monotonic: e.Monotonic.String(), At: formatTime(e.At),
		}
	case *account.SessionClosed:
		return accountLine{Event: "sessionClosed", Token: shortDigest(e.Token)}
	case *account.LoginUnlocked:
		return accountLine{Event: "loginUnlocked", Email: e.Email.String(), At: formatTime(e.At), By: e.By}
	case *account.Announced:
		return accountLine{Event: "announced", KeysRequired: formatTime(e.RequiredAt), At: formatTime(e.AnnouncedAt), By: e.By}
	case *account.AnnouncementWithdrawn:
		return accountLine{Event: "announcementWithdrawn", At: formatTime(e.At), By: e.By}
	}
	return accountLine{Event: "unknown"}
}
