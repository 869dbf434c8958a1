package mail

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// LogMailer writes each email's address and code as a line instead of sending it. Danger: a reader of these lines can
// sign in as any user. For development only; a node that requires keys must reject it.
type LogMailer struct {
	mu  sync.Mutex
	out io.Writer
}

// NewLogMailer returns a LogMailer that writes to a writer.
func NewLogMailer(to io.Writer) *LogMailer { return &LogMailer{out: to} }

// Send writes the line. The error is ErrInvalidMail or the writer's.
func (l *LogMailer) Send(mail account.LoginMail) error {
	if err := checkMail(mail); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := fmt.Fprintf(l.out, "mail to=%s code=%s expires=%s\n", mail.To, mail.Code.Reveal(), mail.Expires.UTC().Format(time.RFC3339))
	if err != nil {
		return fmt.Errorf("write the email: %w", err)
	}
	return nil
}
