package cmd

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/client"
	"github.com/tasard/tasard/httpapi/mcp"
	"github.com/tasard/tasard/node"
)

const mcpRetryAfterMax = 10 * time.Second // the model gets an error if the node's Retry-After is longer

func (p *commands) newMCP() *cobra.Command {
	address, keyFile := "http://"+command.ListenDefault, ""
	return command.Spec{
		Use:   "mcp",
		Short: "Serve the rates of a node to language models",
		Long: `mcp is a server of the Model Context Protocol. It gives a language model tools for best rates, conversions and history,
and calls a node over HTTP, under the limits of its key or address.

It uses standard input and output: one message a line.`,
		Example: `  tasard mcp --url https://tasas.example.com --key-file ./tasard.key
  cat requests.ndjson | tasard mcp --url http://127.0.0.1:8080`,
		Settings: func(flags *pflag.FlagSet) {
			flags.Var(command.URL(&address), "url", "address of the node")
			flags.Var(command.Path(&keyFile, "FILE"), "key-file", "`FILE` with the API key, readable only by owner and group")
		},
		Run: func(ctx context.Context, _ []string) error { return p.mcp(ctx, address, keyFile) },
	}.Command(p.Process)
}

// mcp serves until standard input is closed or ctx ends. It does not connect to the node, which may be started later.
func (p *commands) mcp(ctx context.Context, address, keyFile string) error {
	nodeURL, err := url.Parse(address)
	if err != nil {
		return exit.Errorf(exit.Usage, "--url: want https://HOST")
	}
	host, _ := netip.ParseAddr(nodeURL.Hostname()) // a name parses as the zero address
	if keyFile != "" && nodeURL.Scheme != "https" && nodeURL.Hostname() != "localhost" && !host.IsLoopback() {
		return exit.Errorf(exit.Usage, "--key-file: %s would send the key unencrypted; give an https --url", nodeURL.Redacted())
	}
	var key account.Secret
	if keyFile != "" {
		if key, err = node.ReadSecret(keyFile, p.Getenv(process.CredentialsVariable)); err != nil {
			return exit.Errorf(exit.BadData, "--key-file: %w", err)
		}
	}
	nodeClient, err := client.New(client.Config{BaseURL: address, Key: key.Reveal(), UserAgent: "tasard-mcp/" + process.Version(), WaitMax: mcpRetryAfterMax})
	if err != nil {
		return exit.Errorf(exit.Usage, "%s", strings.NewReplacer("client: BaseURL", "--url", "client: Key", "--key-file").Replace(err.Error()))
	}
	if err := mcp.New(nodeClient, process.Version()).Serve(ctx, p.Stdin, p.Stdout); err != nil && ctx.Err() == nil {
		return exit.Errorf(exit.IOError, "standard input or output: %w", err)
	}
	return nil
}
