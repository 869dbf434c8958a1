package mail

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// LogMailer sends no emails: it writes each address and code as a line of text. Danger: a reader of these lines can
// sign in as any user. Use it only for development. A node that requires API keys must not use it.
type LogMailer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewLogMailer returns a LogMailer that writes to w.
func NewLogMailer(w io.Writer) *LogMailer { return &LogMailer{w: w} }

// Send writes a line for an email. The error is ErrInvalidMail, or wraps the error of the writer.
func (l *LogMailer) Send(mail account.LoginMail) error {
	if err := checkMail(mail); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := fmt.Fprintf(l.w, "mail to=%s code=%s expires=%s\n", mail.To, mail.Code.Reveal(), mail.Expires.UTC().Format(time.RFC3339))
	if err != nil {
		return fmt.Errorf("write the email: %w", err)
	}
	return nil
}
