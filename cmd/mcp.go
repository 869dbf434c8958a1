package cmd

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/client"
	"github.com/tasard/tasard/httpapi/mcp"
	"github.com/tasard/tasard/node"
)

const (
	mcpPath          = "/mcp"
	mcpRetryAfterMax = 10 * time.Second // the model gets an error if the node's Retry-After is longer
	mcpReadMax       = 10 * time.Second // of one request with --http
)

type mcpOptions struct {
	url     string
	keyFile string
	listen  string         // "" means standard input and output
	serve   *command.Serve // format and level of the log
}

func (p *commands) newMCP() *cobra.Command {
	o := mcpOptions{url: "http://" + command.ListenDefault, serve: command.Default()}
	o.serve.Log.Level = "warn"
	return command.Spec{
		Use:   "mcp",
		Short: "Serve the rates of a node to language models",
		Long: `mcp is a server of the Model Context Protocol. It gives a language model tools for best rates, conversions and history,
and calls a node over HTTP, under the limits of its key or address.

By default it uses standard input and output. With --http it listens on a loopback address, at the path ` + mcpPath + `, without
authentication: every program of this machine that reaches it uses the quota of its key.`,
		Example: `  tasard mcp --url https://tasas.example.com --key-file ./tasard.key
  tasard mcp --http 127.0.0.1:8090`,
		Settings: func(flags *pflag.FlagSet) {
			flags.Var(command.URL(&o.url), "url", "address of the node")
			flags.Var(command.Path(&o.keyFile, "FILE"), "key-file", "`FILE` with the API key, readable only by owner and group")
			flags.Var(command.Address(&o.listen), "http", "listen on the loopback address `HOST:PORT` instead; port 0 takes a free one")
			command.Add(flags, o.serve, "log-format", "log-level")
		},
		Run: func(ctx context.Context, _ []string) error { return p.mcp(ctx, &o) },
	}.Command(p.Process)
}

// mcp serves until standard input is closed or ctx ends. It does not connect to the node, which may be started later.
func (p *commands) mcp(ctx context.Context, o *mcpOptions) error {
	nodeURL, err := url.Parse(o.url)
	if err != nil {
		return exit.Errorf(exit.Usage, "--url: want https://HOST")
	}
	if o.keyFile != "" && nodeURL.Scheme != "https" && !isLoopback(nodeURL.Hostname()) {
		return exit.Errorf(exit.Usage, "--key-file: %s would send the key unencrypted; give an https --url", nodeURL.Redacted())
	}
	if host, _, err := net.SplitHostPort(o.listen); o.listen != "" && (err != nil || !isLoopback(host)) {
		return exit.Errorf(exit.Usage, "--http %s: reachable from other machines, and there is no authentication; listen on 127.0.0.1, behind a proxy that has one", o.listen)
	}
	var key account.Secret
	if o.keyFile != "" {
		if key, err = node.ReadSecret(o.keyFile, p.Getenv(process.CredentialsVariable)); err != nil {
			return exit.Errorf(exit.BadData, "--key-file: %w", err)
		}
	}
	nodeClient, err := client.New(client.Config{BaseURL: o.url, Key: key.Reveal(), UserAgent: "tasard-mcp/" + process.Version(), WaitMax: mcpRetryAfterMax})
	if err != nil {
		return exit.Errorf(exit.Usage, "%s", strings.NewReplacer("client: BaseURL", "--url", "client: Key", "--key-file").Replace(err.Error()))
	}
	logger, server := p.Logger(o.serve.Log), mcp.New(nodeClient, process.Version())
	if o.listen != "" {
		return p.mcpOverHTTP(ctx, server, o, logger)
	}
	if err := server.Serve(ctx, p.Stdin, p.Stdout); err != nil && ctx.Err() == nil {
		return exit.Errorf(exit.IOError, "standard input or output: %w", err)
	}
	return nil
}

// isLoopback reports whether host is a loopback address or localhost.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

func (p *commands) mcpOverHTTP(ctx context.Context, server *mcp.Server, o *mcpOptions, logger *slog.Logger) error {
	listener, err := node.Listen(o.listen, "")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(mcpPath, server.Handler())
	httpServer := &http.Server{Handler: mux, ReadTimeout: mcpReadMax, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn)}
	terminal.Fprintf(p.Stdout, "tasard mcp: tools for the rates of %s\nlistening on http://%s%s\n", o.url, listener.Addr(), mcpPath)
	return serveUntilDone(ctx, httpServer, listener)
}
