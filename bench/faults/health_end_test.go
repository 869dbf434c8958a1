//go:build faults

package faults

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFaultsS15_FailStopShows lets a sync fail: /readyz is unavailable, or gone, within a second, and the process leaves with 70.
func TestFaultsS15_FailStopShows(t *testing.T) {
	needRoot(t)
	need(t, "strace", "strace")
	n, keys := prepared(t, 1, "--lease", "1")
	watch := watchHealth(t, n)
	traced(t, n, "fsync,fdatasync:error=EIO")
	began := time.Now()
	stop := load(n, 1, keys, "/v1/rates/best?currency=USD&operation=buy")
	took, in := watch.first(began, comesMax, func(l look) bool {
		return l.status == 0 || l.status == http.StatusServiceUnavailable && l.states["log"] == "failed"
	})
	code := n.end()
	ended := time.Since(began)
	stop()
	if !in || code != 70 {
		t.Errorf("it shows within %s: %t, and ends with %d:\n%s", comesMax, in, code, n.tail(20))
	}
	if ended > 2*comesMax {
		t.Errorf("the process ends after %s", ended)
	}
	figure(t, "a failed sync: /readyz is unavailable or gone after %s, the process leaves with 70 after %s", took.Round(time.Millisecond), ended.Round(time.Millisecond))
}

// TestFaultsS15_DrainingShows stops a node while a request is under way: over a connection that is open, and at the management socket,
// /readyz sends callers elsewhere; /livez goes on.
func TestFaultsS15_DrainingShows(t *testing.T) {
	n, _ := prepared(t, 1)
	var lines []net.Conn
	for range 3 {
		line, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer line.Close()
		lines = append(lines, line)
	}
	const begun = "GET /readyz HTTP/1.1\r\nHost: node\r\n"
	for i, path := range []string{"/readyz", "/livez", "/readyz"} {
		if _, err := lines[i].Write([]byte(strings.Replace(begun, "/readyz", path, 1))); err != nil {
			t.Fatal(err)
		}
	}
	wait(200 * time.Millisecond) // so that they are under way
	admin := n.admin()
	defer admin.close()
	if l := lookOnce(admin, "http://node/readyz"); l.status != http.StatusOK {
		t.Fatalf("before: %+v", l)
	}
	n.send(syscall.SIGTERM)
	began := time.Now()
	shown := time.Duration(0)
	for time.Since(began) < comesMax && shown == 0 {
		if l := lookOnce(admin, "http://node/readyz"); l.states["server"] == "draining" && l.status == http.StatusServiceUnavailable {
			shown = time.Since(began)
		}
	}
	if shown == 0 {
		t.Errorf("nothing of a stop shows at the management socket within %s", comesMax)
	}
	for i, want := range []string{"503 Service Unavailable", "200 OK"} {
		if _, err := lines[i].Write([]byte("\r\n")); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 64)
		if count, err := lines[i].Read(text); err != nil || !strings.Contains(string(text[:count]), want) {
			t.Errorf("line %d: %q, %v; want %s", i, text[:count], err, want)
		}
	}
	_ = lines[2].Close()
	if code := n.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	figure(t, "a stop shows after %s while requests are under way", shown.Round(time.Millisecond))
}
