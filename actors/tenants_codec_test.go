package actors

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// sampleTenantEvents are all events besides those of currencies, by name.
func sampleTenantEvents(t testing.TB) map[string]any {
	email := mustEmail(t, "ana.perez@example.com").ID()
	at, day := noon.Add(1234567), engine.DateOf(noon)
	digest := keyOf(7)
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
		"codeIssued-sealed":     &engine.CodeIssued{Email: email, At: at, Steady: time.Minute, Mailed: true, Sealed: engine.CodeSeal(keyOf(8))},
		"codeFailed":            &engine.CodeFailed{Email: email, At: at, Steady: time.Minute},
		"codeRefused":           &codeRefused{Email: email, At: at},
		"sessionOpened":         &engine.SessionOpened{Account: 7, New: true, Email: email, Token: digest, Expires: at.Add(time.Minute), At: at, Steady: time.Minute},
		"sessionClosed":         &engine.SessionClosed{Token: digest},
		"announced":             &engine.Announced{Transition: engine.Transition{AnnouncedAt: noon, RequiredAt: noon.AddDate(0, 1, 0), By: "luis"}},
		"announcementWithdrawn": &engine.AnnouncementWithdrawn{At: at, By: "luis"},
	}
}

// What operators are shown names the account and no more of its address, of digests a beginning.
func TestS5_DescriptionsAreMasked(t *testing.T) {
	for name, event := range sampleTenantEvents(t) {
		record, err := encodeEvent(event)
		if err != nil {
			t.Fatal(err)
		}
		line, err := DescribeRecord(record)
		word, _, _ := strings.Cut(name, "-")
		if err != nil || !strings.Contains(line, `"event":"`+word+`"`) || strings.Contains(line, "\n") {
			t.Errorf("%s: %s, %v", name, line, err)
		}
		digest := keyOf(7)
		for _, secret := range []string{"ana.perez", "ana.perez@example.com", hex.EncodeToString(digest[:]), hex.EncodeToString(digest[:8])} {
			if strings.Contains(line, secret) {
				t.Errorf("%s shows %q", line, secret)
			}
		}
		if masked := mustEmail(t, "ana.perez@example.com").ID().String(); strings.Contains(line, `"email"`) && !strings.Contains(line, masked) {
			t.Errorf("%s: %s does not show %s", name, line, masked)
		}
	}
}

func TestRecordsOfTenantsAreChecked(t *testing.T) {
	for name, record := range map[string]*Record{
		"no address":      {Event: &Record_AccountCreated{&RecordAccountCreated{Account: 1}}},
		"short digest":    {Event: &Record_SessionClosed{&RecordSessionClosed{Token: []byte("short")}}},
		"no key":          {Event: &Record_KeyCreated{&RecordKeyCreated{Account: 1}}},
		"negative count":  {Event: &Record_Leased{&RecordLeased{Account: 1, Count: -1}}},
		"negative steady": {Event: &Record_Leased{&RecordLeased{Account: 1, Steady: -1}}},
		"large allowance": {Event: &Record_AllowanceSet{&RecordAllowanceSet{Account: 1, Day: 1 << 40}}},
		"node":            {Event: &Record_Leased{&RecordLeased{Account: 1, Node: 1 << 16}}},
		"returned by":     {Event: &Record_Returned{&RecordReturned{Account: 1, Node: 1 << 16}}},
		"recent":          {Event: &Record_Leased{&RecordLeased{Account: 1, Recent: -1}}},
		"seal":            {Event: &Record_CodeIssued{&RecordCodeIssued{Email: emailRecord(citizen(t, 9).Record().Email), Sealed: []byte("short")}}},
	} {
		data, err := record.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		if event, err := newDecoder().decodeEvent(data); err == nil {
			t.Errorf("%s reads as %+v", name, event)
		}
	}
	for name, leases := range map[string][]*SnapshotLease{
		"no such node":  {{Node: 1 << 16}},
		"out of order":  {{Node: 2, Count: 1}, {Node: 1, Count: 1}},
		"twice":         {{Node: 2, Count: 1}, {Node: 2, Count: 1}},
		"alone, behind": {{Node: 2, Count: 1}, {Count: 1}},
		"alone, recent": {{Recent: 1}},
		"node, unspent": {{Node: 1, Unspent: 1}},
		"negative":      {{Node: 1, Recent: -1}},
	} {
		state, err := (&SnapshotAccount{Id: 1, Email: emailRecord(citizen(t, 9).Record().Email), Leases: leases}).MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		if read, err := newDecoder().accountState(state); err == nil {
			t.Errorf("%s reads as %+v", name, read)
		}
	}
}

// sampleAccount has some of everything.
func sampleAccount(t testing.TB) *engine.Account {
	account := engine.NewAccount(7)
	events := sampleTenantEvents(t)
	for _, name := range []string{"accountCreated", "keyCreated", "leased", "allowanceSet", "suspended"} {
		account.Apply(events[name].(engine.AccountEvent))
	}
	return account
}

