package httpapi

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// authorizationRow is a header (none when absent) and whether it carries the key.
type authorizationRow struct {
	name   string
	lines  []string
	hasKey bool
}

func authorizationTable() []authorizationRow {
	key := testKey(1)
	return []authorizationRow{
		{"none", nil, false},
		{"good", []string{"Authorization: Bearer " + key}, true},
		{"small letters", []string{"authorization: bearer " + key}, true},
		{"capitals", []string{"AUTHORIZATION: BEARER " + key}, true},
		{"blanks around", []string{"Authorization:  \t Bearer " + key + " \t"}, true},
		{"empty", []string{"Authorization:"}, false},
		{"scheme alone", []string{"Authorization: Bearer"}, false},
		{"two blanks", []string{"Authorization: Bearer  " + key}, false},
		{"tab", []string{"Authorization: Bearer\t" + key}, false},
		{"no scheme", []string{"Authorization: " + key}, false},
		{"another scheme", []string{"Authorization: Basic " + key}, false},
		{"longer scheme", []string{"Authorization: Bearers " + key}, false},
		{"quoted", []string{`Authorization: Bearer "` + key + `"`}, false},
		{"parameter", []string{"Authorization: Bearer token=" + key}, false},
		{"list", []string{"Authorization: Bearer " + key + ", Bearer " + testKey(2)}, false},
		{"padding", []string{"Authorization: Bearer " + key + "="}, false},
		{"typo", []string{"Authorization: Bearer " + strings.Replace(key, "1", "2", 1)}, false},
		{"cut", []string{"Authorization: Bearer " + key[:len(key)-1]}, false},
		{"longer", []string{"Authorization: Bearer " + key + "0"}, false},
		{"another prefix", []string{"Authorization: Bearer x" + key[1:]}, false},
		{"session", []string{"Authorization: Bearer " + testSession(1)}, false},
		{"not ASCII", []string{"Authorization: Bearer \xff" + key[1:]}, false},
		{"in another header", []string{"X-Api-Key: " + key}, false},
		{"in a cookie", []string{"Cookie: authorization=Bearer " + key + "; key=" + key}, false},
		{"in the referrer", []string{"Referer: https://a.example/?key=" + key}, false},
		{"for a proxy", []string{"Proxy-Authorization: Bearer " + key}, false},
	}
}

// TestK4_ReadAuthorization: what is no key is refused without a look-up, and only the one header counts.
func TestK4_ReadAuthorization(t *testing.T) {
	for _, row := range authorizationTable() {
		g := newGated(t, nil)
		if a := g.ask(t, bestTarget, row.lines...); a.status != 200 {
			t.Errorf("%s: %d before keys are required (K6)", row.name, a.status)
			continue
		}
		c := g.gate.lastCaller(t)
		sent := len(row.lines) > 0 && strings.HasPrefix(strings.ToLower(row.lines[0]), "authorization:")
		if c.HasKey != row.hasKey || c.Refused != (sent && !row.hasKey) || row.hasKey && c.Key != digestOf(testKey(1)) {
			t.Errorf("%s: %+v", row.name, c)
		}
		if c.Address != netip.MustParseAddr(peerDefault) {
			t.Errorf("%s: address %s", row.name, c.Address)
		}
	}
}

// TestK4_EachByteOfAToken holds every byte against the list of RFC 9110, section 11.2.
func TestK4_EachByteOfAToken(t *testing.T) {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/"
	for c := range 256 {
		b := byte(c)
		known := strings.IndexByte(allowed, b) >= 0
		for text, want := range map[string]bool{
			string([]byte{b}): known, string([]byte{b, '='}): known, string([]byte{b, 'a'}): known,
			string([]byte{'a', b, 'z'}): known, string([]byte{'a', b}): known || b == '=', string([]byte{'a', '=', b}): b == '=',
		} {
			if isToken68([]byte(text)) != want {
				t.Errorf("%q: %v", text, !want)
			}
		}
	}
	if isToken68(nil) || isToken68([]byte("==")) {
		t.Error("nothing is a token")
	}
}

// TestK4_RepeatedAuthorization: the guard refuses it; behind the guard it is no key either.
func TestK4_RepeatedAuthorization(t *testing.T) {
	g := newGated(t, nil)
	if a := g.ask(t, bestTarget, bearer(testKey(1)), bearer(testKey(1))); a.status != 400 || len(g.gate.callers) > 0 {
		t.Errorf("%d, %v", a.status, g.gate.callers)
	}
	line := []byte("Bearer " + testKey(1))
	if _, ok := bearerToken([][]byte{line, line}); ok {
		t.Error("two headers are one token")
	}
	if _, ok := bearerToken([][]byte{line}); !ok {
		t.Error("one header is no token")
	}
}

// TestK6_AnonymousBefore_RefusedAfter: the same requests before and after keys are required.
func TestK6_AnonymousBefore_RefusedAfter(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		after engine.Code
	}{
		{"no key", nil, engine.CodeMissingKey},
		{"unknown", []string{bearer(testKey(3))}, engine.CodeInvalidKey},
		{"malformed", []string{"Authorization: Bearer x"}, engine.CodeInvalidKey},
		{"another scheme", []string{"Authorization: Basic YTpi"}, engine.CodeInvalidKey},
		{"revoked", []string{bearer(testKey(8))}, engine.CodeRevokedKey},
		{"suspended", []string{bearer(testKey(9))}, engine.CodeAccountSuspended},
		{"good", []string{bearer(testKey(1))}, ""},
	}
	for _, test := range tests {
		g := newGated(t, nil)
		if a := g.ask(t, bestTarget, test.lines...); a.status != 200 {
			t.Errorf("%s: %d before", test.name, a.status)
		}
		who := anyone
		if test.after == "" {
			who = account1
		}
		if got := g.gate.charged(who); got != 1 {
			t.Errorf("%s: %d charged to %s", test.name, got, who)
		}
		g.gate.transition = announced(0)
		a := g.ask(t, bestTarget, test.lines...)
		if test.after == "" {
			if a.status != 200 {
				t.Errorf("%s: %d after", test.name, a.status)
			}
			continue
		}
		if a.status != 401 || engine.Code(a.fault(t).Error.Code) != test.after || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s after", test.name, a.status, a.body)
		}
	}
}

