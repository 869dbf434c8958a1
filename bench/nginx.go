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
)

// nginxConfig configures nginx with one server and one file, without an access log. Its formatting verbs are: the user
// directive, the directory, the directives of the http block, the address, the path and the content type.
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
		location = "%[5]s" {
			alias "%[2]s/body.json";
			default_type "%[6]s";
		}
	}
}
`

// Directives of nginx for sending files: those that are common, and those that are fastest for a small file. The common
// ones, sendfile and tcp_nopush, cost two more system calls for each response.
const (
	nginxCommon = "sendfile on; tcp_nopush on;"
	nginxTuned  = "sendfile off; open_file_cache max=1000 inactive=1h; open_file_cache_valid 1h;"
)

// startNginx runs nginx, which serves the body of the node's response as a static file. nginx ignores the query,
// checks neither keys nor quotas, and sends fewer header fields than the node. dir is a directory for its files.
func startNginx(ctx context.Context, dir string, node *server, key string, q *requestTemplate, tuned bool) (*server, error) {
	path, err := exec.LookPath("nginx")
	if err != nil { // Debian's directory for nginx may be missing in PATH
		if path, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, &missingError{nginxName, "it is not installed (Debian: nginx-light)"}
		}
	}
	_, response, err := node.ask(ctx, q.request(key))
	if err != nil {
		return nil, err
	}
	s, name, settings, user := &server{}, nginxName, nginxCommon, ""
	if tuned {
		name, settings = nginxTunedName, nginxTuned
	}
	if os.Geteuid() == 0 {
		user = "user root root;\n" // otherwise nginx's worker could not read files of root
	}
	s.address, err = freeAddress()
	location, _, _ := strings.Cut(q.path, "?")
	file, config := filepath.Join(dir, "nginx.conf"), fmt.Sprintf(nginxConfig, user, dir, settings, s.address, location, response.Header.ContentType())
	if err = errors.Join(err, os.WriteFile(file, []byte(config), 0o600), os.WriteFile(filepath.Join(dir, "body.json"), response.Body(), 0o600)); err != nil {
		return nil, fmt.Errorf("configure nginx: %w", err)
	}
	return s, s.start(ctx, name, serverCore, path, "-e", "stderr", "-p", dir, "-c", file)
}

// freeAddress returns a loopback address with a free port.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("look for a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
