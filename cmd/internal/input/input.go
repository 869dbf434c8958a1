package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// File is an input file.
type File struct {
	io.ReadCloser        // nil for a named pipe, which is opened by the first read
	Name          string // for messages
	Size          int64  // bytes; 0 = unknown
	Blocking      bool   // reads may wait forever: a named pipe or stdin
}

// Close closes the file.
func (f *File) Close() error {
	if f.ReadCloser == nil {
		return nil
	}
	return f.ReadCloser.Close()
}

// Open opens an input file; "-" is stdin. It does not block, because a named pipe is opened by the first read. It
// refuses devices, some of which have no end.
func Open(name string, stdin io.Reader) (*File, error) {
	if name == "-" || name == "/dev/stdin" {
		return &File{ReadCloser: io.NopCloser(stdin), Name: "stdin", Blocking: true}, nil
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Errorf(exit.NoInput, "%s: no such file", name)
	}
	switch {
	case err != nil:
	case info.Mode().Type() == fs.ModeNamedPipe:
		return &File{Name: name, Blocking: true}, nil
	case info.IsDir():
		err = fmt.Errorf("%s is a directory; want a file", name)
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a file or pipe", name)
	}
	if err != nil {
		return nil, exit.Errorf(exit.NoInput, "read observations: %w", err)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, exit.Errorf(exit.NoInput, "read observations: %w", err)
	}
	return &File{ReadCloser: file, Name: name, Size: info.Size()}, nil
}

// Reader returns the content. Reads of a blocking file fail when ctx ends. A goroutine reads the file, so the caller
// must end ctx after the last read. A goroutine that waits for stdin can't be woken and may run until the process ends.
func (f *File) Reader(ctx context.Context) io.Reader {
	if !f.Blocking {
		return f
	}
	reader, writer := io.Pipe()
	context.AfterFunc(ctx, func() { _ = writer.CloseWithError(ctx.Err()) }) // CloseWithError never fails
	go func() { _ = writer.CloseWithError(f.copyTo(ctx, writer)) }()        // nil means io.EOF
	return reader
}

// copyTo copies the content to out.
func (f *File) copyTo(ctx context.Context, out io.Writer) error {
	var in io.Reader = f.ReadCloser
	if f.ReadCloser == nil {
		pipe, err := openPipe(ctx, f.Name)
		if err != nil {
			return exit.Errorf(exit.NoInput, "read observations: %w", err)
		}
		defer func() { _ = pipe.Close() }() // nothing was written to it
		stop := context.AfterFunc(ctx, func() { _ = pipe.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
		in = pipe
	}
	_, err := io.Copy(out, in)
	return err
}

// openPipe waits until the pipe has a writer. When ctx ends, it opens the other end itself, so that os.Open returns.
func openPipe(ctx context.Context, name string) (*os.File, error) {
	stop := context.AfterFunc(ctx, func() {
		if writer, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = writer.Close() // nothing was written to it
		}
	})
	defer stop()
	return os.Open(name)
}

// Failed returns a file whose Read fails with err.
func Failed(name string, err error) *File {
	return &File{ReadCloser: io.NopCloser(failedReader{err}), Name: name}
}

type failedReader struct{ err error }

// Read returns the error.
func (r failedReader) Read([]byte) (int, error) { return 0, r.err }
