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

// nginxConfig configures nginx with one server, without an access log. Its formatting verbs are: the user directive,
// the directory, the directives of the http block, the address, and the directives of the server block.
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
	%[3]s
	keepalive_timeout 1h;
	keepalive_requests 1000000000;
	client_body_temp_path %[2]s/body;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	types {}
	server {
		listen %[4]s;
		%[5]s
	}
}
`

// nginxFile are directives of the server block for one file. Its formatting verbs are: directory, path, content type
// and content encoding.
const nginxFile = `location = "%[2]s" {
			alias "%[1]s/body.json";
			default_type "%[3]s";
			add_header Content-Encoding "%[4]s"; # an empty one is not sent
		}`

// nginxCache and nginxProxy are directives of the http and the server block for a cache in front of a node. They are
// those of docs/performance.md. Their formatting verbs are the directory, and the address of the node.
const (
	nginxCache = `proxy_cache_path %[1]s/cache keys_zone=rates:10m max_size=100m;
	upstream node {
		server %[2]s;
		keepalive 32;
	}`
	nginxProxy = `location / {
			proxy_pass http://node;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $host;
			proxy_cache rates;
			proxy_cache_lock on;
			proxy_cache_revalidate on;
			proxy_cache_background_update on;
			proxy_cache_use_stale updating;
		}`
)

// Directives of nginx for sending files: those that are common, and those that are fastest for a small file. The common
// ones, sendfile and tcp_nopush, cost two more system calls for each response.
const (
	nginxCommon = "sendfile on; tcp_nopush on;"
	nginxTuned  = "sendfile off; open_file_cache max=1000 inactive=1h; open_file_cache_valid 1h;"
)

// startNginx runs nginx, which serves the body of the node's response as a static file. nginx ignores the query,
// checks neither keys nor quotas, and sends fewer header fields than the node.
func startNginx(ctx context.Context, node *server, key string, q *requestTemplate, tuned bool, core int) (*server, error) {
	_, response, err := node.capture(ctx, key, q)
	if err != nil {
		return nil, err
	}
	name, sendSettings := nginxName, nginxCommon
	if tuned {
		name, sendSettings = nginxTunedName, nginxTuned
	}
	location, _, _ := strings.Cut(q.path, "?")
	return runNginx(ctx, name, core, func(dir string) (http, server string, err error) {
		file := fmt.Sprintf(nginxFile, dir, location, response.Header.ContentType(), response.Header.Peek(fasthttp.HeaderContentEncoding))
		return sendSettings, file, os.WriteFile(filepath.Join(dir, "body.json"), response.Body(), 0o600)
	})
}

// startNginxCache runs nginx as a cache in front of a node.
func startNginxCache(ctx context.Context, node *server, core int) (*server, error) {
	return runNginx(ctx, nginxCacheName, core, func(dir string) (http, server string, err error) {
		return nginxCommon + "\n\t" + fmt.Sprintf(nginxCache, dir, node.address), nginxProxy, nil
	})
}

// runNginx starts nginx. configure returns the directives of the http block and the server block, and creates their
// files in the scratch directory.
func runNginx(ctx context.Context, name string, core int, configure func(dir string) (http, server string, err error)) (*server, error) {
	path, err := exec.LookPath("nginx")
	if err != nil { // Debian installs nginx there, which may be missing in PATH
		if path, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, &missingError{nginxName, "it is not installed (Debian: nginx-light)"}
		}
	}
	scratch, err := os.MkdirTemp("", "tasard-bench-nginx-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for nginx: %w", err)
	}
	s, user := &server{name: name, scratchDir: scratch}, ""
	if os.Geteuid() == 0 {
		user = "user root root;\n" // otherwise nginx's worker could not read files of root
	}
	httpBlock, serverBlock, err := configure(scratch)
	if err == nil {
		s.address, err = freeAddress()
	}
	file := filepath.Join(scratch, "nginx.conf")
	config := fmt.Sprintf(nginxConfig, user, scratch, httpBlock, s.address, serverBlock)
	if err = errors.Join(err, os.WriteFile(file, []byte(config), 0o600)); err != nil {
		s.kill()
		return nil, fmt.Errorf("configure nginx: %w", err)
	}
	return s, s.start(ctx, &command{name: nginxName, argv: []string{path, "-e", "stderr", "-p", scratch, "-c", file}}, core, "")
}

// freeAddress returns a loopback address with a free port.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("look for a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
