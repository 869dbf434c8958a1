package httpapi

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"

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
		if a := g.get(t, bestTarget, row.lines...); a.status != 200 {
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
	if a := g.get(t, bestTarget, bearer(testKey(1)), bearer(testKey(1))); a.status != 400 || len(g.gate.callers) > 0 {
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
	for line, after := range map[string]string{
		"X-None: 1": "401 missing_key", bearer(testKey(3)): "401 invalid_key", "Authorization: Bearer x": "401 invalid_key",
		"Authorization: Basic YTpi": "401 invalid_key", bearer(testKey(8)): "401 revoked_key", bearer(testKey(9)): "401 account_suspended",
		bearer(testKey(1)): "200",
	} {
		g := newGated(t, nil)
		who := peerDefault
		if after == "200" {
			who = account1
		}
		if a := g.get(t, bestTarget, line); a.status != 200 || g.gate.charged(who) != 1 {
			t.Errorf("%s: %d before, %d charged to %s", line, a.status, g.gate.charged(who), who)
		}
		g.gate.transition = announced(0)
		if a := g.get(t, bestTarget, line); a.code(t) != after {
			t.Errorf("%s: %d %s after", line, a.status, a.body)
		}
	}
}

// TestE3_Challenge: a 401 names the realm, with an error exactly when something was sent. That each 401 has a challenge, and no other
// answer, is TestS10_Contract's.
func TestE3_Challenge(t *testing.T) {
	for realm, want := range map[string]string{
		"": `Bearer realm="tasard"`, "Tasas RD": `Bearer realm="Tasas RD"`, `a"b\c`: `Bearer realm="a\"b\\c"`,
	} {
		g := newGated(t, func(c *Config) { c.Realm = realm })
		g.gate.transition = announced(0)
		const wrong = `, error="invalid_token"`
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
