//go:build faults

package httpapi

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// proxyKind is a program that stands in front of a node. Its log has a line for each request: where it went, how
// that ended, the method.
type proxyKind struct {
	name, program string
	config        func(dir, socket, back string) string
	args          func(dir string) []string
	// fate reads the first two words of a line: whether anything went to the back, and whether the proxy, or the
	// client, broke off then.
	fate func(where, end string) (sent, brokenOff bool)
}

// proxyKinds keep their connections to the back and share them among clients, and pass bodies on as they come: what
// a smuggler hopes for.
func proxyKinds() []proxyKind {
	return []proxyKind{
		{
			name: "nginx", program: "nginx",
			config: func(dir, socket, back string) string {
				return fmt.Sprintf(`daemon off;
master_process off;
user root;
pid %[1]s/pid;
error_log %[1]s/errors;
events { worker_connections 256; }
http {
	log_format front "$upstream_bytes_sent $upstream_status $request_method";
	access_log %[1]s/log front;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxied;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	upstream back { server %[3]s; keepalive 4; }
	server {
		listen unix:%[2]s;
		location / {
			proxy_pass http://back;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $http_host;
			proxy_request_buffering off;
			proxy_next_upstream off;
			client_body_timeout 2s;
		}
	}
}
`, dir, socket, back)
			},
			args: func(dir string) []string {
				return []string{"-p", dir, "-c", filepath.Join(dir, "config"), "-e", filepath.Join(dir, "errors")}
			},
			fate: func(bytes, status string) (sent, brokenOff bool) { return bytes != "-" && bytes != "0", status == "-" },
		},
		{
			name: "haproxy", program: "haproxy",
			config: func(_, socket, back string) string {
				return fmt.Sprintf(`global
	log stdout format raw local0
	maxconn 256
defaults
	mode http
	log global
	log-format "%%s %%ts %%HM"
	timeout connect 2s
	timeout client 2s
	timeout server 2s
	retries 0
	http-reuse always
frontend front
	bind unix@%s
	default_backend back
backend back
	server back %s
`, socket, back)
			},
			args: func(dir string) []string { return []string{"-db", "-f", filepath.Join(dir, "config")} },
			fate: func(server, end string) (sent, brokenOff bool) {
				return server == "back", strings.ContainsAny(end[:1], "CP")
			},
		},
	}
}

type proxy struct {
	proxyKind
	socket, log string
}

// proxyPatience bounds the wait for a proxy to start, to end, or to have written its log.
const proxyPatience = 10 * time.Second

// startProxy runs a proxy in front of back, in a directory of its own, until the test ends.
func startProxy(t *testing.T, kind proxyKind, back string) *proxy {
	t.Helper()
	if _, err := exec.LookPath(kind.program); err != nil {
		t.Skipf("NEEDS %s: apt-get install nginx-light haproxy", kind.program)
	}
	dir := must(os.MkdirTemp("", "front")) // the path of a socket must be short
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &proxy{kind, filepath.Join(dir, "front.sock"), filepath.Join(dir, "log")}
	ok(t, os.WriteFile(filepath.Join(dir, "config"), []byte(kind.config(dir, p.socket, back)), 0o600))
	log := must(os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))
	t.Cleanup(func() { _ = log.Close() })
	var complaints bytes.Buffer
	command := exec.Command(kind.program, kind.args(dir)...)
	command.Stdout, command.Stderr = log, &complaints
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	ok(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(proxyPatience, func() { _ = command.Process.Kill() })
		defer timer.Stop()
		_ = command.Wait()
	})
	for deadline := after(proxyPatience); ; bubbleSleep(time.Millisecond) {
		if conn, err := net.Dial("unix", p.socket); err == nil {
			_ = conn.Close()
			return p
		}
		if bubbleNow().After(deadline) {
			errors, _ := os.ReadFile(filepath.Join(dir, "errors"))
			t.Fatalf("%s does not start: %s%s", kind.name, complaints.String(), errors)
		}
	}
}

// present is what a proxy says that it has sent to the back: the methods of requests that were answered, and of
// those that broke off.
type sent struct{ whole, broken []string }

func (s sent) since(before sent) sent {
	return sent{s.whole[len(before.whole):], s.broken[len(before.broken):]}
}

// seen reads the log; logged counts every request in it, also those that went nowhere.
func (p *proxy) seen(t *testing.T) (all sent, logged int) {
	t.Helper()
	file := must(os.Open(p.log))
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Split(lines.Text(), " ")
		if len(words) != 3 {
			continue // what a program says when it starts
		}
		logged++
		method := strings.ReplaceAll(words[2], "#23", "#") // as haproxy writes it
		switch sent, broken := p.fate(words[0], words[1]); {
		case sent && broken:
			all.broken = append(all.broken, method)
		case sent:
			all.whole = append(all.whole, method)
		}
	}
	ok(t, lines.Err())
	return all, logged
}
