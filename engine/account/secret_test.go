package account

import (
	"bytes"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/mail"
	"regexp"
	"strings"
	"testing"
)

// seededReader is a random source with a seed.
type seededReader struct{ *rand.Rand }

func newSeededReader(seed uint64) seededReader { return seededReader{rand.New(rand.NewPCG(seed, 0))} }

func (d seededReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(d.Uint32())
	}
	return len(p), nil
}

var shape = regexp.MustCompile(`^tasard_(live|test)_[0-9A-Za-z]{36}$`)

func TestK4_KeyShape(t *testing.T) {
	seen := map[string]bool{}
	for _, prefix := range []string{KeyPrefixLive, KeyPrefixTest} {
		for range 500 {
			key, err := NewKey(crand.Reader, prefix)
			text := key.Reveal()
			if err != nil || !shape.MatchString(text) || len(text) != KeyLength || !strings.HasPrefix(text, prefix) || seen[text] {
				t.Fatalf("NewKey = %q, %v", text, err)
			}
			seen[text] = true
			if digest, ok := ParseKey([]byte(text)); !ok || digest != key.Digest() {
				t.Fatalf("ReadKey refuses %q", text)
			}
			if key.Hint() != text[len(text)-4:] {
				t.Errorf("hint %q", key.Hint())
			}
		}
	}
}

// Every wrong character, every swap of neighbours and every missing character is refused.
func TestK4_TyposAreRefused(t *testing.T) {
	key, _ := NewKey(newSeededReader(1), KeyPrefixLive)
	text := []byte(key.Reveal())
	typos := 0
	refuse := func(typo []byte) {
		typos++
		if _, ok := ParseKey(typo); ok {
			t.Errorf("ReadKey accepts %q", typo)
		}
	}
	for i := range text {
		for c := range 256 {
			if typo := bytes.Clone(text); byte(c) != text[i] {
				typo[i] = byte(c)
				refuse(typo)
			}
		}
		refuse(append(bytes.Clone(text[:i]), text[i+1:]...))
		if i > 0 && text[i] != text[i-1] {
			typo := bytes.Clone(text)
			typo[i], typo[i-1] = typo[i-1], typo[i]
			refuse(typo)
		}
	}
	refuse(append(bytes.Clone(text), '0'))
	refuse(nil)
	// Right checksums of characters that keys do not have.
	for _, odd := range []string{KeyPrefixLive + strings.Repeat("é", keyRandomLength/2), "tasard_prod_" + strings.Repeat("a", keyRandomLength)} {
		checksum := keyChecksum([]byte(odd))
		refuse([]byte(odd + string(checksum[:])))
	}
	t.Logf("%d typos", typos)
}

// Each character is equally likely: chi-squared over 62 and over 10 classes, with a limit that chance exceeds with p <
// 1e-6.
func TestK2_K4_SecretsAreUnbiased(t *testing.T) {
	const draws = 20_000
	random := newSeededReader(2)
	tests := []struct {
		name     string
		alphabet string
		limit    int // of chi-squared
		draw     func() (Secret, error)
		from, to int
	}{
		{"keys", base62, 128, func() (Secret, error) { return NewKey(random, KeyPrefixLive) }, len(KeyPrefixLive), len(KeyPrefixLive) + keyRandomLength},
		{"sessions", base62, 128, func() (Secret, error) { return NewSessionToken(random) }, len(SessionPrefix), len(SessionPrefix) + keyRandomLength},
		{"codes", base62[:10], 45, func() (Secret, error) { return NewCode(random) }, 0, CodeDigits},
	}
	for _, tt := range tests {
		counts, total := map[byte]int{}, 0
		for range draws {
			secret, err := tt.draw()
			must(t, err)
			for _, c := range []byte(secret.Reveal()[tt.from:tt.to]) {
				counts[c]++
				total++
			}
		}
		expected, sum := total/len(tt.alphabet), 0
		for _, c := range []byte(tt.alphabet) {
			sum += (counts[c] - expected) * (counts[c] - expected)
		}
		if chi := sum / expected; len(counts) != len(tt.alphabet) || chi > tt.limit {
			t.Errorf("%s: %d characters, chi-squared %d over %d", tt.name, len(counts), chi, tt.limit)
		}
	}
}

