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

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	codes    map[string]string
	more     chan struct{} // closed and replaced with each message
}

// newPostOffice serves on the loopback interface until the test ends.
func newPostOffice(t *testing.T) *postOffice {
	t.Helper()
	return newPostOfficeAt(t, "127.0.0.1")
}

// newPostOfficeAt serves at an address of this machine.
func newPostOfficeAt(t *testing.T, host string) *postOffice {
	t.Helper()
	p := &postOffice{
		address: net.JoinHostPort(host, "0"), conns: map[net.Conn]bool{}, codes: map[string]string{}, more: make(chan struct{}),
	}
	p.open(t)
	t.Cleanup(p.close)
	return p
}

// open serves, again after close.
func (p *postOffice) open(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		t.Error(err)
		return
	}
	p.mu.Lock()
	p.listener, p.address = listener, listener.Addr().String()
	p.mu.Unlock()
	p.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.serving.Go(func() { p.serve(conn) })
		}
	})
}

// close takes no connection any more.
func (p *postOffice) close() {
	p.mu.Lock()
	_ = p.listener.Close() // once more at the end of the test
	for conn := range p.conns {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.serving.Wait()
}

// args let a node send its mail here.
func (p *postOffice) args() []string {
	return []string{"--smtp-addr", p.address, "--smtp-tls", "off", "--mail-from", "no-reply@tasard.example"}
}

// serve speaks as much of RFC 5321 as a client needs who does everything right.
func (p *postOffice) serve(conn net.Conn) {
	p.mu.Lock()
	p.conns[conn] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, conn)
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

// take keeps the code of a message: eight digits that stand alone.
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

// code waits for a code for an address and takes it; "" when none comes.
func (p *postOffice) code(email string) string {
	deadline := time.NewTimer(codeMax)
	defer deadline.Stop()
	for {
		p.mu.Lock()
		code, more := p.codes[email], p.more
		delete(p.codes, email)
		p.mu.Unlock()
		if code != "" {
			return code
		}
		select {
		case <-more:
		case <-deadline.C:
			return ""
		}
	}
}
