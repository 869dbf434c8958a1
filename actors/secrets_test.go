package actors

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tasard/tasard/actors/dump"
	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// spellings are the ways in which a secret could slip into a file.
func spellings(secret string) map[string]string {
	reversed := []byte(secret)
	for i, j := 0, len(reversed)-1; i < j; i, j = i+1, j-1 {
		reversed[i], reversed[j] = reversed[j], reversed[i]
	}
	return map[string]string{
		"raw": secret, "hex": hex.EncodeToString([]byte(secret)), "base64": base64.StdEncoding.EncodeToString([]byte(secret)),
		"URL": url.QueryEscape(secret), "reversed": string(reversed),
	}
}

// Secrets of a whole life appear in no log line, record, snapshot or description.
func TestS5_SecretsAreNowhere(t *testing.T) {
	var lines bytes.Buffer
	n := startNode(t, Config{Logger: slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	email := mustEmail(t, "canary.bird@example.com")
	must(t, n.RequestCode(email, requester(1)))
	code := n.mail.code(email)
	_, _, _ = n.OpenSession(email, "not the code", requester(1))
	token, _, err := n.OpenSession(email, code, requester(1))
	must(t, err)
	key, secret, err := n.CreateKey(token.Digest(), "canary")
	must(t, err)
	n.admit(secret.Digest())
	n.restart()
	must(t, n.RevokeKey(token.Digest(), key.ID))
	all := n.everything(n.journal)
	n.fail(errors.New("planted"))
	n.stop()
	seen := map[string][]byte{"log lines": lines.Bytes(), "snapshot": n.journal.snapshot}
	var records bytes.Buffer
	for _, record := range all.records {
		records.Write(record)
		line, err := dump.Record(record)
		must(t, err)
		records.WriteString(line)
	}
	seen["records"] = records.Bytes()
	for where, data := range seen {
		if len(data) == 0 {
			t.Errorf("there are no %s to look through", where)
		}
		for what, canary := range map[string]string{
			"code": code, "token": token.Reveal(), "key": secret.Reveal(), "address": email.String(), "local part": "canary.bird",
		} {
			for how, spelling := range spellings(canary) {
				if strings.Contains(string(data), spelling) {
					t.Errorf("the %s is in the %s (%s)", what, where, how)
				}
			}
		}
	}
}

// A node that is closed under load answers every request and forfeits nothing.
func TestCloseUnderLoadOfAccounts(t *testing.T) {
	n := prepareNode(t, Config{QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: 1_000_000, Minute: accounts.QuotaMinuteMax}}})
	var members []*testMember
	for i := range 6 {
		members = append(members, n.join(i+1, 1))
	}
	var admitted [6]atomic.Int64
	var clients sync.WaitGroup
	begun := make(chan struct{}, 6)
	for i, m := range members {
		clients.Go(func() {
			for k := 0; ; k++ {
				grant, err := n.Admit(account.Caller{Key: m.keys[0], HasKey: true})
				if err != nil {
					if !isCode(err, engine.CodeDataUnavailable) {
						t.Error(err)
					}
					return
				}
				if grant.Admitted && grant.Account == uint64(i+1) {
					admitted[i].Add(1)
				}
				if k == 100 {
					begun <- struct{}{}
				}
			}
		})
	}
	for range 6 {
		<-begun
	}
	n.stop()
	clients.Wait()
	n.boot(n.journal)
	defer n.stop()
	for i, m := range members {
		if spent := n.spent(m.token); int64(spent) != admitted[i].Load() {
			t.Errorf("account %d has spent %d, %d were admitted", i+1, spent, admitted[i].Load())
		}
	}
}
