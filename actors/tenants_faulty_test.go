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
	"time"

	"github.com/tasard/tasard/engine"
)

// A panic in the middle of an admission costs that request: no count changes, nobody else waits, and the
// node goes on.
func TestQ5_PanicsCostOneRequest(t *testing.T) {
	var armed atomic.Bool
	var looks, panics, admitted, failed atomic.Int64
	clock := func() time.Time {
		if armed.Load() && looks.Add(1)%17 == 0 {
			panics.Add(1)
			panic("planted")
		}
		return noon
	}
	n := startNode(t, Config{
		Clock: clock, Steady: paceOf(time.Second + 1), Terms: engine.Terms{Allowance: engine.Allowance{Day: 1_000_000}, Lease: leaseMax},
	})
	var members []*member
	for i := range 8 {
		members = append(members, n.join(i+1, 1))
		n.admitted(members[i].keys[0], 1)
	}
	armed.Store(true)
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for k := range 1250 {
				switch grant, err := n.Admit(engine.Caller{Key: members[(i+k)%8].keys[0], HasKey: true}); {
				case isCode(err, engine.CodeInternalError):
					failed.Add(1)
				case err != nil || !grant.Admitted:
					t.Errorf("%+v, %v", grant, err)
				default:
					admitted.Add(1)
				}
			}
		})
	}
	clients.Wait()
	armed.Store(false)
	if n.Err() != nil {
		t.Fatalf("the node stopped: %v", n.Err())
	}
	total := int64(-8)
	for i := range members {
		_, verdict, err := n.ShowAccount(uint64(i + 1))
		if err != nil {
			t.Fatal(err)
		}
		total += int64(verdict.Day.Limit - verdict.Day.Remaining)
	}
	t.Logf("%d panics in %d requests", panics.Load(), admitted.Load()+failed.Load())
	if total != admitted.Load() || failed.Load() != panics.Load() || failed.Load() == 0 {
		t.Errorf("%d spent, %d admitted, %d failed, %d panics", total, admitted.Load(), failed.Load(), panics.Load())
	}
}

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
	if err := n.RequestCode(email, client(1)); err != nil {
		t.Fatal(err)
	}
	code := n.mail.code(email)
	_, _, _ = n.OpenSession(email, "not the code", client(1))
	token, _, err := n.OpenSession(email, code, client(1))
	if err != nil {
		t.Fatal(err)
	}
	key, secret, err := n.CreateKey(token.Digest(), "canary")
	if err != nil {
		t.Fatal(err)
	}
	n.admit(secret.Digest())
	n.restart()
	if err := n.RevokeKey(token.Digest(), key.ID); err != nil {
		t.Fatal(err)
	}
	all := n.everything(n.journal)
	n.fail(errors.New("planted"))
	n.stop()
	seen := map[string][]byte{"log lines": lines.Bytes(), "snapshot": n.journal.snapshot}
	var records bytes.Buffer
	for _, record := range all.records {
		records.Write(record)
		line, err := DescribeRecord(record)
		if err != nil {
			t.Fatal(err)
		}
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

// A node that is closed under load answers everybody and forfeits nothing.
func TestCloseUnderLoadOfAccounts(t *testing.T) {
	n := prepareNode(t, Config{Terms: engine.Terms{Allowance: engine.Allowance{Day: 1_000_000, Minute: allowanceMinuteMax}}})
	var members []*member
	for i := range 6 {
		members = append(members, n.join(i+1, 1))
	}
	var admitted [6]atomic.Int64
	var clients sync.WaitGroup
	begun := make(chan struct{}, 6)
	for i, m := range members {
		clients.Go(func() {
			for k := 0; ; k++ {
				grant, err := n.Admit(engine.Caller{Key: m.keys[0], HasKey: true})
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

// The way of a request with a key allocates nothing while its lease lasts.
func TestF4_AdmissionDoesNotAllocate(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	n, caller := benchNode(t, leaseMax)
	ask(t, n, caller)
	if allocations := testing.AllocsPerRun(2000, func() { ask(t, n, caller) }); allocations != 0 {
		t.Errorf("%g allocations with a key", allocations)
	}
	caller.HasKey = false
	if allocations := testing.AllocsPerRun(900, func() { ask(t, n, caller) }); allocations != 0 {
		t.Errorf("%g allocations without a key", allocations)
	}
}
