package apitest

import (
	"sync"

	"github.com/tasard/tasard/engine"
)

// letters is the mailer of a node in a test: it keeps the newest letter to each address.
type letters struct {
	mu    sync.Mutex
	codes map[engine.Email]engine.Secret
}

// Send is actors.Mailer.
func (l *letters) Send(letter engine.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.codes == nil {
		l.codes = map[engine.Email]engine.Secret{}
	}
	l.codes[letter.To] = letter.Code
	return nil
}

func (l *letters) code(to engine.Email) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	code, found := l.codes[to]
	return code.Reveal(), found
}
