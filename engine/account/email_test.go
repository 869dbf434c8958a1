package account

import (
	"crypto/sha256"
	"errors"
	"net/mail"
	"strings"
	"testing"
)

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
