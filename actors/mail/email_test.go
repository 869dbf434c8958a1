package mail

import (
	"bytes"
	"flag"
	"fmt"
	netmail "net/mail"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/engine/account"
)

const golden = "testdata/email.golden"

var update = flag.Bool("update", false, "rewrite the golden files")

func render(t testing.TB, mail account.LoginMail) []byte {
	t.Helper()
	date := time.Date(2026, 9, 17, 13, 5, 9, 0, time.FixedZone("", -4*3600))
	message, err := compose(mail, date, Config{From: email(t, "no-reply@tasard.example"), Random: seeded(1)})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := message.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// TestS9_MailGolden checks the text of the email: the request, no link and no image, Spanish first.
func TestS9_MailGolden(t *testing.T) {
	text := render(t, mailTo(t, "ana.perez@example.do", "01234567"))
	if bare := strings.NewReplacer("\r\n", "").Replace(string(text)); strings.ContainsAny(bare, "\r\n") {
		t.Error("a line does not end with CRLF")
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	if *update {
		if err := os.WriteFile(golden, text, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, want) {
		t.Errorf("the email changed; if it should, run go test ./actors/mail -run Golden -update\n%s", text)
	}
}

// TestS9_HostileAddresses parses 500 addresses; an email to each that is valid arrives with one recipient and
// unchanged headers.
func TestS9_HostileAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestMailer(t, &smtpServer{}, nil)
		var passed []string
		addresses := hostileAddresses()
		for _, text := range addresses {
			to, err := account.ParseEmail(text)
			if err != nil || slices.Contains(passed, to.String()) {
				continue
			}
			passed = append(passed, to.String())
			if err := b.Send(account.LoginMail{To: to, Code: account.SecretOf(codeOf(len(passed))), Expires: clock().Add(time.Minute)}); err != nil {
				t.Fatal(err)
			}
		}
		settleAfter(time.Second)
		mails := b.server.receivedMails()
		t.Logf("%d addresses, %d pass the grammar, %d emails arrived", len(addresses), len(passed), len(mails))
		if len(addresses) < 500 || len(passed) < 30 || len(mails) != len(passed) {
			t.Fatalf("want 500 addresses, 30 that pass, and an email for each of these")
		}
		for i, mail := range mails {
			if !slices.Equal(mail.to, passed[i:i+1]) || mail.from != "no-reply@tasard.example" {
				t.Errorf("%q: sent from %q to %q", passed[i], mail.from, mail.to)
			}
			for _, problem := range mailProblems(mail.text, passed[i], codeOf(i+1)) {
				t.Errorf("%q: %s", passed[i], problem)
			}
		}
		for _, command := range []string{"MAIL FROM:<no-reply@tasard.example>", "RCPT TO:<", "DATA\r\n"} {
			if got := strings.Count(b.pipes.written(), "\r\n"+command); got != len(passed) {
				t.Errorf("%q was said %d times, want %d", command, got, len(passed))
			}
		}
	})
}

func codeOf(n int) string { return fmt.Sprintf("%08d", n) }

// hostileAddresses combines odd local parts with odd domains.
func hostileAddresses() []string {
	locals := []string{
		"ana", "ana\r\nBcc: eva@evil.example\r\n", "ana>\r\nRCPT TO:<eva@evil.example", "ana\n", "\rana", "ana\x00", "ana%0d%0aBcc", "\"ana\\\r\nx\"",
		"\"@evil.example\"", "\"a b\"", "a b", "a,b", "a;b", "<ana", "ana> SIZE=1", "(c)ana", "ana(c)", "a..b", ".ana", "ana.", "=?utf-8?q?=0d=0aBcc:_x?=",
		"!#$&'*+-/=?^_{|}~", "-ana", "'ana'", "{ana}", "$(id)", "|sh", "ana\u2028x", "añá", "ana\u00a0", "ANA.Perez+x", strings.Repeat("x", 64), strings.Repeat("x", 65), "=?x?b?",
		"--", "&", "ana`id`", "ana\\", "ana@evil.example,eva", "",
	}
	domains := []string{
		"b.do", "b.do\r\nBcc: eva@evil.example", "b.do>\r\nDATA", "b.do> NOTIFY=NEVER", "[127.0.0.1]", "b", "b.do.", "-b.do", "b_.do", "xn--bcher-kva.example",
		"bücher.example", "evil.example@b.do", strings.Repeat(strings.Repeat("d", 60)+".", 3) + "example.do", "b.do\x00", "A-1.Sub.EXAMPLE.do",
	}
	var out []string
	for _, domain := range domains {
		for _, local := range locals {
			out = append(out, local+"@"+domain)
		}
	}
	return out
}

// The parts in which good emails differ: some headers, and the boundary.
var (
	varying   = regexp.MustCompile(`(?m)^(Date|Message-ID|To):.*\n(?: .*\n)*`)
	separator = regexp.MustCompile(`boundary="?([^"\s]+)`)
)

// common returns the text without them.
func common(text string) string {
	text = varying.ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), "$1\n")
	if found := separator.FindStringSubmatch(text); found != nil {
		text = strings.ReplaceAll(text, found[1], "BOUNDARY")
	}
	return text
}

// mailProblems compares a message with the golden one for an address and a code.
func mailProblems(text []byte, to, code string) (problems []string) {
	message, err := netmail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return []string{"unreadable: " + err.Error()}
	}
	if got := message.Header.Get("To"); got != "<"+to+">" {
		problems = append(problems, fmt.Sprintf("To is %q", got))
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		return []string{err.Error()}
	}
	if strings.TrimSpace(common(string(text))) != strings.TrimSpace(strings.ReplaceAll(common(string(want)), testCode, code)) {
		problems = append(problems, "it differs from the golden email")
	}
	return problems
}

// TestS9_ControlMailProblems plants what mailProblems must find.
func TestS9_ControlMailProblems(t *testing.T) {
	good := string(render(t, mailTo(t, "ana@example.do", "01234567")))
	for _, tt := range []struct{ name, old, new string }{
		{"a header of another person", "To: <ana", "Bcc: <eva@evil.example>\r\nTo: <ana"},
		{"a second recipient", "<ana@example.do>", "<ana@example.do>, <eva@evil.example>"},
		{"the code in the subject", "Subject: ", "Subject: 01234567 "},
		{"the code in a header", "Auto-Submitted: auto-generated", "Auto-Submitted: 01234567"},
		{"words of another person", "Someone asked", "Eva asked"},
		{"a link", "</body>", "<a href=3D\"https://evil.example\">x</a></body>"},
	} {
		bad := strings.ReplaceAll(good, tt.old, tt.new)
		if bad == good || len(mailProblems([]byte(bad), "ana@example.do", "01234567")) == 0 {
			t.Errorf("%s is not reported", tt.name)
		}
	}
}