// TestE3_Challenge: every 401 has one, with an error exactly when something was sent.
func TestE3_Challenge(t *testing.T) {
	for realm, want := range map[string]string{
		"": `Bearer realm="tasard"`, "Tasas RD": `Bearer realm="Tasas RD"`, `a"b\c`: `Bearer realm="a\"b\\c"`,
	} {
		g := newGated(t, func(c *Config) { c.Realm = realm })
		g.gate.transition = announced(0)
		if got := g.ask(t, bestTarget).header.Get("WWW-Authenticate"); got != want {
			t.Errorf("nothing sent: %s, want %s", got, want)
		}
		for _, line := range []string{"Authorization: Bearer x", "Authorization:", bearer(testKey(3)), bearer(testKey(8))} {
			if got := g.ask(t, bestTarget, line).header.Get("WWW-Authenticate"); got != want+`, error="invalid_token"` {
				t.Errorf("%q: %s", line, got)
			}
		}
		if got := g.ask(t, bestTarget, bearer(testKey(1))).header.Get("WWW-Authenticate"); got != "" {
			t.Errorf("a good key is challenged: %s", got)
		}
	}
	g := newGated(t, nil)
	wrongCode := accountGood()["sessions-post"]
	wrongCode.lines = append(wrongCode.lines, bearer(testKey(1)))
	if got := g.send(t, wrongCode).header.Get("WWW-Authenticate"); got != `Bearer realm="tasard"` {
		t.Errorf("a wrong code beside a key that nobody asked for: %s", got)
	}
	challenged := regexp.MustCompile(`^Bearer realm="tasard"(, error="invalid_token")?$`)
	count := 0
	for _, c := range append(limitCases(), accountCases()...) {
		if _, a := c.run(t); a.status == 401 {
			count++
			if got := a.header.Values("WWW-Authenticate"); len(got) != 1 || !challenged.MatchString(got[0]) {
				t.Errorf("%s: %q", c.name, got)
			}
		} else if a.header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: %d with a challenge", c.name, a.status)
		}
	}
	if count == 0 {
		t.Fatal("no case is a 401")
	}
}

// TestQ4_KeyInURLNeverAuthenticates, limits or not, required or not; it costs like every 400.
func TestQ4_KeyInURLNeverAuthenticates(t *testing.T) {
	for _, name := range []string{"api_key", "apikey", "access_key", "key", "token", "API_Key", "%6bey"} {
		g := newGated(t, nil)
		target := "/v1/rates?" + name + "=" + testKey(1)
		problems := g.ask(t, target).problems(t)
		if len(problems) != 1 || !strings.Contains(problems[0], "Authorization header") || strings.Contains(problems[0], testKey(1)) {
			t.Errorf("%s: %q", name, problems)
		}
		if c := g.gate.lastCaller(t); c.HasKey || c.Refused || g.gate.charged(anyone) != 1 {
			t.Errorf("%s: %+v, %d charged", name, c, g.gate.charged(anyone))
		}
		g.gate.transition = announced(-time.Hour)
		if a := g.ask(t, target); a.status != 401 || a.fault(t).Error.Code != "missing_key" {
			t.Errorf("%s, required: %d %s", name, a.status, a.body)
		}
		if a := g.ask(t, "/v1/account/usage?"+name+"="+testKey(1)); a.status != 401 {
			t.Errorf("%s for usage: %d", name, a.status)
		}
		if a := g.ask(t, "/v1/account/usage?"+name+"="+testKey(1), bearer(testKey(1))); a.status != 400 {
			t.Errorf("%s for usage, with a key: %d", name, a.status)
		}
	}
}

// FuzzAuthorization holds the reading of the header against a regular expression.
func FuzzAuthorization(f *testing.F) {
	for _, row := range authorizationTable() {
		for _, line := range row.lines {
			f.Add(strings.TrimSpace(line[strings.IndexByte(line, ':')+1:]))
		}
	}
	f.Add("Bearer a==")
	f.Add("Bearer ==")
	f.Add("bEARER -._~+/09azAZ")
	grammar := regexp.MustCompile(`^(?i:bearer) ([A-Za-z0-9._~+/-]+=*)$`)
	f.Fuzz(func(t *testing.T, value string) {
		if strings.ContainsAny(value, "\r\n\x00") {
			t.Skip("no header value holds these")
		}
		token, ok := bearerToken([][]byte{[]byte(value)})
		found := grammar.FindStringSubmatch(latin(value))
		if ok != (found != nil) || ok && string(token) != found[1] {
			t.Fatalf("%q: %q %v, want %q", value, token, ok, found)
		}
		if _, isKey := engine.ReadKey(token); ok && isKey && len(token) != engine.KeyLength {
			t.Fatalf("%q is a key", value)
		}
	})
}