func TestSecretsOfABrokenSource(t *testing.T) {
	for name, draw := range map[string]func(io.Reader) (Secret, error){
		"key":     func(r io.Reader) (Secret, error) { return NewKey(r, KeyPrefixLive) },
		"session": NewSessionToken,
		"code":    NewCode,
	} {
		if _, err := draw(strings.NewReader("ab")); !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Only Reveal returns a secret: no verb, encoder or logger does, by itself or inside another value.
func TestS5_SecretsAreRedacted(t *testing.T) {
	const canary = "canary-4711"
	secret := SecretOf(canary)
	type outer struct {
		Public  Secret
		Pointer *Secret
		private Secret
		list    []Secret
		any     any
	}
	values := []any{
		secret, &secret, outer{secret, &secret, secret, []Secret{secret}, secret}, []Secret{secret}, map[string]Secret{"a": secret},
		LoginMail{Code: secret}, fmt.Errorf("wrapped: %v", secret), struct{ s Secret }{secret},
	}
	var out strings.Builder
	for _, value := range values {
		for _, verb := range "vsqxXdtbcoOUeEfFgGpT" {
			for _, flags := range []string{"", "+", "#", "-30", "030", " ", ".2"} {
				fmt.Fprintf(&out, "%"+flags+string(verb)+"\n", value)
			}
		}
		fmt.Fprintln(&out, value)
		_ = json.NewEncoder(&out).Encode(value)
		for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(handler).Info("about", "value", value, slog.Group("group", "value", value))
		}
	}
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), fmt.Sprintf("% x", canary)[:11], "[99 97 110", "ca\n"} {
		if strings.Contains(out.String(), form) {
			t.Errorf("found %q in %d bytes of output", form, out.Len())
		}
	}
	if !strings.Contains(out.String(), redacted) || secret.Reveal() != canary {
		t.Error("the canary is not there at all")
	}
	if (Secret{}).Reveal() != "" || (Secret{}).Hint() != "" {
		t.Error("no secret is a text")
	}
}

func TestK2_SealsAreBoundToAddressAndProcess(t *testing.T) {
	one, two := [32]byte{1}, [32]byte{2}
	seals := map[CodeSeal]string{}
	for _, key := range [][32]byte{one, two} {
		for _, email := range []string{"a@b.do", "a@b.do1", "aa@b.do"} {
			for _, code := range []string{"00000000", "10000000", "0000000", ""} {
				seal := sealCode(key, idOf(email), code)
				if before, found := seals[seal]; found {
					t.Errorf("%s %s seals as %s", email, code, before)
				}
				seals[seal] = email + " " + code
			}
		}
	}
}

// rebuilt recognises keys by another method.
func rebuilt(text string) bool {
	match := regexp.MustCompile(`^(tasard_(?:live|test)_[0-9A-Za-z]{30})([0-9A-Za-z]{6})$`).FindStringSubmatch(text)
	if match == nil || strings.HasSuffix(text, "\n") {
		return false
	}
	sum := 0
	for _, c := range match[2] {
		sum = sum*62 + strings.IndexRune(base62, c)
	}
	return sum == int(crc32.ChecksumIEEE([]byte(match[1])))
}

func FuzzParseKey(f *testing.F) {
	for seed := range uint64(20) {
		live, _ := NewKey(newSeededReader(seed), KeyPrefixLive)
		test, _ := NewKey(newSeededReader(seed), KeyPrefixTest)
		f.Add([]byte(live.Reveal()))
		f.Add([]byte(test.Reveal()[:KeyLength-1] + "0"))
	}
	f.Add([]byte(""))
	f.Add([]byte(KeyPrefixLive + strings.Repeat("\xff", 36)))
	f.Fuzz(func(t *testing.T, text []byte) {
		digest, ok := ParseKey(text)
		if ok != rebuilt(string(text)) {
			t.Errorf("ParseKey(%q) = %t", text, ok)
		}
		if ok != (digest == SecretOf(string(text)).Digest()) {
			t.Errorf("ParseKey(%q) gives another digest", text)
		}
	})
}

