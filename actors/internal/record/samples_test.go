package record

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func decimal(text string) engine.Decimal { return must(engine.ParseDecimal(text)) }

func digestOf(id uint64) account.Digest { return sha256.Sum256(binary.BigEndian.AppendUint64(nil, id)) }

func emailOf(text string) account.EmailID { return must(account.ParseEmail(text)).ID() }

var (
	noon      = time.Date(2026, 6, 17, 16, 0, 0, 0, time.UTC)
	noonDay   = engine.DateOf(noon)
	ana       = emailOf("ana.perez@example.com")
	noonKey   = account.KeyRecord{ID: "key_0123456789abcdef", Name: "producción", Hint: "Zz09", Digest: digestOf(7), CreatedAt: noon.Add(1234567)}
	announced = account.Transition{AnnouncedAt: noon, RequiredAt: noon.AddDate(0, 1, 0), By: "luis"}
	held      = engine.Held{
		ID: 7, SourceID: "infodolar", ObservedAt: noon, Reason: engine.Jump, Detail: "sell 6.09 moved too far",
		Observation: engine.Observation{
			InstitutionID: "bhd", Currency: "USD", Channel: engine.Transfer, Kind: engine.Commercial, Buy: "", Sell: "6.09\xc3",
			EffectiveDate: noonDay, PublishedAt: noon, ExpiresAt: time.Unix(0, 0).UTC(),
		},
	}
	quoted = engine.Quoted{
		Key: engine.QuoteKey{Institution: "popular", Channel: engine.Branch, Kind: engine.Commercial}, Buy: decimal("57.10"), Sell: decimal("60"),
		EffectiveDate: noonDay, PublishedAt: noon.Add(-time.Hour + 7*time.Nanosecond), ExpiresAt: noon.Add(26 * time.Hour), Backfill: true,
	}
	bare = engine.Quoted{
		Key:  engine.QuoteKey{Institution: "bcrd", Channel: engine.Unspecified, Kind: engine.Reference},
		Sell: decimal("0.00000001"), ExpiresAt: time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
	}
)

// samples are events of every kind, with and without what may be absent, by the names of their golden records.
func samples() map[string]any {
	at, old, documented := noon.Add(1234567), noonKey, held
	old.RevokedAt, old.LastUsed = at.Add(time.Hour), at.Add(time.Minute)
	documented.ID, documented.Reason, documented.Observation.Document = 8, engine.SameSides, strings.Repeat("5e", 32)
	return map[string]any{
		"refreshed-slot": &engine.Refreshed{
			Currency: "USD", SourceID: "bhd-site", ObservedAt: noon, Priority: 100, Slot: noon.Add(-time.Minute + 7*time.Nanosecond),
			Currencies: 3, Held: []engine.Held{documented},
		},
		"refreshed": &engine.Refreshed{
			Currency: "USD", SourceID: "infodolar", ObservedAt: noon.Add(123456789), Priority: -5, Manual: true, UpstreamSource: "bhd",
			Quotes: []engine.Quoted{quoted, bare}, Held: []engine.Held{held},
		},
		"refreshed-typed": &engine.Refreshed{
			Currency: "USD", SourceID: "manual", ObservedAt: noon, Manual: true, By: "uid 0 (root), as ana", Quotes: []engine.Quoted{bare},
		},
		"refreshed-empty": &engine.Refreshed{Currency: "EUR", SourceID: "a", ObservedAt: noon},
		"withdrawn":       &engine.Withdrawn{Currency: "USD", SourceID: "manual", Key: quoted.Key, At: noon, By: "ana"},
		"released": &engine.Released{
			Currency: "USD", HeldID: 7, SourceID: "infodolar", ObservedAt: noon, Priority: 100, UpstreamSource: "x", Quote: quoted, At: noon, By: "ana",
		},
		"rejected":          &engine.Rejected{Currency: "USD", HeldID: 1 << 40, At: noon, By: "José"},
		"accountCreated":    &account.Created{Account: 7, Email: ana, At: at},
		"keyCreated":        &account.KeyCreated{Account: 7, Key: noonKey},
		"keyCreated-old":    &account.KeyCreated{Account: 7, Key: old},
		"keyRevoked":        &account.KeyRevoked{Account: 7, KeyID: noonKey.ID, At: at, By: "owner"},
		"leased":            &account.Leased{Account: 7, Day: noonDay, Count: 16, Refunded: 1, Unspent: 8, Steady: time.Hour, KeyID: noonKey.ID, At: at},
		"leased-node":       &account.Leased{Account: 7, Day: noonDay, Count: 4, Refunded: 1, Unspent: 2, Steady: time.Hour, KeyID: noonKey.ID, At: at, Node: 3, Recent: 21},
		"returned":          &account.Returned{Account: 7, Day: noonDay, Unspent: 9, Recent: 3, Steady: time.Hour + 1, Uses: []account.KeyUse{{KeyID: noonKey.ID, At: at}}},
		"returned-empty":    &account.Returned{Account: 7},
		"returned-node":     &account.Returned{Account: 7, Day: noonDay, Unspent: 9, Recent: 3, Steady: time.Hour + 1, Node: 65535},
		"suspended":         &account.Suspended{Account: 7, Reason: "abuse", At: at, By: "luis"},
		"restored":          &account.Restored{Account: 7, At: at, By: "luis"},
		"allowanceSet":      &account.AllowanceSet{Account: 7, Allowance: account.Allowance{Day: 50_000, Minute: 300}, At: at, By: "luis"},
		"codeIssued":        &account.CodeIssued{Email: ana, At: at, Steady: time.Minute, Mailed: true},
		"codeIssued-sealed": &account.CodeIssued{Email: ana, At: at, Steady: time.Minute, Mailed: true, Sealed: account.CodeSeal(digestOf(8))},
		"codeFailed":        &account.CodeFailed{Email: ana, At: at, Steady: time.Minute},
		"codeRefused":       &CodeRefused{Email: ana, At: at},
		"sessionOpened":     &account.SessionOpened{Account: 7, New: true, Email: ana, Token: digestOf(7), Expires: at.Add(time.Minute), At: at, Steady: time.Minute},
		"sessionClosed":     &account.SessionClosed{Token: digestOf(7)},
		"announced":         &account.Announced{Transition: announced},

		"announcementWithdrawn": &account.AnnouncementWithdrawn{At: at, By: "luis"},
	}
}

