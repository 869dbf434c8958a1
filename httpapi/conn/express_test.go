package conn

import (
	"errors"
	"net"
	"testing"
)

// getRequest is a whole request in one read.
const getRequest = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

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

// TestO1_ExpressIsNotCutOff: a connection that a stop closes while the express path answers is closed behind the answer.
func TestO1_ExpressIsNotCutOff(t *testing.T) {
	c, client := expressConn(t, func(c *Conn, _ []byte) (bool, error) {
		ok(t, c.Close()) // as a stop does, which takes the connection for idle
		_, err := c.Write([]byte("answer"))
		return true, err
	})
	write(t, client, getRequest)
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

// TestExpress_StepsAside: what the express path does not answer the server reads, and so does what is not one whole GET.
func TestExpress_StepsAside(t *testing.T) {
	var seen []string
	c, client := expressConn(t, func(_ *Conn, request []byte) (bool, error) {
		seen = append(seen, string(request))
		return false, nil
	})
	buffer := make([]byte, 1024)
	for _, text := range []string{getRequest, "POST / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost"} {
		write(t, client, text)
		if n, err := c.Read(buffer); err != nil || string(buffer[:n]) != text {
			t.Errorf("the server reads %q, want %q: %v", buffer[:n], text, err)
		}
	}
	if len(seen) != 1 || seen[0] != getRequest {
		t.Errorf("the express path was offered %q", seen)
	}
}
