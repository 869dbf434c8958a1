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
	"syscall"
	"text/template"
	"time"

	"github.com/valyala/fasthttp"
)

// nginxTries is how often a port is looked for: another program may take it between the look and the start.
const nginxTries = 3

// nginxContender is nginx with the bodies of replies as files: what a site would do that wrote its answers out beforehand. It does
// not read the query, asks for no key, counts nobody and sends few headers.
type nginxContender struct {
	dir     string // empty, for its configuration and files
	replies []reply
	process *child
}

var _ contender = (*nginxContender)(nil)

func newNginx(dir string, replies []reply) *nginxContender {
	return &nginxContender{dir: dir, replies: replies}
}

func (n *nginxContender) name() string { return "nginx" }

func (n *nginxContender) missing() string {
	if nginxPath() == "" {
		return "nginx is not installed (Debian: nginx-light)"
	}
	return ""
}

// nginxPath is where Debian puts it, which is not in everybody's PATH.
func nginxPath() string {
	if path, err := exec.LookPath("nginx"); err == nil {
		return path
	}
	const debian = "/usr/sbin/nginx"
	if _, err := os.Stat(debian); err == nil {
		return debian
	}
	return ""
}

// start tries another port when one is taken meanwhile.
func (n *nginxContender) start(ctx context.Context, core int) (*target, error) {
	if why := n.missing(); why != "" {
		return nil, errors.New(why)
	}
	files, err := n.writeFiles()
	if err != nil {
		return nil, fmt.Errorf("start nginx: %w", err)
	}
	for range nginxTries {
		var found *target
		if found, err = n.startOnce(ctx, core, files); err == nil || ctx.Err() != nil {
			return found, err
		}
	}
	return nil, err
}

func (n *nginxContender) startOnce(ctx context.Context, core int, files []nginxFile) (*target, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(n.dir, "nginx.conf")
	if err := writeNginxConfig(config, nginxConfig{n.dir, address, os.Geteuid() == 0, files}); err != nil {
		return nil, err
	}
	n.process, err = spawn(&command{
		name: n.name(), program: program{path: nginxPath()}, args: []string{"-e", "stderr", "-p", n.dir, "-c", config},
		orphaned: syscall.SIGTERM, // its worker would outlive it otherwise
	}, core)
	if err != nil {
		return nil, err
	}
	if _, err := awaitAnswer(ctx, n.process, address, n.replies[0].request(), time.Now()); err != nil {
		killOf(&n.process)
		return nil, err
	}
	return &target{name: n.name(), address: address, processes: []int{n.process.pid()}}, nil
}

func (n *nginxContender) stop() error { return stopOf(&n.process) }

// freeAddress is a port that nobody listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("look for a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// nginxFile is one body, and how it is sent.
type nginxFile struct{ Path, File, Type, Encoding string }

// writeFiles writes the bodies down. nginx looks at the path alone: replies to one path with several queries can't be told apart.
func (n *nginxContender) writeFiles() ([]nginxFile, error) {
	if len(n.replies) == 0 {
		return nil, errors.New("there is no reply to serve")
	}
	var files []nginxFile
	seen := map[string]bool{}
	for i := range n.replies {
		r := &n.replies[i]
		response, err := r.response()
		if err != nil {
			return nil, err
		}
		path, _, _ := strings.Cut(r.Target, "?")
		if seen[path] {
			return nil, fmt.Errorf("there are two replies to %s; give each a server of its own", path)
		}
		seen[path] = true
		file := nginxFile{
			path, filepath.Join(n.dir, fmt.Sprintf("%d.json", i)), string(response.Header.ContentType()),
			string(response.Header.Peek(fasthttp.HeaderContentEncoding)),
		}
		if err := os.WriteFile(file.File, response.Body(), 0o600); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

type nginxConfig struct {
	Dir, Address string
	Root         bool // root's files are for root alone, so its worker stays root
	Files        []nginxFile
}

// nginxText is what an engineer would write who wants files served fast: no log, descriptors kept open, connections too.
var nginxText = template.Must(template.New("nginx.conf").Parse(`daemon off;
worker_processes 1;
{{if .Root}}user root root;
{{end}}pid {{.Dir}}/nginx.pid;
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
	client_body_temp_path {{.Dir}}/body;
	proxy_temp_path {{.Dir}}/proxy;
	fastcgi_temp_path {{.Dir}}/fastcgi;
	uwsgi_temp_path {{.Dir}}/uwsgi;
	scgi_temp_path {{.Dir}}/scgi;
	types {}
	server {
		listen {{.Address}};
{{range .Files}}		location = "{{.Path}}" {
			alias "{{.File}}";
			default_type "{{.Type}}";
{{if .Encoding}}			add_header Content-Encoding "{{.Encoding}}";
{{end}}		}
{{end}}	}
}
`))

func writeNginxConfig(path string, config nginxConfig) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("configure nginx: %w", err)
	}
	return errors.Join(nginxText.Execute(file, &config), file.Close())
}
