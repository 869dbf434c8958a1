package cmd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/client"
	"github.com/tasard/tasard/httpapi/mcp"
	"github.com/tasard/tasard/node"
)

const (
	mcpPath          = "/mcp"
	mcpRetryAfterMax = 10 * time.Second // if the node sends a longer Retry-After, the model gets an error
	// Limits of one HTTP connection (--http). mcpWriteMax is long, because the time to write a response includes
	// waiting for the node, and for the time in a Retry-After.
	mcpReadMax   = 10 * time.Second
	mcpWriteMax  = 2 * time.Minute
	mcpHeaderMax = 16 << 10
)

type mcpOptions struct {
	url       string
	keyFile   string
	publicURL string
	listen    string   // "" means standard input and output
	names     []string // host names of this server, in addition to loopback names
	log       terminal.LogOptions
}

func (p *commands) newMCP() *cobra.Command {
	o := mcpOptions{url: "http://" + setting.ListenDefault, log: terminal.LogOptions{Format: "auto", Level: "warn"}}
	return command.Spec{
		Use:   "mcp",
		Short: "Serve the rates of a node to language models",
		Long: `mcp is a server of the Model Context Protocol. It gives a language model tools for best rates, conversions and history,
and calls a node over HTTP, under the limits of its key or address.

By default it uses standard input and output. With --http it listens, at the path ` + mcpPath + `, without authentication: every
client that reaches it uses the quota of its key. To be reachable from other machines it needs --http-name, the host
name that they use; requests with other host names are refused.`,
		Example: `  tasard mcp --url https://tasas.example.com --key-file ./tasard.key
  tasard mcp --http 127.0.0.1:8090`,
		Settings: func(flags *pflag.FlagSet) {
			flags.Var(setting.URL(&o.url), "url", "address of the node")
			flags.Var(setting.Path(&o.keyFile, "FILE"), "key-file", "`FILE` with the API key, readable only by its owner")
			flags.Var(setting.SiteURL(&o.publicURL), "public-url", "site of the attribution; default the node's address")
			flags.Var(setting.Address(&o.listen), "http", "listen on `HOST:PORT` instead; port 0 takes a free one")
			flags.Var(namesValue(&o.names), "http-name", "host name that clients use; repeatable")
			setting.AddLog(flags, &o.log)
		},
		Run: func(ctx context.Context, _ []string) error { return p.mcp(ctx, &o) },
	}.Command(p.Process)
}

// namesValue returns the value of a flag that accepts a list of host names. Each use of the flag adds names.
func namesValue(target *[]string) pflag.Value {
	name := regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)
	parse := func(text string) ([]string, error) {
		names := slices.Clone(*target)
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); !name.MatchString(part) {
				return nil, fmt.Errorf("%q: want a host name without a port, such as mcp.example.com", part)
			}
			names = append(names, part)
		}
		return names, nil
	}
	return setting.NewValue(target, "HOST", parse, func(list []string) string { return strings.Join(list, ",") })
}

// mcp serves until standard input is closed or ctx ends.
func (p *commands) mcp(ctx context.Context, o *mcpOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	logger := p.Logger(o.log)
	server, err := p.openMCP(o, logger)
	if err != nil {
		return err
	}
	if o.listen != "" {
		return p.mcpOverHTTP(ctx, server, o, logger)
	}
	if err := server.Serve(ctx, p.Stdin, p.Stdout); err != nil && ctx.Err() == nil {
		return exit.Errorf(exit.IOError, "standard input or output: %w", err)
	}
	return nil
}

// check returns an error if flags contradict each other, or if --url is not the address of a node.
func (o *mcpOptions) check() error {
	nodeURL, err := url.Parse(o.url)
	switch {
	case err != nil:
		return exit.Errorf(exit.Usage, "--url: want https://HOST")
	case nodeURL.User != nil:
		return exit.Errorf(exit.Usage, "--url: contains a user name or password; leave it out, and give an API key with --key-file")
	case nodeURL.RawQuery != "" || nodeURL.Fragment != "":
		return exit.Errorf(exit.Usage, "--url: contains a query or fragment; want https://HOST")
	case o.keyFile != "" && nodeURL.Scheme != "https" && !isLoopback(nodeURL.Hostname()):
		return exit.Errorf(exit.Usage, "--key-file: %s would send the key unencrypted; give an https --url", o.url)
	}
	host, _, err := net.SplitHostPort(o.listen)
	if o.listen == "" || err == nil && (isLoopback(host) || len(o.names) > 0) {
		return nil
	}
	return exit.Errorf(exit.Usage, "--http %s: reachable from other machines; give the name that they use with --http-name, or listen on 127.0.0.1", o.listen)
}

// isLoopback reports whether host is a loopback address or localhost.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// openMCP creates the server. It does not connect to the node, which may be started later.
func (p *commands) openMCP(o *mcpOptions, logger *slog.Logger) (*mcp.Server, error) {
	var key account.Secret
	if o.keyFile != "" {
		var err error
		if key, err = node.ReadSecret(o.keyFile, p.Getenv(process.CredentialsVariable)); err != nil {
			return nil, exit.Errorf(exit.BadData, "--key-file: %w", err)
		}
	}
	nodeClient, err := client.New(client.Config{
		BaseURL: o.url, Key: client.Secret(key.Reveal()), UserAgent: "tasard-mcp/" + process.Version(), WaitMax: mcpRetryAfterMax, Random: p.Random,
	})
	if err != nil {
		return nil, exit.Errorf(exit.Usage, "--key-file: %s", strings.TrimPrefix(err.Error(), "client: ")) // the URL is valid, so the error is about the key
	}
	return mcp.New(mcp.Config{Client: nodeClient, Site: o.publicURL, Version: process.Version(), Hosts: o.names, Logger: logger})
}

func (p *commands) mcpOverHTTP(ctx context.Context, server *mcp.Server, o *mcpOptions, logger *slog.Logger) error {
	listener, err := node.Listen(o.listen, "")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(mcpPath, server.Handler())
	httpServer := &http.Server{
		Handler: mux, ReadHeaderTimeout: mcpReadMax, ReadTimeout: mcpReadMax, WriteTimeout: mcpWriteMax, IdleTimeout: mcpWriteMax,
		MaxHeaderBytes: mcpHeaderMax, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	terminal.Fprintf(p.Stdout, "tasard mcp: tools for the rates of %s\nlistening on http://%s%s\n", o.url, listener.Addr(), mcpPath)
	return serveUntilDone(ctx, httpServer, listener)
}
