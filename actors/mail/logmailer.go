package mail

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// LogMailer sends nothing: it writes each letter's address and code, readable, as one line. Danger: whoever reads the lines can
// sign in as anybody. For development only; a node that requires keys must refuse it.
type LogMailer struct {
	mu  sync.Mutex
	out io.Writer
}

// NewLogMailer makes a LogMailer that writes to the given writer.
func NewLogMailer(to io.Writer) *LogMailer { return &LogMailer{out: to} }

// Send writes the line. The error is ErrInvalidMail or the writer's.
func (l *LogMailer) Send(letter account.LoginMail) error {
	if err := checkMail(letter); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := fmt.Fprintf(l.out, "mail to=%s code=%s expires=%s\n", letter.To, letter.Code.Reveal(), letter.Expires.UTC().Format(time.RFC3339))
	if err != nil {
		return fmt.Errorf("write the letter: %w", err)
	}
	return nil
}
