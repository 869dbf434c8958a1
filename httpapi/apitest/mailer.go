package apitest

import (
	"sync"

	"github.com/tasard/tasard/engine/account"
)

// mailer is the mailer of a node in a test: it keeps the newest letter to each address.
type codeMailer struct {
	mu    sync.Mutex
	codes map[account.Email]account.Secret
}

// Send is actors.Mailer.
func (l *codeMailer) Send(letter account.LoginMail) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.codes == nil {
		l.codes = map[account.Email]account.Secret{}
	}
	l.codes[letter.To] = letter.Code
	return nil
}

func (l *codeMailer) code(to account.Email) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	code, found := l.codes[to]
	return code.Reveal(), found
}
