package httpapi

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/tasard/tasard/engine/account"
)

func authorizations() map[string]bool {
	key := testKey(1)
	return map[string]bool{
		"X-None: 1":                                                  false,
		"Authorization: Bearer " + key:                               true,
		"authorization: bearer " + key:                               true,
		"AUTHORIZATION: BEARER " + key:                               true,
		"Authorization:  \t Bearer " + key + " \t":                   true,
		"Authorization:":                                             false,
		"Authorization: Bearer":                                      false,
		"Authorization: Bearer  " + key:                              true, // RFC 9110 11.4: one or more blanks
		"Authorization: Bearer   \t" + key:                           false,
		"Authorization: Bearer\t" + key:                              false,
		"Authorization: " + key:                                      false,
		"Authorization: Basic " + key:                                false,
		"Authorization: Bearers " + key:                              false,
		`Authorization: Bearer "` + key + `"`:                        false,
		"Authorization: Bearer token=" + key:                         false,
		"Authorization: Bearer " + key + ", Bearer " + testKey(2):    false,
		"Authorization: Bearer " + key + "=":                         false,
		"Authorization: Bearer " + strings.Replace(key, "1", "2", 1): false,
		"Authorization: Bearer " + key[:len(key)-1]:                  false,
		"Authorization: Bearer " + key + "0":                         false,
		"Authorization: Bearer x" + key[1:]:                          false,
		"Authorization: Bearer " + testSession(1):                    false,
		"Authorization: Bearer \xff" + key[1:]:                       false,
	}
}

// TestK4_ReadAuthorization: a malformed key is refused without a look-up. The response says that it was ignored.
// TestS6_SecretElsewhere checks that no other header counts.
func TestK4_ReadAuthorization(t *testing.T) {
	g := newFixtureWithLimits(t, nil)
	g.admitter.allowance.Minute = 1000
	for line, hasKey := range authorizations() {
		a := g.get(t, bestTarget, line)
		if a.status != 200 {
			t.Errorf("%s: %d before keys are required (K6)", line, a.status)
			continue
		}
		c := g.admitter.lastCaller(t)
		sent := strings.HasPrefix(strings.ToLower(line), "authorization:")
		if c.HasKey != hasKey || c.HasMalformedKey != (sent && !hasKey) || hasKey && c.Key != digestOf(testKey(1)) || c.Address != netip.MustParseAddr(peerDefault) {
			t.Errorf("%s: %+v", line, c)
		}
		if status := a.header.Get("X-Key-Status"); (status == "ignored") != (sent && !hasKey) {
			t.Errorf("%s: X-Key-Status %q", line, status)
		}
	}
}

// TestE3_Challenge: a 401 names the realm, with an error exactly when something was sent. Where one is due,
// TestS10_Contract says.
func TestE3_Challenge(t *testing.T) {
	g := newFixtureWithLimits(t, nil)
	g.admitter.transition = keysRequiredIn(0)
	const want, wrong = `Bearer realm="tasard"`, `, error="invalid_token"`
	for line, more := range map[string]string{
		"X-None: 1": "", "Authorization: Bearer x": wrong, "Authorization:": wrong, bearer(testKey(3)): wrong, bearer(testKey(8)): wrong,
	} {
		if got := g.get(t, bestTarget, line).header.Get("WWW-Authenticate"); got != want+more {
			t.Errorf("%q: %s, want %s", line, got, want+more)
		}
	}
	wrongCode := exchange{method: "POST", target: sessionsPath, lines: []string{jsonLine, bearer(testKey(1))}, body: `{"email":"a@example.do","code":"00712346"}`}
	if got := g.send(t, wrongCode).header.Get("WWW-Authenticate"); got != want {
		t.Errorf("a wrong code beside a key that was not asked for: %s", got)
	}
}

// FuzzAuthorization holds the reading of the header against a regular expression.
func FuzzAuthorization(f *testing.F) {
	for line := range authorizations() {
		f.Add(strings.TrimSpace(line[strings.IndexByte(line, ':')+1:]))
	}
	f.Add("Bearer a==")
	f.Add("Bearer ==")
	f.Add("bEARER -._~+/09azAZ")
	grammar := regexp.MustCompile(`(?s)^(?i:bearer) +([^ ].*)?$`)
	f.Fuzz(func(t *testing.T, value string) {
		if strings.ContainsAny(value, "\r\n\x00") {
			t.Skip("no header value holds these")
		}
		token, ok := bearerText([]byte(value))
		found := grammar.FindStringSubmatch(latin(value))
		if ok != (found != nil) || ok && latin(string(token)) != found[1] {
			t.Fatalf("%q: %q %v, want %q", value, token, ok, found)
		}
		if _, isKey := account.ParseKey(token); ok && isKey && len(token) != account.KeyLength {
			t.Fatalf("%q is a key", value)
		}
	})
}
