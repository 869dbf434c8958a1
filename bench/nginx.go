//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/valyala/fasthttp"
)

// nginxConfig is what an engineer would write who wants a file served fast: no log, descriptors kept open, connections too. It takes the
// user, the directory, the address, the path, the type and the encoding.
const nginxConfig = `daemon off;
worker_processes 1;
%[1]spid %[2]s/nginx.pid;
error_log stderr error;
events {
	worker_connections 4096;
}
http {
	access_log off;
	server_tokens off;
	sendfile on;
	tcp_nopush on;
	keepalive_timeout 1h;
	keepalive_requests 1000000000;
	open_file_cache max=1000 inactive=1h;
	open_file_cache_valid 1h;
	client_body_temp_path %[2]s/body;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	types {}
	server {
		listen %[3]s;
		location = "%[4]s" {
			alias "%[2]s/body.json";
			default_type "%[5]s";
			add_header Content-Encoding "%[6]s"; # an empty one is not sent
		}
	}
}
`

// startNginx runs nginx with the body of the node's answer to a question as a file: what a site would do that wrote its answers out
// beforehand. It does not read the query, asks for no key, counts no client and sends few headers.
func startNginx(ctx context.Context, node *server, key string, q *requestTemplate, core int) (*server, error) {
	path, err := exec.LookPath("nginx")
	if err != nil { // Debian puts it where not every PATH looks
		if path, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, &missingError{"nginx", "it is not installed (Debian: nginx-light)"}
		}
	}
	_, response, err := node.capture(ctx, key, q)
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "tasard-bench-nginx-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for nginx: %w", err)
	}
	s := &server{name: "nginx", scratchDir: scratch}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root root;\n" // root's files are for root, so its worker stays root
	}
	s.address, err = freeAddress()
	location, _, _ := strings.Cut(q.path, "?")
	config := fmt.Sprintf(nginxConfig, user, scratch, s.address, location, response.Header.ContentType(),
		response.Header.Peek(fasthttp.HeaderContentEncoding))
	file := filepath.Join(scratch, "nginx.conf")
	err = errors.Join(err, os.WriteFile(file, []byte(config), 0o600), os.WriteFile(filepath.Join(scratch, "body.json"), response.Body(), 0o600))
	if err != nil {
		s.kill()
		return nil, fmt.Errorf("configure nginx: %w", err)
	}
	return s, s.start(ctx, &command{name: "nginx", argv: []string{path, "-e", "stderr", "-p", scratch, "-c", file}}, core, "")
}

// freeAddress is a port on which nothing listens.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("look for a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