// sampleAccount has some of everything.
func sampleAccount() account.State {
	return account.State{
		Record: account.Record{
			ID: 7, Email: ana, CreatedAt: noon, SuspendedAt: noon.Add(time.Hour), Reason: "abuse",
			Allowance: account.Allowance{Day: 50_000, Minute: 300},
			Keys:      []account.KeyRecord{{ID: "key_1", Digest: digestOf(1), CreatedAt: noon, RevokedAt: noon.Add(2), LastUsed: noon.Add(1)}, noonKey},
		},
		Floor: noonDay - 2, Days: []account.DayState{{Day: noonDay - 1, Leased: 1000}, {Day: noonDay, Leased: 16}},
		Leases: []account.LeaseState{{Steady: time.Hour, Unspent: 8, Count: 16}, {Steady: time.Hour, Count: 4, Node: 2, Recent: 9}, {Node: 65535, Count: 1}},
	}
}

// sampleBook has lists of so many.
func sampleBook(currency string, many int) engine.BookState {
	return engine.BookState{
		Currency: currency, LastHeldID: uint64(many),
		Offers: repeat(many, engine.Offer{
			Key: quoted.Key, SourceID: "list", Buy: decimal("57.1"), Sell: decimal("60"), EffectiveDate: noonDay, PublishedAt: noon, UpstreamSource: "bcrd",
			CollectedAt: noon.Add(1), LastCheckedAt: noon.Add(2), ExpiresAt: noon.Add(time.Hour), Priority: -9, Manual: true,
		}),
		Suspects: repeat(many, engine.Suspect{Key: bare.Key, SourceID: "list", ObservedAt: noon, Buy: decimal("5.7"), Sell: decimal("6")}),
		History: repeat(many, engine.HistoryEntry{
			Date: noonDay, InstitutionID: "bcrd", Currency: currency, Channel: engine.Branch, Kind: engine.Reference, Sell: decimal("60.5"),
			SourceID: "list", DatePrecision: engine.PrecisionDay, ObservedAt: noon, Rank: -5,
		}),
		Held:  repeat(many, held),
		Slots: repeat(many, engine.HeardSlot{SourceID: "list", Slot: noon, Currencies: 9}),
	}
}

// repeat is nil for none.
func repeat[T any](many int, one T) (list []T) {
	for range many {
		list = append(list, one)
	}
	return list
}

// sampleRegistry has so many addresses, a session and a code that the nodes of a cluster share.
func sampleRegistry(many int) *account.Registry {
	registry := account.NewRegistry([32]byte{})
	registry.Share()
	for i := range many {
		registry.Apply(&account.CodeIssued{Email: emailOf(fmt.Sprintf("somebody.%d@example.com", i)), At: noon, Steady: time.Minute, Mailed: true})
	}
	for _, name := range []string{"codeFailed", "sessionOpened", "codeIssued-sealed", "codeFailed"} {
		registry.Apply(samples()[name].(account.RegistryEvent))
	}
	return registry
}
