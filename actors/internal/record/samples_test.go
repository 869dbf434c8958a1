package record

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

var noon = time.Date(2026, 6, 17, 16, 0, 0, 0, time.UTC)

func decimal(text string) engine.Decimal {
	d, err := engine.ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return d
}

func digestOf(id uint64) engine.Digest { return sha256.Sum256(binary.BigEndian.AppendUint64(nil, id)) }

func emailOf(t testing.TB, text string) engine.EmailID {
	t.Helper()
	email, err := engine.ParseEmail(text)
	if err != nil {
		t.Fatal(err)
	}
	return email.ID()
}

// samples are events of every kind, with and without what may be absent, by the names of their golden records.
func samples(t testing.TB) map[string]any {
	all := loginSamples(t)
	for name, event := range quoteSamples() {
		all[name] = event
	}
	return all
}

func sampleHeld() engine.Held {
	day, _ := engine.ParseDate("2026-06-17")
	return engine.Held{
		ID: 7, SourceID: "infodolar", ObservedAt: noon, Reason: engine.Jump, Detail: "sell 6.09 moved too far",
		Observation: engine.Observation{
			InstitutionID: "bhd", Currency: "USD", Channel: engine.Transfer, Kind: engine.Commercial, Buy: "", Sell: "6.09\xc3",
			EffectiveDate: day, PublishedAt: noon, ExpiresAt: time.Unix(0, 0).UTC(),
		},
	}
}

func quoteSamples() map[string]any {
	key := engine.QuoteKey{Institution: "popular", Channel: engine.Branch, Kind: engine.Commercial}
	day, _ := engine.ParseDate("2026-06-17")
	quoted := engine.Quoted{
		Key: key, Buy: decimal("57.10"), Sell: decimal("60"), EffectiveDate: day, PublishedAt: noon.Add(-time.Hour + 7*time.Nanosecond),
		ExpiresAt: noon.Add(26 * time.Hour), Backfill: true,
	}
	bare := engine.Quoted{
		Key:  engine.QuoteKey{Institution: "bcrd", Channel: engine.Unspecified, Kind: engine.Reference},
		Sell: decimal("0.00000001"), ExpiresAt: time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
	}
	documented := sampleHeld()
	documented.ID, documented.Reason, documented.Observation.Document = 8, engine.SameSides, strings.Repeat("5e", 32)
	return map[string]any{
		"refreshed-slot": &engine.Refreshed{
			Currency: "USD", SourceID: "bhd-site", ObservedAt: noon, Priority: 100, Slot: noon.Add(-time.Minute + 7*time.Nanosecond),
			Currencies: 3, Held: []engine.Held{documented},
		},
		"refreshed": &engine.Refreshed{
			Currency: "USD", SourceID: "infodolar", ObservedAt: noon.Add(123456789), Priority: -5, Manual: true, UpstreamSource: "bhd",
			Quotes: []engine.Quoted{quoted, bare}, Held: []engine.Held{sampleHeld()},
		},
		"refreshed-typed": &engine.Refreshed{
			Currency: "USD", SourceID: "manual", ObservedAt: noon, Manual: true, By: "uid 0 (root), as ana", Quotes: []engine.Quoted{bare},
		},
		"refreshed-empty": &engine.Refreshed{Currency: "EUR", SourceID: "a", ObservedAt: noon},
		"withdrawn":       &engine.Withdrawn{Currency: "USD", SourceID: "manual", Key: key, At: noon, By: "ana"},
		"released": &engine.Released{
			Currency: "USD", HeldID: 7, SourceID: "infodolar", ObservedAt: noon, Priority: 100, UpstreamSource: "x", Quote: quoted, At: noon, By: "ana",
		},
		"rejected": &engine.Rejected{Currency: "USD", HeldID: 1 << 40, At: noon, By: "José"},
	}
}

func loginSamples(t testing.TB) map[string]any {
	email := emailOf(t, "ana.perez@example.com")
	at, day := noon.Add(1234567), engine.DateOf(noon)
	digest := digestOf(7)
	key := engine.KeyRecord{ID: "key_0123456789abcdef", Name: "producción", Hint: "Zz09", Digest: digest, CreatedAt: at}
	old := key
	old.RevokedAt, old.LastUsed = at.Add(time.Hour), at.Add(time.Minute)
	return map[string]any{
		"accountCreated":        &engine.AccountCreated{Account: 7, Email: email, At: at},
		"keyCreated":            &engine.KeyCreated{Account: 7, Key: key},
		"keyCreated-old":        &engine.KeyCreated{Account: 7, Key: old},
		"keyRevoked":            &engine.KeyRevoked{Account: 7, KeyID: key.ID, At: at, By: "owner"},
		"leased":                &engine.Leased{Account: 7, Day: day, Count: 16, Refunded: 1, Unspent: 8, Steady: time.Hour, KeyID: key.ID, At: at},
		"returned":              &engine.Returned{Account: 7, Day: day, Unspent: 9, Recent: 3, Steady: time.Hour + 1, Uses: []engine.KeyUse{{KeyID: key.ID, At: at}}},
		"returned-empty":        &engine.Returned{Account: 7},
		"leased-node":           &engine.Leased{Account: 7, Day: day, Count: 4, Refunded: 1, Unspent: 2, Steady: time.Hour, KeyID: key.ID, At: at, Node: 3, Recent: 21},
		"returned-node":         &engine.Returned{Account: 7, Day: day, Unspent: 9, Recent: 3, Steady: time.Hour + 1, Node: 65535},
		"suspended":             &engine.Suspended{Account: 7, Reason: "abuse", At: at, By: "luis"},
		"restored":              &engine.Restored{Account: 7, At: at, By: "luis"},
		"allowanceSet":          &engine.AllowanceSet{Account: 7, Allowance: engine.Allowance{Day: 50_000, Minute: 300}, At: at, By: "luis"},
		"codeIssued":            &engine.CodeIssued{Email: email, At: at, Steady: time.Minute, Mailed: true},
		"codeIssued-sealed":     &engine.CodeIssued{Email: email, At: at, Steady: time.Minute, Mailed: true, Sealed: engine.CodeSeal(digestOf(8))},
		"codeFailed":            &engine.CodeFailed{Email: email, At: at, Steady: time.Minute},
		"codeRefused":           &CodeRefused{Email: email, At: at},
		"sessionOpened":         &engine.SessionOpened{Account: 7, New: true, Email: email, Token: digest, Expires: at.Add(time.Minute), At: at, Steady: time.Minute},
		"sessionClosed":         &engine.SessionClosed{Token: digest},
		"announced":             &engine.Announced{Transition: sampleTransition()},
		"announcementWithdrawn": &engine.AnnouncementWithdrawn{At: at, By: "luis"},
	}
}

