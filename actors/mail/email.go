package mail

import (
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	netmail "net/mail"
	"strings"
	"sync"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/tasard/tasard/engine/account"
)

const subject = "Su código de tasard / Your tasard code"

// The text of the email. compose replaces $CODE by the code.
var (
	//go:embed email.txt
	plainText string
	//go:embed email.html
	htmlText string
)

// compose builds the message for the library go-mail. It sets the addresses without go-mail's parser, which accepts
// more addresses than account.ParseEmail.
func compose(mail account.LoginMail, date time.Time, config Config) (*gomail.Msg, error) {
	var random [16]byte
	if _, err := io.ReadFull(config.Random, random[:]); err != nil {
		return nil, fmt.Errorf("make a Message-ID: %w", err)
	}
	id := hex.EncodeToString(random[:])
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent(), gomail.WithEncoding(gomail.EncodingQP), gomail.WithBoundary(id))
	m.SetAddrHeaderFromMailAddress(gomail.HeaderFrom, &netmail.Address{Name: "tasard", Address: config.From.String()})
	m.SetAddrHeaderFromMailAddress(gomail.HeaderTo, &netmail.Address{Address: mail.To.String()})
	m.Subject(subject)
	m.SetDateWithValue(date.UTC())
	m.SetMessageIDWithValue(id + "@" + config.domain())
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: prevents vacation notices
	m.SetGenHeader("Content-Language", "es, en")
	code := mail.Code.Reveal()
	m.SetBodyString(gomail.TypeTextPlain, strings.ReplaceAll(plainText, "$CODE", code))
	m.AddAlternativeString(gomail.TypeTextHTML, strings.ReplaceAll(htmlText, "$CODE", code))
	return m, nil
}

// LogMailer sends no emails: it writes each address and code as a line of text. Danger: a reader of these lines can
// sign in as any user. Use it only for development. A node that requires API keys must not use it.
type LogMailer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewLogMailer returns a LogMailer that writes to w.
func NewLogMailer(w io.Writer) *LogMailer { return &LogMailer{w: w} }

// Send writes a line for an email. The error wraps that of the writer.
func (l *LogMailer) Send(mail account.LoginMail) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := fmt.Fprintf(l.w, "mail to=%s code=%s expires=%s\n", mail.To, mail.Code.Reveal(), mail.Expires.UTC().Format(time.RFC3339))
	if err != nil {
		return fmt.Errorf("write the email: %w", err)
	}
	return nil
}
