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
	sampleTime        = time.Date(2026, 6, 17, 16, 0, 0, 0, time.UTC)
	sampleDay         = engine.DateOf(sampleTime)
	sampleEmail       = emailOf("ana.perez@example.com")
	sampleKey         = account.KeyRecord{ID: "key_0123456789abcdef", Name: "producción", Hint: "Zz09", Digest: digestOf(7), CreatedAt: sampleTime.Add(1234567)}
	sampleKeyPolicy   = account.KeyPolicy{AnnouncedAt: sampleTime, RequiredAt: sampleTime.AddDate(0, 1, 0), By: "luis"}
	sampleQuarantined = engine.Quarantined{
		ID: 7, SourceID: "infodolar", ObservedAt: sampleTime, Reason: engine.Jump, Detail: "sell 6.09 moved too far",
		Observation: engine.Observation{
			InstitutionID: "bhd", Currency: "USD", Channel: engine.Transfer, Kind: engine.Commercial, Buy: "", Sell: "6.09\xc3",
			EffectiveDate: sampleDay, PublishedAt: sampleTime, ExpiresAt: time.Unix(0, 0).UTC(),
		},
	}
	sampleQuote = engine.AcceptedQuote{
		Key: engine.QuoteKey{Institution: "popular", Channel: engine.Branch, Kind: engine.Commercial}, Buy: decimal("57.10"), Sell: decimal("60"),
		EffectiveDate: sampleDay, PublishedAt: sampleTime.Add(-time.Hour + 7*time.Nanosecond), ExpiresAt: sampleTime.Add(26 * time.Hour), Backfill: true,
	}
	minimalQuote = engine.AcceptedQuote{
		Key:  engine.QuoteKey{Institution: "bcrd", Channel: engine.Unspecified, Kind: engine.Reference},
		Sell: decimal("0.00000001"), ExpiresAt: time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
	}
)

