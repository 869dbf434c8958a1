package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever is asked for and tried on several nodes side by side: a code opens one session, by its own text, after at most four wrong tries on
// all nodes together; each node knows each code, also one that came back; an address has one account and an account one address.
func TestK2_LoginsInACluster(t *testing.T) {
	opened, void := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newDeskWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, deskBug{})
		if fault := w.live(rapid.IntRange(1, 200).Draw(t, "steps")); fault != "" {
			t.Fatal(fault)
		}
		opened, void = opened+w.opened, void+w.void
	})
	t.Logf("%d sessions, %d decisions void", opened, void)
}

// The same from plain seeds.
func TestK2_LoginsInAClusterFromSeeds(t *testing.T) {
	sequences := 3_000
	if raceDetector || testing.Short() {
		sequences = 300
	}
	opened, void, failed := 0, 0, 0
	for seed := range sequences {
		w := newDeskWorld(rand.New(rand.NewPCG(11, uint64(seed))).IntN, deskBug{})
		if fault := w.live(400); fault != "" {
			t.Fatalf("seed %d: %s", seed, fault)
		}
		opened, void, failed = opened+w.opened, void+w.void, failed+w.failed
	}
	t.Logf("%d sequences, %d sessions, %d wrong tries, %d decisions void", sequences, opened, failed, void)
	if opened == 0 || void == 0 || failed == 0 {
		t.Error("nothing was tried")
	}
}

func TestK2_ControlPlantedBugsOfAClusterAreCaught(t *testing.T) {
	kept := map[*Registry]map[Digest]*pendingCode{}
	for name, bug := range map[string]deskBug{
		"a session elsewhere leaves the code": {only: "a session without", learnt: func(r *Registry, event RegistryEvent) {
			if kept[r] == nil {
				kept[r] = map[Digest]*pendingCode{}
			}
			for digest, v := range r.visitors {
				if _, opened := event.(*SessionOpened); opened && v.code == nil && kept[r][digest] != nil {
					v.code = kept[r][digest]
				}
				kept[r][digest] = v.code
			}
		}},
		"wrong tries elsewhere don't count": {only: "a session after %d tries", learnt: func(r *Registry, event RegistryEvent) {
			if e, failed := event.(*CodeFailed); failed {
				if v := r.visitors[e.Email.digest]; v != nil && v.code != nil {
					v.code.tries--
				}
			}
		}},
		"nothing is decided again": {only: "a session", stale: true},
		"an account's number is kept when it is void": {only: "account of", void: func(r *Registry, event RegistryEvent) {
			e, opened := event.(*SessionOpened)
			if !opened {
				r.Void(event)
				return
			}
			account := r.visitor(e.Email).account
			r.Void(event)
			r.visitor(e.Email).account = account
		}},
		"a void try uses the code up": {only: "is refused", void: func(r *Registry, event RegistryEvent) { r.Lost(event) }},
		"a snapshot forgets codes":    {only: "is refused", joined: func(state *RegistryState) { state.Shared = nil }},
		"a snapshot forgets tries": {only: "a session after %d tries", joined: func(state *RegistryState) {
			for i := range state.Shared {
				state.Shared[i].Tries = 0
			}
		}},
		"each node has a key of its own": {only: "is refused", keyless: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range 20_000 {
				w := newDeskWorld(rand.New(rand.NewPCG(37, uint64(seed))).IntN, bug)
				if fault := w.live(400); fault != "" {
					t.Logf("caught by sequence %d: %.200s", seed+1, fault)
					return
				}
			}
			t.Error("not caught")
		})
	}
}

// A registry that is alone writes no codes, sealed or not.
func TestK2_AloneNoCodeIsInTheLog(t *testing.T) {
	r := NewRegistry([32]byte{1})
	now := Moment{Wall: noon, Steady: time.Hour}
	event, err := r.RequestCode(idOf("a@b.do"), (&loginWorld{}).client(), now)
	if err != nil {
		t.Fatal(err)
	}
	if r.Seal(event, SecretOf("12345678")); event.Sealed != (CodeSeal{}) || !event.Mailed {
		t.Errorf("%+v", event)
	}
	if r.Share(); event.Sealed != (CodeSeal{}) {
		t.Errorf("%+v", event)
	}
	if r.Seal(event, SecretOf("12345678")); event.Sealed == (CodeSeal{}) {
		t.Error("a shared key seals nothing")
	}
}
