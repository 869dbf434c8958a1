package apitest

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// owner makes and revokes keys of one account, and knows what was answered.
type owner struct {
	t       *testing.T
	srv     *Server
	session string
	news    chan struct{} // something was answered

	mu      sync.Mutex
	made    []string // answered 201
	revoked []string // answered 204
}

// call is a request of the owner; status 0 = no answer.
func (o *owner) call(method, path, body string) (int, string) {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), method, o.srv.URL+"/v1/account/"+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if o.session != "" {
		request.Header.Set("Authorization", "Bearer "+o.session)
	}
	res, err := o.srv.Client.Do(request)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, ""
	}
	return res.StatusCode, string(text)
}

func (o *owner) signIn(email string) {
	o.t.Helper()
	if status, body := o.call(http.MethodPost, "codes", `{"email":"`+email+`"}`); status != http.StatusAccepted {
		o.t.Fatal(status, body)
	}
	status, body := o.call(http.MethodPost, "sessions", `{"email":"`+email+`","code":"`+o.srv.Code(email)+`"}`)
	var opened struct{ Data struct{ Token string } }
	if err := json.Unmarshal([]byte(body), &opened); err != nil || opened.Data.Token == "" {
		o.t.Fatal(status, body, err)
	}
	o.session = opened.Data.Token
}

type keyList struct {
	Data []struct{ ID, Status string }
}

// work makes a key and revokes it, again and again. What no answer came to may be there or not.
func (o *owner) work(stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		status, body := o.call(http.MethodPost, "keys", "{}")
		var made struct{ Data struct{ ID string } }
		switch {
		case status == http.StatusConflict: // keys that nobody heard of
			o.revokeAll()
			continue
		case status != http.StatusCreated || json.Unmarshal([]byte(body), &made) != nil:
			continue
		}
		o.mu.Lock()
		o.made = append(o.made, made.Data.ID)
		o.mu.Unlock()
		o.tell()
		o.revoke(made.Data.ID)
		o.tell()
	}
}

// tell lets who waits for news go on.
func (o *owner) tell() {
	select {
	case o.news <- struct{}{}:
	default:
	}
}

func (o *owner) revoke(id string) {
	if status, _ := o.call(http.MethodDelete, "keys/"+id, ""); status == http.StatusNoContent {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.revoked = append(o.revoked, id)
	}
}

func (o *owner) revokeAll() {
	_, body := o.call(http.MethodGet, "keys", "")
	var list keyList
	if json.Unmarshal([]byte(body), &list) != nil {
		return
	}
	for _, key := range list.Data {
		if key.Status == "active" {
			o.revoke(key.ID)
		}
	}
}

// newestKeys are listed for certain; older ones that are revoked leave the list.
const newestKeys = 20

// answered is what is known so far.
func (o *owner) answered() (made, revoked []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.made), slices.Clone(o.revoked)
}

// check holds the account against what was answered before.
func (o *owner) check() {
	o.t.Helper()
	made, revoked := o.answered()
	status, body := o.call(http.MethodGet, "keys", "")
	var list keyList
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK {
		o.t.Fatal(status, body, err)
	}
	states := map[string]string{}
	for _, key := range list.Data {
		states[key.ID] = key.Status
	}
	for _, id := range made[max(0, len(made)-newestKeys):] {
		if states[id] == "" {
			o.t.Errorf("key %s was answered, and is lost", id)
		}
	}
	for _, id := range revoked {
		if states[id] == "active" {
			o.t.Errorf("key %s was revoked, and is back", id)
		}
	}
}

// TestCrash_KeepsWhatWasAnswered: while somebody makes and revokes keys, crash after crash takes nothing back that was answered.
func TestCrash_KeepsWhatWasAnswered(t *testing.T) {
	o := &owner{t: t, srv: Start(t), news: make(chan struct{})}
	o.signIn("ana@example.do")
	stop := make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() { o.work(stop) })
	for range 40 {
		for range 5 { // then it is at work
			<-o.news
		}
		o.srv.Crash()
		o.check()
	}
	close(stop)
	working.Wait()
	o.check()
	if len(o.made) == 0 {
		t.Error("no key was made meanwhile")
	}
	t.Logf("%d keys made, %d revoked", len(o.made), len(o.revoked))
}
