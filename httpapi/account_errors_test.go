package httpapi

import (
	"testing"

	"github.com/tasard/tasard/engine"
)

// TestE1_AccountStatuses: the codes of keys, accounts and limits have their statuses, whatever operation they come from.
func TestE1_AccountStatuses(t *testing.T) {
	for code, want := range map[engine.Code]int{
		engine.CodeMissingKey: 401, engine.CodeInvalidKey: 401, engine.CodeRevokedKey: 401, engine.CodeAccountSuspended: 401,
		engine.CodeInvalidCode: 401, engine.CodeInvalidSession: 401, engine.CodeKeyLimitReached: 409, engine.CodeUnsupportedMediaType: 415,
		engine.CodeRateLimited: 429, engine.CodeQuotaExceeded: 429, engine.CodeRequestedTooSoon: 429, engine.CodeReadOnly: 503,
		engine.CodeOverloaded: 503, engine.CodeDataUnavailable: 503, engine.CodeInternalError: 500, "odd": 500,
	} {
		for name, e := range accountGood() {
			g := newGated(t, nil)
			g.accounts.fault = &engine.Error{Code: code, Message: "m"}
			a := g.send(t, e)
			if problems := securityProblems(true, a); a.status != want || len(problems) > 0 {
				t.Errorf("%s, %s: %d, want %d; %v", name, code, a.status, want, problems)
			}
			if got := engine.Code(a.fault(t).Error.Code); got != code && want != 500 {
				t.Errorf("%s, %s: code %s", name, code, got)
			}
		}
	}
}
