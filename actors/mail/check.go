package mail

import (
	"context"
	"errors"
	"fmt"
)

// Check connects to the server, makes the connection secure, authenticates if there is a user, and quits. The error
// names the step that failed, and repeats nothing that the server sent after its certificate.
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

// describe returns a failure as an error for operators.
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
