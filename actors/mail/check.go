package mail

import (
	"context"
	"errors"
	"fmt"
)

// Check does what a letter would need, without a letter: it connects, protects the connection, logs in where there is a user, and takes
// leave. The error says how far it came, and repeats nothing that the server said after its certificate.
func Check(ctx context.Context, config Config) error {
	config, err := config.complete()
	if err != nil {
		return err
	}
	server, err := newServer(config)
	if err != nil {
		return err
	}
	line, failed := server.connect(ctx)
	if failed != nil {
		return failed.describe()
	}
	line.quit(ctx)
	return nil
}

// describe is a failure in words for an operator.
func (f *failure) describe() error {
	text := "at " + string(f.stage)
	if f.code != 0 {
		text += fmt.Sprintf(": the server answers %d", f.code)
	}
	if f.timeout {
		text += ": no answer in time"
	}
	if f.detail != "" {
		text += ": " + f.detail
	}
	return errors.New(text)
}