func sampleTransition() engine.Transition {
	return engine.Transition{AnnouncedAt: noon, RequiredAt: noon.AddDate(0, 1, 0), By: "luis"}
}

// sampleAccount has some of everything.
func sampleAccount(t testing.TB) engine.AccountState {
	day := engine.DateOf(noon)
	return engine.AccountState{
		Record: engine.AccountRecord{
			ID: 7, Email: emailOf(t, "ana.perez@example.com"), CreatedAt: noon, SuspendedAt: noon.Add(time.Hour), Reason: "abuse",
			Allowance: engine.Allowance{Day: 50_000, Minute: 300},
			Keys: []engine.KeyRecord{
				{ID: "key_1", Name: "producción", Hint: "Zz09", Digest: digestOf(1), CreatedAt: noon, RevokedAt: noon.Add(2), LastUsed: noon.Add(1)},
				{ID: "key_2", Digest: digestOf(2), CreatedAt: noon},
			},
		},
		Floor: day - 2, Days: []engine.DayState{{Day: day - 1, Leased: 1000}, {Day: day, Leased: 16}},
		Leases: []engine.LeaseState{{Steady: time.Hour, Unspent: 8, Count: 16}, {Steady: time.Hour, Count: 4, Node: 2, Recent: 9}, {Node: 65535, Count: 1}},
	}
}

// sampleBook has lists of so many offers, rows and so on.
func sampleBook(currency string, many int) engine.BookState {
	s := engine.BookState{Currency: currency, LastHeldID: uint64(many)}
	for i := range many {
		key := engine.QuoteKey{Institution: fmt.Sprintf("bank-%d", i), Channel: engine.Branch, Kind: engine.Commercial}
		at := noon.Add(time.Duration(i) * time.Second)
		s.Offers = append(s.Offers, engine.Offer{
			Key: key, SourceID: "list", Buy: decimal("57.1"), Sell: decimal("60"), EffectiveDate: engine.DateOf(at), PublishedAt: at,
			UpstreamSource: "bcrd", CollectedAt: at.Add(1), LastCheckedAt: at.Add(2), ExpiresAt: at.Add(time.Hour), Priority: int64(-i), Manual: i%2 == 0,
		})
		s.Suspects = append(s.Suspects, engine.Suspect{Key: key, SourceID: "list", ObservedAt: at, Buy: decimal("5.7"), Sell: decimal("6")})
		s.History = append(s.History, engine.HistoryEntry{
			Date: engine.DateOf(at), InstitutionID: key.Institution, Currency: currency, Channel: key.Channel, Kind: key.Kind, Sell: decimal("60.5"),
			SourceID: "list", DatePrecision: engine.PrecisionDay, ObservedAt: at, Rank: int64(i) - 5,
		})
		held := sampleHeld()
		held.ID = uint64(i)
		s.Held = append(s.Held, held)
		s.Slots = append(s.Slots, engine.HeardSlot{SourceID: fmt.Sprint(i), Slot: at, Currencies: i})
	}
	return s
}

// sampleRegistry has so many addresses, two sessions and a code that the nodes of a cluster share.
func sampleRegistry(t testing.TB, many int) *engine.Registry {
	var state engine.RegistryState
	for i := range many {
		state.Addresses = append(state.Addresses, engine.AddressState{
			Email: emailOf(t, fmt.Sprintf("somebody.%d@example.com", i)), Account: uint64(i), Again: time.Hour, Touched: time.Hour,
			MailsDay: engine.DateOf(noon), MailsOfTheDay: i, WrongDay: engine.DateOf(noon), WrongOfTheDay: 2 * i,
		})
	}
	state.LastID, state.Swept = uint64(many), time.Minute
	registry := engine.RestoreRegistry(state, [32]byte{})
	registry.Share()
	events := samples(t)
	for _, name := range []string{"codeIssued-sealed", "codeFailed", "codeFailed", "sessionOpened", "codeIssued-sealed", "codeFailed"} {
		registry.Apply(events[name].(engine.RegistryEvent))
	}
	return registry
}
