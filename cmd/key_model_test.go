package cmd

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// keyRefusal is the checker's model of a request for another key: the error code of an account that is suspended or
// not and has a number of active keys, or "" if it gets the key. TestKeyModel holds it against engine/account.
func keyRefusal(suspended bool, active int) engine.Code {
	switch {
	case suspended:
		return engine.CodeAccountSuspended
	case active >= account.KeysActiveMax:
		return engine.CodeKeyLimitReached
	}
	return ""
}

// keyRefusals returns what a request for a key may be answered, if the account may have been suspended or not
// meanwhile and may have had any number of keys up to mostActive.
func keyRefusals(maybeSuspended, maybeFree bool, mostActive int) map[string]bool {
	codes := map[string]bool{}
	for active := range mostActive + 1 {
		if maybeSuspended {
			codes[string(keyRefusal(true, active))] = true
		}
		if maybeFree {
			codes[string(keyRefusal(false, active))] = true
		}
	}
	return codes
}

// TestKeyModel compares the checker's model of keys with the rules of package account, in every state that matters.
func TestKeyModel(t *testing.T) {
	at := time.Date(2026, 6, 17, 16, 0, 0, 0, time.UTC)
	for _, suspended := range []bool{false, true} {
		for active := range account.KeysActiveMax + 1 {
			a := account.New(1)
			a.Apply(&account.Created{Account: 1, At: at}, account.ClockReading{})
			for i := range active {
				a.Apply(&account.KeyCreated{Account: 1, Key: account.KeyRecord{ID: fmt.Sprintf("key_%d", i), CreatedAt: at}}, account.ClockReading{})
			}
			if suspended {
				a.Apply(&account.Suspended{Account: 1, At: at}, account.ClockReading{})
			}
			_, err := a.CreateKey(account.KeyRecord{ID: "another", CreatedAt: at})
			got := engine.Code("")
			if refusal := (*engine.Error)(nil); errors.As(err, &refusal) {
				got = refusal.Code
			} else if err != nil {
				t.Errorf("an error without a code: %v", err)
			}
			if want := keyRefusal(suspended, active); got != want {
				t.Errorf("suspended %v with %d active keys: %q, the model says %q", suspended, active, got, want)
			}
		}
	}
}
