package mail

import (
	"context"
	"errors"
	"fmt"
)

// Check connects to the mail server, logs in, asks whether it accepts the sender, and disconnects without an email. The
// error names the step that failed. It contains no text of the server's SMTP replies.
func Check(ctx context.Context, config Config) error {
	config, err := config.complete()
	if err != nil {
		return err
	}
	server, err := newDialer(config)
	if err != nil {
		return err
	}
	sess, fail := server.connect(ctx)
	if fail != nil {
		return fail.operatorError()
	}
	defer sess.quit(ctx)
	defer closeOnDone(ctx, sess.conn)()
	if err := sess.client.Mail("<" + config.From.String() + ">"); err != nil {
		return newFailure(ctx, stageSender, err).operatorError()
	}
	return nil
}

func (f *failure) operatorError() error {
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
