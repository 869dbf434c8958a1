package apitest

import (
	"sync"

	"github.com/tasard/tasard/engine/account"
)

// codeMailer keeps the newest login code of each e-mail address instead of sending e-mails.
type codeMailer struct {
	mu    sync.Mutex
	codes map[account.Email]account.Secret
}

// Send implements actors.Mailer.
func (m *codeMailer) Send(mail account.LoginMail) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.codes == nil {
		m.codes = map[account.Email]account.Secret{}
	}
	m.codes[mail.To] = mail.Code
	return nil
}

func (m *codeMailer) code(to account.Email) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	code, ok := m.codes[to]
	return code.Reveal(), ok
}