// samples is events of every kind, with and without optional fields, by the names of their golden records.
func samples() map[string]any {
	at, old, documented := sampleTime.Add(1234567), sampleKey, sampleQuarantined
	old.RevokedAt, old.LastUsed = at.Add(time.Hour), at.Add(time.Minute)
	documented.ID, documented.Reason, documented.Observation.Document = 8, engine.SameSides, strings.Repeat("5e", 32)
	return map[string]any{
		"refreshed-slot": &engine.Refreshed{
			Origin: engine.Origin{Currency: "USD", SourceID: "bhd-site", ObservedAt: sampleTime, Priority: 100}, Slot: sampleTime.Add(-time.Minute + 7*time.Nanosecond),
			Currencies: 3, Quarantined: []engine.Quarantined{documented},
		},
		"refreshed-baseline": &engine.Refreshed{
			Origin: engine.Origin{Currency: "USD", SourceID: "bhd-site", ObservedAt: sampleTime, Priority: 100}, Slot: sampleTime, Currencies: 1, Baseline: `{"quotes":{}}`,
		},
		"refreshed": &engine.Refreshed{
			Origin: engine.Origin{Currency: "USD", SourceID: "infodolar", ObservedAt: sampleTime.Add(123456789), Priority: -5, Manual: true, UpstreamSource: "bhd"},
			Quotes: []engine.AcceptedQuote{sampleQuote, minimalQuote}, Quarantined: []engine.Quarantined{sampleQuarantined},
		},
		"refreshed-typed": &engine.Refreshed{
			Origin: engine.Origin{Currency: "USD", SourceID: "manual", ObservedAt: sampleTime, Manual: true}, By: "uid 0 (root), as ana", Quotes: []engine.AcceptedQuote{minimalQuote},
		},
		"refreshed-empty":  &engine.Refreshed{Origin: engine.Origin{Currency: "EUR", SourceID: "a", ObservedAt: sampleTime}},
		"withdrawn":        &engine.Withdrawn{Currency: "USD", SourceID: "manual", Key: sampleQuote.Key, At: sampleTime, By: "ana"},
		"withdrawn-market": &engine.Withdrawn{Currency: "USD", SourceID: "a", Key: sampleQuote.Key, At: sampleTime, By: "market", HistorySince: sampleDay, HistoryOnly: true},
		"released": &engine.Released{
			Origin: engine.Origin{Currency: "USD", SourceID: "infodolar", ObservedAt: sampleTime, Priority: 100, UpstreamSource: "x"}, QuarantineID: 7, Quote: sampleQuote, At: sampleTime, By: "ana",
		},
		"rejected":              &engine.Rejected{Currency: "USD", QuarantineID: 1 << 40, At: sampleTime, By: "José"},
		"accountCreated":        &account.Created{Account: 7, Email: sampleEmail, At: at},
		"keyCreated":            &account.KeyCreated{Account: 7, Key: sampleKey},
		"keyCreated-old":        &account.KeyCreated{Account: 7, Key: old},
		"keyRevoked":            &account.KeyRevoked{Account: 7, KeyID: sampleKey.ID, At: at, By: "owner"},
		"leased":                &account.Leased{Account: 7, Day: sampleDay, Count: 16, Refunded: 1, Unspent: 8, Monotonic: time.Hour, KeyID: sampleKey.ID, At: at},
		"leased-node":           &account.Leased{Account: 7, Day: sampleDay, Count: 4, Refunded: 1, Unspent: 2, Monotonic: time.Hour, KeyID: sampleKey.ID, At: at, Node: 3, RecentAdmitted: 21},
		"returned":              &account.Returned{Account: 7, Day: sampleDay, Unspent: 9, RecentAdmitted: 3, Monotonic: time.Hour + 1, Uses: []account.KeyUse{{KeyID: sampleKey.ID, At: at}}},
		"returned-empty":        &account.Returned{Account: 7},
		"returned-node":         &account.Returned{Account: 7, Day: sampleDay, Unspent: 9, RecentAdmitted: 3, Monotonic: time.Hour + 1, Node: 65535},
		"returned-granted":      &account.Returned{Account: 7, Day: sampleDay, Unspent: 9, Granted: 16, Monotonic: time.Hour},
		"dayGranted":            &account.DayGranted{Shard: 15, Shards: 16, Day: sampleDay, Size: 16, Monotonic: time.Hour},
		"dayGranted-takenBack":  &account.DayGranted{Shards: 1, Day: sampleDay, Monotonic: time.Hour, TakenBack: true},
		"suspended":             &account.Suspended{Account: 7, Reason: "abuse", At: at, By: "luis"},
		"restored":              &account.Restored{Account: 7, At: at, By: "luis"},
		"quotaSet":              &account.QuotaSet{Account: 7, Quota: account.Quota{Day: 50_000, Minute: 300}, At: at, By: "luis"},
		"codeIssued":            &account.CodeIssued{Email: sampleEmail, At: at, Monotonic: time.Minute, Mailed: true},
		"codeIssued-sealed":     &account.CodeIssued{Email: sampleEmail, At: at, Monotonic: time.Minute, Mailed: true, Sealed: account.CodeSeal(digestOf(8))},
		"codeFailed":            &account.CodeFailed{Email: sampleEmail, At: at, Monotonic: time.Minute},
		"codeRefused":           &CodeRefused{Email: sampleEmail, At: at},
		"sessionOpened":         &account.SessionOpened{Account: 7, New: true, Email: sampleEmail, Token: digestOf(7), Expires: at.Add(time.Minute), At: at, Monotonic: time.Minute},
		"codeIssued-browser":    &account.CodeIssued{Email: sampleEmail, At: at, Monotonic: time.Minute, Mailed: true, Browser: digestOf(9)},
		"codeFailed-browser":    &account.CodeFailed{Email: sampleEmail, At: at, Monotonic: time.Minute, Browser: digestOf(9)},
		"sessionOpened-browser": &account.SessionOpened{Account: 7, Email: sampleEmail, Token: digestOf(7), Expires: at.Add(time.Minute), At: at, Monotonic: time.Minute, Browser: digestOf(9)},
		"loginUnlocked":         &account.LoginUnlocked{Email: sampleEmail, At: at, By: "luis"},
		"sessionClosed":         &account.SessionClosed{Token: digestOf(7)},
		"announced":             &account.Announced{KeyPolicy: sampleKeyPolicy},

		"announcementWithdrawn": &account.AnnouncementWithdrawn{At: at, By: "luis"},
	}
}

