//go:build faults

package faults

import (
	"io"
	"net"
	"net/textproto"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// postOffice is a mail server on this machine that keeps the newest code of each address.
type postOffice struct {
	address string
	serving sync.WaitGroup

	mu    sync.Mutex
	open  map[net.Conn]bool
	codes map[string]string
	more  chan struct{} // closed and replaced with each letter
}

// newPostOffice serves until the test ends.
func newPostOffice(t *testing.T) *postOffice {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &postOffice{
		address: listener.Addr().String(), open: map[net.Conn]bool{}, codes: map[string]string{}, more: make(chan struct{}),
	}
	p.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.serving.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for conn := range p.open {
			_ = conn.Close()
		}
		p.mu.Unlock()
		p.serving.Wait()
	})
	return p
}

// args let a node send its letters here.
func (p *postOffice) args() []string {
	return []string{"--smtp-addr", p.address, "--smtp-tls", "off", "--mail-from", "no-reply@tasard.example"}
}

// serve speaks as much of RFC 5321 as a client needs who does everything right.
func (p *postOffice) serve(conn net.Conn) {
	p.mu.Lock()
	p.open[conn] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, conn)
		_ = conn.Close()
	}()
	dialog, to := textproto.NewConn(conn), ""
	for err := dialog.PrintfLine("220 127.0.0.1"); err == nil; {
		var line string
		if line, err = dialog.ReadLine(); err != nil {
			return
		}
		switch verb, rest, _ := strings.Cut(line, " "); strings.ToUpper(verb) {
		case "RCPT":
			_, rest, _ = strings.Cut(rest, "<")
			to, _, _ = strings.Cut(rest, ">")
			err = dialog.PrintfLine("250 good")
		case "DATA":
			if err = dialog.PrintfLine("354 go on"); err == nil {
				err = p.take(dialog, to)
			}
		case "QUIT":
			_ = dialog.PrintfLine("221 bye") // the client may be gone
			return
		default:
			err = dialog.PrintfLine("250 good")
		}
	}
}

// take keeps the code of a letter: eight digits that stand alone.
func (p *postOffice) take(dialog *textproto.Conn, to string) error {
	text, err := io.ReadAll(dialog.DotReader())
	if err != nil {
		return err
	}
	_, plain, _ := strings.Cut(string(text), "\n\n")
	p.mu.Lock()
	p.codes[to] = regexp.MustCompile(`\b\d{8}\b`).FindString(plain)
	close(p.more)
	p.more = make(chan struct{})
	p.mu.Unlock()
	return dialog.PrintfLine("250 good")
}

// code waits for a code for an address and takes it; false when none comes.
func (p *postOffice) code(email string) (string, bool) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		p.mu.Lock()
		code, more := p.codes[email], p.more
		delete(p.codes, email)
		p.mu.Unlock()
		if code != "" {
			return code, true
		}
		select {
		case <-more:
		case <-deadline.C:
			return "", false
		}
	}
}
