package apitest

import (
	"maps"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/client"
)

// TestRestartAndCrash checks that keys, spent quota and rates outlive a restart and a crash, and that nothing is
// over-granted.
func TestRestartAndCrash(t *testing.T) {
	srv := Start(t, Rates(standardRate), Quota(40, 60))
	key := srv.Key()
	for range 5 {
		mustAnswer(t, srv, srv.Client, key, http.StatusOK, "")
	}
	srv.Restart()
	if header := mustAnswer(t, srv, srv.Client, key, http.StatusOK, ""); header.Get("X-RateLimit-Remaining") != "34" {
		t.Errorf("after a restart: %v", header)
	}
	srv.Crash()
	granted := 0
	for range 60 {
		if status, _, _ := get(t, srv.Client, srv.URL+best, "Authorization", "Bearer "+key); status == http.StatusOK {
			granted++
		}
	}
	if granted > 34 || granted < 34-2*account.LeaseSizeDefault {
		t.Errorf("after a crash: %d granted of 34", granted)
	}
}

// TestRestart_UnderWay checks that a request during a restart is answered, unless its connection is new and ends before
// the node reads from it; during a crash it may fail, and the next one is answered.
func TestRestart_UnderWay(t *testing.T) {
	srv := Start(t, Rates(standardRate))
	crashing := atomic.Bool{}
	stop := repeat(4, func() {
		during, fresh := crashing.Load(), false
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { fresh = !c.Reused }})
		status, body, _, err := tryGet(ctx, t, srv.Client, srv.URL+best)
		if !during && !crashing.Load() && (err != nil && !fresh || err == nil && status != http.StatusOK) {
			t.Errorf("%d %s %v", status, body, err)
		}
	})
	for range 5 {
		srv.Restart()
	}
	crashing.Store(true)
	for range 3 {
		srv.Crash()
	}
	stop()
	if status, _, _ := get(t, srv.Client, srv.URL+best); status != http.StatusOK {
		t.Error(status)
	}
}

// accountOwner creates and revokes keys of one account, and records the answers.
type accountOwner struct {
	*client.Client
	t       *testing.T
	session string
	changed chan struct{} // signals an answer

	mu       sync.Mutex
	answered map[string]string // "active" or "revoked", by id
}

// createAndRevoke creates a key and revokes all, also those whose requests were not answered.
func (o *accountOwner) createAndRevoke() {
	if made, err := o.CreateKey(o.t.Context(), o.session, ""); err == nil {
		o.record(made.ID, "active")
	}
	for id, state := range o.listKeys() {
		if state != "active" {
			continue
		}
		o.mu.Lock()
		o.answered[id] = "revoking" // a crash may take the answer, not the change
		o.mu.Unlock()
		if o.RevokeKey(o.t.Context(), o.session, id) == nil {
			o.record(id, "revoked")
		}
	}
}

func (o *accountOwner) record(id, state string) {
	o.mu.Lock()
	o.answered[id] = state
	o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// listKeys returns the states of the keys by id, none without an answer.
func (o *accountOwner) listKeys() map[string]string {
	states := map[string]string{}
	list, _ := o.Keys(o.t.Context(), o.session)
	for _, key := range list {
		states[key.ID] = key.Status
	}
	return states
}

// check compares the account with the recorded answers. Old revoked keys leave the list.
func (o *accountOwner) check() {
	o.t.Helper()
	o.mu.Lock()
	answered := maps.Clone(o.answered)
	o.mu.Unlock()
	listed := o.listKeys()
	for id, state := range answered {
		if state == "active" && listed[id] == "" || state == "revoked" && listed[id] == "active" {
			o.t.Errorf("key %s was answered as %s, and is listed as %q", id, state, listed[id])
		}
	}
}

// TestCrash_KeepsWhatWasAnswered checks that crashes while keys are created and revoked undo nothing that was
// answered.
func TestCrash_KeepsWhatWasAnswered(t *testing.T) {
	srv := Start(t)
	o := &accountOwner{Client: accountClient(t, srv, srv.Client), t: t, changed: make(chan struct{}), answered: map[string]string{}}
	o.session = signIn(t, srv, o.Client, "ana@example.do")
	stop := repeat(1, o.createAndRevoke)
	for range sampleOrWhole(10, 40) {
		for range 5 { // then it is at work
			<-o.changed
		}
		srv.Crash()
		o.check()
	}
	stop()
	o.check()
	t.Logf("%d keys made", len(o.answered))
}
