package cmd

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// answerStopMax is how long calls under way may take at the end.
const answerStopMax = 15 * time.Second

// answer serves what is beside a node, such as the buttons of the mock, until ctx ends; then calls under way finish.
func answer(ctx context.Context, server *http.Server, listener net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return exit.Fail(exit.FailStop, "answer on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerStopMax)
	defer cancel()
	err := server.Shutdown(stop)
	if over := <-ended; !errors.Is(over, http.ErrServerClosed) {
		err = errors.Join(err, over)
	}
	return err
}
