package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// Input is an open input file.
type Input struct {
	io.ReadCloser        // nil for a named pipe, which is opened by the first read
	Name          string // name of the file, for messages
	Blocking      bool   // reads may block forever: a named pipe or standard input
}

// Close closes the file.
func (f *Input) Close() error {
	if f.ReadCloser == nil {
		return nil
	}
	return f.ReadCloser.Close()
}

// OpenInput opens an input file; "-" is standard input. It does not block: for a named pipe, only the first read opens
// it. Devices are refused, because some have no end.
func (p *Process) OpenInput(name string) (*Input, error) {
	if name == "-" || name == "/dev/stdin" {
		return &Input{ReadCloser: io.NopCloser(p.Stdin), Name: "stdin", Blocking: true}, nil
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Errorf(exit.NoInput, "%s: no such file", name)
	}
	switch {
	case err != nil:
	case info.Mode().Type() == fs.ModeNamedPipe:
		return &Input{Name: name, Blocking: true}, nil
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
	return &Input{ReadCloser: file, Name: name}, nil
}

// Reader returns a Reader for the contents of the file.
//
// If the file is Blocking, a goroutine opens and reads it, and reads of the returned Reader fail when ctx ends. The
// caller must end ctx after its final read. A goroutine that is blocked then cannot be stopped; it may run until the
// process exits.
func (f *Input) Reader(ctx context.Context) io.Reader {
	if !f.Blocking {
		return f
	}
	reader, writer := io.Pipe()
	context.AfterFunc(ctx, func() { _ = writer.CloseWithError(ctx.Err()) }) // cannot fail
	go func() { _ = writer.CloseWithError(f.copyTo(writer)) }()             // CloseWithError(nil) means io.EOF
	return reader
}

func (f *Input) copyTo(out io.Writer) error {
	var in io.Reader = f.ReadCloser
	if f.ReadCloser == nil {
		pipe, err := os.Open(f.Name)
		if err != nil {
			return exit.Errorf(exit.NoInput, "read observations: %w", err)
		}
		defer func() { _ = pipe.Close() }() // nothing was written to it
		in = pipe
	}
	_, err := io.Copy(out, in)
	return err
}
