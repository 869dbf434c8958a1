package cmd

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tasard/tasard/cmd/internal/terminal"
)

// readerPollMillis is the time in milliseconds between two looks at whether a command that waits for its reader has to
// end for another reason.
const readerPollMillis = 200

// withReader returns a context that ends when standard output is a pipe and its reader has ended. A mock that a test
// program has started thus ends with it, even if the test program was killed. The caller must call stop.
func withReader(ctx context.Context, stdout io.Writer) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	if w, ok := stdout.(*terminal.ErrWriter); ok {
		stdout = w.W
	}
	file, ok := stdout.(*os.File)
	if !ok {
		return ctx, cancel
	}
	if info, err := file.Stat(); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return ctx, cancel
	}
	var watcher sync.WaitGroup
	watcher.Go(func() {
		defer cancel()
		for ctx.Err() == nil {
			fds := []unix.PollFd{{Fd: int32(file.Fd())}} //nolint:gosec // G115: a descriptor; without events only an error ends the wait
			if _, err := unix.Poll(fds, readerPollMillis); err != nil && !errors.Is(err, unix.EINTR) || fds[0].Revents != 0 {
				return
			}
		}
	})
	return ctx, func() {
		cancel()
		watcher.Wait()
	}
}
