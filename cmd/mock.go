package cmd

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/node"
)

const (
	mockSeed           = "standard/v1"
	mockControlDefault = "127.0.0.1:8081"
	mockHeaderTimeout  = 5 * time.Second
)

type mockOptions struct {
	node         *command.Serve // its address and catalogue
	control      string         // address of the second listener, for tests that control the node
	clock        time.Time      // start of the node's clock; the zero value means the time of the data set
	limits       bool
	keysRequired bool
	lenient      bool
	faults       []string // values of --fail
}

func (p *commands) newMock() *cobra.Command {
	o := mockOptions{node: command.Default(), control: mockControlDefault}
	return command.Spec{
		Use:   "mock",
		Short: "Run a node for tests of clients, with controls for time and failures",
		Long: `mock runs a whole node with a fixed set of made-up rates, for tests of clients. The same data set gives the same
answers, byte for byte, on every machine. Its clock stands still until it is moved, quotas are off, and nothing is
kept.

A second listener, --control, serves the controls, as JSON over HTTP: clock, rates, faults, keys, reset and others.
GET /_mock/ there lists them. Only the tests should reach it.

--fail answers the requests of a route, or all, with a real 429, 500 or 503. --lenient takes any value: without it the
node refuses values that jump, or are far from the others, as a real one does.`,
		Example: `  tasard mock
  tasard mock --listen 127.0.0.1:9000 --control 127.0.0.1:9001 --fail 503@/v1/rates/best
  curl -H 'Content-Type: application/json' -d '{"advance":"26h"}' http://127.0.0.1:8081/_mock/clock

JavaScript:
  await fetch('http://127.0.0.1:8081/_mock/reset', {method: 'POST'})
Python:
  urllib.request.urlopen('http://127.0.0.1:8081/_mock/reset', data=b'')`,
		Settings: func(flags *pflag.FlagSet) {
			command.Add(flags, o.node, "listen", "catalogue")
			flags.Var(command.Address(&o.control), "control", "address of the controls; port 0 takes a free one")
			command.BoolFlag(flags, &o.lenient, "lenient", "take values that jump or are far from the market")
			flags.Var(command.Instant(&o.clock), "clock", "start of the clock; default that of the data set")
			flags.Var(command.OnOff(&o.limits), "limits", "enforce quotas")
			flags.Var(command.OnOff(&o.keysRequired), "keys-required", "refuse callers without a key")
			flags.StringArrayVar(&o.faults, "fail", nil, "answer all requests, or those of a route, as `STATUS@ROUTE` says; repeatable")
		},
		Run: func(ctx context.Context, _ []string) error { return p.mock(ctx, &o) },
	}.Command(p.Process)
}

func (p *commands) mock(ctx context.Context, o *mockOptions) (err error) {
	mock, err := p.openMock(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mock.Close()) }()
	for _, text := range o.faults {
		fault, err := apitest.ParseFault(text)
		if err == nil {
			err = mock.Do(func(s *apitest.Server) { s.Fault(fault) })
		}
		if err != nil {
			return exit.Errorf(exit.Usage, "--fail: %w", err)
		}
	}
	handler, err := mock.ControlHandler()
	if err != nil {
		return err
	}
	control, err := net.Listen("tcp", o.control)
	if err != nil {
		return exit.Errorf(exit.Busy, "--control %s: %w", o.control, err)
	}
	terminal.Fprintf(p.Stdout, "tasard mock: a node for tests. Every rate is made up, seed %s; it is %s on its clock\nlistening on %s\ncontrols on http://%s/_mock/\n",
		mockSeed, terminal.FormatInstant(mock.Clock.Now()), mock.URL, control.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: mockHeaderTimeout}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // a control is short
	defer stop()
	if err := server.Serve(control); ctx.Err() == nil {
		return exit.Errorf(exit.FailStop, "answer on %s: %w", control.Addr(), err)
	}
	return nil
}

// openMock starts a node with made-up rates. Its errors name the wrong flags.
func (p *commands) openMock(o *mockOptions) (*apitest.Node, error) {
	listener, err := node.Listen(o.node.Config.HTTP.Listen, "HTTP.Listen")
	if err != nil {
		return nil, err
	}
	options := []apitest.Option{apitest.Seed(mockSeed), apitest.OnListener(listener)}
	if !o.clock.IsZero() {
		options = append(options, apitest.At(o.clock))
	}
	if name := o.node.Config.Catalogue; name != "" {
		file, err := os.ReadFile(name) //nolint:gosec // G304: the tester names it
		if err != nil {
			return nil, exit.Errorf(exit.BadData, "--catalogue: %w", errors.Join(err, listener.Close()))
		}
		options = append(options, apitest.ExtendCatalogue(name, file))
	}
	for _, row := range []struct {
		enabled bool
		option  apitest.Option
	}{{o.limits, apitest.Limits()}, {o.keysRequired, apitest.KeysRequired()}, {o.lenient, apitest.Lenient()}} {
		if row.enabled {
			options = append(options, row.option)
		}
	}
	mock, err := apitest.Open(options...)
	if err != nil {
		_ = listener.Close() // it may be closed already
		return nil, exit.Errorf(exit.Usage, "--clock or --catalogue: %w", err)
	}
	return mock, nil
}
