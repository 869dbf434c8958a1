package mail

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// Log sends nothing: it writes each letter's address and code, readable, as one line. Danger: whoever reads the lines can
// sign in as anybody. For development only; a node that requires keys must refuse it.
type Log struct {
	mu sync.Mutex
	to io.Writer
}

// NewLog makes a Log that writes to the given writer.
func NewLog(to io.Writer) *Log { return &Log{to: to} }

// Send writes the line. The error is ErrLetter or the writer's.
func (l *Log) Send(letter account.Letter) error {
	if err := checkLetter(letter); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := fmt.Fprintf(l.to, "mail to=%s code=%s expires=%s\n", letter.To, letter.Code.Reveal(), letter.Expires.UTC().Format(time.RFC3339))
	if err != nil {
		return fmt.Errorf("write the letter: %w", err)
	}
	return nil
}