// sampleAccount has every field.
func sampleAccount() account.State {
	return account.State{
		Record: account.Record{
			ID: 7, Email: sampleEmail, CreatedAt: sampleTime, SuspendedAt: sampleTime.Add(time.Hour), Reason: "abuse",
			Quota: account.Quota{Day: 50_000, Minute: 300},
			Keys:  []account.KeyRecord{{ID: "key_1", Digest: digestOf(1), CreatedAt: sampleTime, RevokedAt: sampleTime.Add(2), LastUsed: sampleTime.Add(1)}, sampleKey},
		},
		Days:   []account.DayState{{Day: sampleDay - 1, Leased: 1000}, {Day: sampleDay, Leased: 16}},
		Leases: []account.LeaseState{{Monotonic: time.Hour, Unspent: 8, Count: 16}, {Monotonic: time.Hour, Count: 4, Node: 2, RecentAdmitted: 9}, {Node: 65535, Count: 1}},
	}
}

// sampleCurrency has lists of the given length.
func sampleCurrency(currency string, many int) engine.SavedCurrency {
	return engine.SavedCurrency{
		Currency: currency, LastQuarantineID: uint64(many),
		SourceQuotes: repeat(many, engine.SourceQuote{
			Key: sampleQuote.Key, SourceID: "list", Buy: decimal("57.1"), Sell: decimal("60"), EffectiveDate: sampleDay, PublishedAt: sampleTime, UpstreamSource: "bcrd",
			CollectedAt: sampleTime.Add(1), LastCheckedAt: sampleTime.Add(2), ExpiresAt: sampleTime.Add(time.Hour), Priority: -9, Manual: true, Released: true,
		}),
		Pending: repeat(many, engine.PendingConfirmation{
			Key: minimalQuote.Key, SourceID: "list", ObservedAt: sampleTime, Buy: decimal("5.7"), Sell: decimal("6"), Since: sampleTime.Add(-time.Hour), Sightings: 2,
		}),
		History: repeat(many, engine.HistoryEntry{
			Date: sampleDay, InstitutionID: "bcrd", Currency: currency, Channel: engine.Branch, Kind: engine.Reference, Sell: decimal("60.5"),
			SourceID: "list", DatePrecision: engine.PrecisionDay, ObservedAt: sampleTime, Precedence: -5,
		}),
		Quarantine: repeat(many, sampleQuarantined),
		Slots:      repeat(many, engine.AnsweredSlot{SourceID: "list", Slot: sampleTime, Currencies: 9, Baseline: `{"quotes":{}}`}),
	}
}

func repeat[T any](many int, one T) (list []T) {
	for range many {
		list = append(list, one)
	}
	return list
}

// sampleRegistry has the given number of addresses, a session and a shared login code.
func sampleRegistry(many int) *account.Registry {
	registry := account.NewRegistry([32]byte{})
	registry.ShareCodes()
	for i := range many {
		registry.Apply(&account.CodeIssued{Email: emailOf(fmt.Sprintf("user.%d@example.com", i)), At: sampleTime, Monotonic: time.Minute, Mailed: true})
	}
	for _, name := range []string{"codeFailed", "sessionOpened", "codeIssued-sealed", "codeFailed", "sessionOpened-browser", "codeIssued-browser"} {
		registry.Apply(samples()[name].(account.RegistryEvent))
	}
	return registry
}