// A name of a key is not a key, and does not reorder or break a line.
func TestValidKeyName(t *testing.T) {
	key, err := NewKey(newSeededReader(3), KeyPrefixLive)
	must(t, err)
	for name, want := range map[string]bool{
		"": true, "servidor «A» & B": true, strings.Repeat("ñ", 80): true, key.Reveal()[1:]: true,
		strings.Repeat("n", 81): false, "a\nb": false, "a\u2028b": false, "a\u202eb": false, "a\u2066b": false, "a\x80": false,
		key.Reveal(): false, "my key " + key.Reveal(): false,
	} {
		if ValidKeyName(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
}

func goodEmails() []string {
	return []string{
		"a@b.do", "ana@example.com", "ana.maria@example.com", "ana+tasard@example.com", "ana_maria@example.com", "ana-maria@example.com",
		"o'brien@example.com", "a&b@example.com", "a=b@example.com", "a/b@example.com", "#1@example.com", "$5@example.com", "*@example.com",
		"-@example.com", "?@example.com", "^@example.com", "{}@example.com", "~ana@example.com", "_@example.com", "1@1.do", "1.2.3@4.5.do",
		"ANA@EXAMPLE.COM", "AnA@ExAmPlE.cOm", "ana@sub.sub.sub.example.com", "ana@xn--espaa-rta.com", "ana@example.xn--p1ai", "ana@a-b.do",
		"ana@1-2-3.do", "ana@123.do", "ana@example.museum", "x@example.a1",
		strings.Repeat("a", 64) + "@example.com", "ana@" + strings.Repeat("b", 63) + ".do",
		"a@" + strings.Repeat("abcdefg.", 31) + "duno", // 254 bytes
	}
}

func hostileEmails() []string {
	long := strings.Repeat("a", 65)
	return []string{
		"", "@", "a", "a@", "@b.do", "a@b", "a.b.do", "a@b.do@c.do", "a@@b.do", "a@b@c.do", "a b@c.do", "a@b .do", " a@b.do", "a@b.do ", "\ta@b.do",
		// more than one recipient, other headers, a body
		"a@b.do\r\nBcc: x@y.do", "a@b.do\nBcc: x@y.do", "a@b.do\rBcc: x@y.do", "a\r\n@b.do", "a@b.do\r\n\r\nhello", "a@b.do\r\n.\r\nRCPT TO:<x@y.do>",
		"a@b.do%0d%0aBcc:x@y.do", "a@b.do,x@y.do", "a@b.do;x@y.do", "a@b.do x@y.do", "a@b.do,", ",a@b.do", "a,x@b.do", "a;x@b.do", "a:x@b.do",
		"a@b.do>", "<a@b.do>", "<a@b.do", "a@b.do> SIZE=1", "Ana <a@b.do>", "\"Ana\" <a@b.do>", "a@b.do (Ana)", "(Ana)a@b.do", "a(x)@b.do", "group:a@b.do;",
		// quoted names that parsers unfold
		"\"@evil.com\"@b.do", "\"a b\"@c.do", "\"a\"@b.do", "\"a\\\"b\"@c.do", "a\"b@c.do", "a\\@b.do", "a\\b@c.do", "\"\"@b.do", "\"a@b.do", "a\"@b.do",
		// routing and programs
		"a%x.do@b.do", "x!a@b.do", "@x.do:a@b.do", "<@x.do:a@b.do>", "|prog@b.do", "a|b@c.do", "`id`@b.do", "a`b@c.do", "a@b.do|x", "$(id)@b.do", "a[x]@b.do",
		// domains
		"a@[127.0.0.1]", "a@[IPv6:::1]", "a@127.0.0.1", "a@1.2.3.4", "a@b.1", "a@b.12", "a@b.c", "a@localhost", "a@.b.do", "a@b..do", "a@b.do.", "a@-b.do", "a@b-.do",
		"a@b.-do", "a@b.do-", "a@b_c.do", "a@b+c.do", "a@b.do/x", "a@b.do:25", "a@b.do?x=1", "a@b.do#x", "a@b%2edo", "a@b.d o", "a@*.do", "a@b.d~",
		// dots
		".a@b.do", "a.@b.do", "a..b@c.do", ".@b.do", "..@b.do",
		// other alphabets, look-alikes, invisible and broken characters
		"ñ@b.do", "a@ñandú.do", "а@b.do", "a@bа.do", "a＠b.do", "a@b。do", "a@b．do", "a\u200b@b.do", "a@b.do\u200b", "\ufeffa@b.do", "a\u202e@b.do", "a\u00a0@b.do",
		"a\x00@b.do", "a@b.do\x00", "a\x7f@b.do", "a\x1b[31m@b.do", "a\xff@b.do", "a@b.\xff\xfe", "a\u2028@b.do", "\u0130@b.do", "\u212a@b.do", "\u017f@b.do",
		// lengths
		long + "@b.do", "a@" + strings.Repeat("b", 64) + ".do", "a@" + strings.Repeat("abcdefg.", 31) + "dunos", "a@" + strings.Repeat("b", 1<<20) + ".do",
		strings.Repeat("a.", 1<<16) + "a@b.do", strings.Repeat("@", 1<<16), strings.Repeat("a@b.do,", 1<<12),
	}
}

func TestS9_EmailGrammar(t *testing.T) {
	for _, text := range goodEmails() {
		email, err := ParseEmail(text)
		if err != nil || email.String() != strings.ToLower(text) || email.IsZero() {
			t.Errorf("ParseEmail(%q) = %q, %v", text, email, err)
		}
		if masked := email.ID().String(); len(masked) > 0 && strings.Contains(masked, "@"+email.lower[strings.IndexByte(email.lower, '@')+1:]) {
			t.Errorf("%q masked is %q", text, masked)
		}
	}
	hostile := hostileEmails()
	for _, text := range hostile {
		email, err := ParseEmail(text)
		if !errors.Is(err, ErrEmail) || !email.IsZero() || email.ID().String() != "" {
			t.Errorf("ParseEmail(%.60q) = %q, %v", text, email, err)
		}
	}
	t.Logf("%d good, %d hostile addresses", len(goodEmails()), len(hostile))
	if len(hostile)+len(goodEmails()) < 100 {
		t.Error("too few")
	}
}

// TestS9_EachByteOfAnEmail tries every byte in each part of an address.
func TestS9_EachByteOfAnEmail(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for c := range 256 {
		b := string([]byte{byte(c)})
		for text, want := range map[string]bool{
			"a" + b + "z@b.do":  strings.Contains(letters+"#$&'*+-/=?^_{}~.", b),
			"a@b" + b + "c.do":  strings.Contains(letters+"-.", b),
			"a@b.d" + b + "x":   strings.Contains(letters+"-", b),
			"a@b.1" + b:         strings.Contains(letters[:52], b),
			"a@" + b + "b.do":   strings.Contains(letters, b),
			"a@b" + b + ".do":   strings.Contains(letters, b),
			b + "@example.do":   strings.Contains(letters+"#$&'*+-/=?^_{}~", b),
			"a@example.do" + b:  strings.Contains(letters, b),
			"a@b.do" + b + ".x": false,
		} {
			if _, err := ParseEmail(text); (err == nil) != want {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

func TestEmailID_KeepsItsParts(t *testing.T) {
	email, err := ParseEmail("Somebody@Example.Do")
	must(t, err)
	id := email.ID()
	if id.String() != "s…@….do" {
		t.Errorf("masked %q", id)
	}
	if again := NewEmailID(id.Digest(), id.String()); again != id || again.IsZero() || id.Digest() != Digest(sha256.Sum256([]byte("somebody@example.do"))) {
		t.Errorf("%v is kept as %v", id, again)
	}
	if !(EmailID{}).IsZero() || !(Email{}).IsZero() || email.IsZero() || !(Email{}).ID().IsZero() {
		t.Error("no address is an address, or the other way round")
	}
}

func FuzzParseEmail(f *testing.F) {
	for _, text := range append(goodEmails(), hostileEmails()...) {
		if len(text) < 1000 {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		email, err := ParseEmail(text)
		if err != nil {
			return
		}
		parsed, err := mail.ParseAddress(text)
		if err != nil || parsed.Address != text || parsed.Name != "" || parsed.String() != "<"+text+">" {
			t.Errorf("ParseEmail(%q) accepts what net/mail reads as %v, %v", text, parsed, err)
		}
		if list, err := mail.ParseAddressList(text); err != nil || len(list) != 1 {
			t.Errorf("%q are %d addresses: %v", text, len(list), err)
		}
		if again, err := ParseEmail(email.String()); err != nil || again != email {
			t.Errorf("%q reads back as %q, %v", email, again, err)
		}
		if len(text) > 254 || strings.Count(text, "@") != 1 || strings.ContainsAny(text, " \t\r\n<>()[],;:\\\"%!|`") {
			t.Errorf("accepted %q", text)
		}
	})
}