func TestDormantAccountsWakeAsTheyWere(t *testing.T) {
	now := engine.Moment{Wall: noon.Add(time.Minute), Steady: 2 * time.Hour}
	terms := engine.Terms{Allowance: engine.DefaultAllowance(), Lease: 16}
	account := citizen(t, 9)
	account.Resume(engine.Moment{Wall: noon, Steady: time.Hour})
	account.Apply(account.NextLease(keyOf(9), now, terms, 1))
	now.Wall = now.Wall.Add(time.Second)
	for range 5 {
		if verdict, need := account.Admit(keyOf(9), now, terms); !verdict.Admitted || need != engine.Nothing {
			t.Fatal(verdict, need)
		}
	}
	later := engine.Moment{Wall: noon.Add(time.Hour), Steady: 3 * time.Hour}
	if !account.Idle(later) {
		t.Fatal("not idle after an hour")
	}
	state, err := putAside(account)
	if err != nil || !state.aside() {
		t.Fatal(err)
	}
	awake, err := state.wake(engine.Moment{Wall: noon})
	if err != nil || !reflect.DeepEqual(awake, account) {
		t.Errorf("woke as %+v, %v\nwas %+v", awake, err, account)
	}
	cold, err := freeze(account)
	if err != nil || cold.aside() {
		t.Fatal(err)
	}
	data, _ := state.parts()
	if again := dormant(appendDormant(nil, data)); !bytes.Equal(again, cold) {
		t.Errorf("the state of an account put aside is another one:\n%x\n%x", again, cold)
	}
	restored, err := cold.wake(later)
	if err != nil {
		t.Fatal(err)
	}
	if windows := restored.Windows(later, terms); windows.Day.Remaining != 1000-32 {
		t.Errorf("after a restart %+v, want two leases spent", windows)
	}
}

// A snapshot of accounts, registry and transition reads as it was written.
func TestLedgerReadsAsWritten(t *testing.T) {
	registry := engine.NewRegistry([32]byte{})
	events := sampleTenantEvents(t)
	for _, name := range []string{"codeIssued", "codeFailed", "sessionOpened"} {
		registry.Apply(events[name].(engine.RegistryEvent))
	}
	c := &cut{whole: true, ledgers: make([][]dormant, 2), registry: registryCut{
		registry: registry.Cut(), transition: events["announced"].(*engine.Announced).Transition, steady: time.Hour,
	}}
	state, err := freeze(sampleAccount(t))
	if err != nil {
		t.Fatal(err)
	}
	c.ledgers[1] = append(c.ledgers[1], state)
	for id := uint64(100); id < 100+3*partItemsMax; id++ {
		one, err := freeze(citizen(t, id))
		if err != nil {
			t.Fatal(err)
		}
		c.ledgers[0] = append(c.ledgers[0], one)
	}
	var buffer bytes.Buffer
	if err := writeSnapshot(&buffer, nil, c.writeLedger); err != nil {
		t.Fatal(err)
	}
	d := newDecoder()
	if books, err := d.readSnapshot(bytes.NewReader(buffer.Bytes())); err != nil || len(books) != 0 {
		t.Fatal(books, err)
	}
	l := d.ledger
	if back := engine.RestoreRegistry(l.registry, [32]byte{}, l.addresses...); !reflect.DeepEqual(back.State(), c.registry.registry.State()) || l.transition != c.registry.transition || l.steady != time.Hour {
		t.Errorf("%+v\nwant %+v", l, c.registry)
	}
	accounts, claims := slices.Concat(l.accounts...), slices.Concat(l.claims...)
	last := len(accounts) - 1
	if last != 3*partItemsMax || accounts[last].id != 7 || !bytes.Equal(accounts[last].state, state) || claims[len(claims)-1].account != 7 {
		t.Errorf("%d accounts, the last %+v", len(accounts), accounts[last])
	}
	for i := range accounts[:last] {
		if id := uint64(100 + i); accounts[i].id != id || claims[i] != claimOf(keyOf(id), id) || !bytes.Equal(accounts[i].state, c.ledgers[0][i]) {
			t.Fatalf("account %d is %+v, %+v", id, accounts[i], claims[i])
		}
	}
}

func FuzzDormant(f *testing.F) {
	state, err := freeze(sampleAccount(f))
	if err != nil {
		f.Fatal(err)
	}
	data, _ := state.parts()
	f.Add(data)
	state, err = freeze(clusterAccount(f))
	if err != nil {
		f.Fatal(err)
	}
	data, _ = state.parts()
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		state, err := newDecoder().accountState(data)
		if err != nil {
			return
		}
		account := engine.RestoreAccount(state)
		frozen, err := freeze(account)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := frozen.parts()
		back, err := newDecoder().accountState(again)
		if err != nil || !reflect.DeepEqual(back, state) {
			t.Fatalf("%+v, %v\nwas %+v", back, err, state)
		}
	})
}
