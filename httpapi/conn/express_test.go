package conn

import (
	"errors"
	"net"
	"strings"
	"testing"
)

// expressConn is a connection whose server has answered a request already, and its client.
func expressConn(t *testing.T, express Express) (c *Conn, client net.Conn) {
	t.Helper()
	ln := Listen(listen(t), Config{MaxConns: 1, Express: express})
	t.Cleanup(func() { ln.Close() })
	client = dial(t, ln.Addr().String())
	c = must(ln.Accept()).(*Conn)
	t.Cleanup(func() { c.Close() })
	c.RequestArrived()
	return c, client
}

// TestO1_ExpressIsNotCutOff: a connection that is closed while Express runs is closed after the response.
func TestO1_ExpressIsNotCutOff(t *testing.T) {
	c, client := expressConn(t, func(c *Conn, read []byte) (int, error) {
		ok(t, c.Close()) // as a stop does, which takes the connection for idle
		_, err := c.Write([]byte("answer"))
		return len(read), err
	})
	write(t, client, framingGet)
	if n, err := c.Read(make([]byte, 1024)); n > 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("the server reads %d bytes: %v", n, err)
	}
	answer := make([]byte, 64)
	if n, _ := client.Read(answer); string(answer[:n]) != "answer" {
		t.Errorf("the client got %q", answer[:n])
	}
	if n, err := client.Read(answer); err == nil {
		t.Errorf("the connection goes on: %q", answer[:n])
	}
}

// TestExpress_StepsAside: what the express path does not answer the server reads, from where it begins.
func TestExpress_StepsAside(t *testing.T) {
	offered := 0
	c, client := expressConn(t, func(_ *Conn, read []byte) (used int, err error) {
		offered++
		for strings.HasPrefix(string(read[used:]), framingGet) {
			used += len(framingGet)
		}
		return used, nil
	})
	const post = "POST / HTTP/1.1\r\n\r\n"
	buffer := make([]byte, 1024)
	for _, one := range []struct{ sent, read string }{
		{post, post},
		{framingGet + post, post},
		{framingGet + framingGet + "GET / HTTP/1.1\r\nHost", "GET / HTTP/1.1\r\nHost"},
		{": a\r\n\r\n", ": a\r\n\r\n"}, // the rest of a request that the server has begun
	} {
		write(t, client, one.sent)
		if n, err := c.Read(buffer); err != nil || string(buffer[:n]) != one.read {
			t.Errorf("of %q the server reads %q, want %q: %v", one.sent, buffer[:n], one.read, err)
		}
		if strings.HasSuffix(one.read, "\r\n\r\n") {
			c.BeginRequest(len(one.read)) // the server has parsed the request
		}
	}
	if offered != 3 {
		t.Errorf("%d reads were offered, want 3", offered)
	}
}
