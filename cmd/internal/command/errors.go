package command

import (
	"errors"
	"log/slog"
	"net"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/input"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/node"
)

// CheckServe returns all errors that would prevent serve from starting, except errors of the data directory.
func CheckServe(p *process.Process, o *Serve) error {
	c := NodeConfig(p, o, slog.New(slog.DiscardHandler))
	return errors.Join(checkImport(p, o.ImportFile), Explain(c.Check()), checkListeners(&c))
}

// checkListeners returns an error if two listeners have the same address.
func checkListeners(c *node.Config) error {
	isAny := func(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
	all := [][2]string{{"--listen", c.HTTP.Listen}, {"--metrics-listen", c.Admin.Metrics}, {"--cluster-listen", c.Cluster.Listen}}
	for i, l := range all {
		host, port, _ := net.SplitHostPort(l[1]) // one that is not set has no port
		for _, other := range all[:i] {
			otherHost, otherPort, _ := net.SplitHostPort(other[1])
			if port == otherPort && port != "" && port != "0" && (host == otherHost || isAny(host) || isAny(otherHost)) {
				return exit.Errorf(exit.Usage, "%s: %s is the address of %s too; choose another port", l[0], l[1], other[0])
			}
		}
	}
	return nil
}

// checkImport checks that the file of --import can be opened. It does not open a pipe, which would block until the pipe
// has a writer.
func checkImport(p *process.Process, name string) error {
	if name == "" {
		return nil
	}
	file, err := input.Open(name, p.Stdin)
	if err != nil || file.Blocking {
		return err
	}
	return file.Close()
}

// flagForField returns the flags that set a field of node.Config, or "".
func flagForField(field string) string {
	return map[string]string{
		"Dir": "--data", "Catalogue": "--catalogue", "Definitions": "--sources", "Collect.Secrets": "--source-secrets",
		"HTTP.Listen": "--listen", "HTTP.ACME": "--https", "HTTP.ACME.Name": "--https", "HTTP.ACME.Redirect": "--https",
		"HTTP.TLS": "--tls-cert and --tls-key", "HTTP.TLS.Certificate": "--tls-cert", "HTTP.TLS.Key": "--tls-key",
		"Mail.Server": "--smtp-addr", "Mail.From": "--mail-from", "Mail.TLS": "--smtp-tls",
		"Mail.User": "--smtp-user and --smtp-password-file", "Mail.PasswordFile": "--smtp-password-file",
		"Admin.Socket": "--admin-socket", "Admin.Metrics": "--metrics-listen",
		"Cluster": "--cluster", "Cluster.Name": "--cluster", "Cluster.Node": "--cluster-node", "Cluster.Members": "--cluster-members",
		"Cluster.Listen": "--cluster-listen", "Cluster.Secret": "--cluster-secret-file",
	}[field]
}

// Explain adds an exit code to an error of package node, and the flag of the wrong field of node.Config. For joined
// errors it explains each of them.
func Explain(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
		var explained []error
		for _, item := range joined.Unwrap() {
			explained = append(explained, Explain(item))
		}
		return errors.Join(explained...)
	}
	var nodeErr *node.Error
	if !errors.As(err, &nodeErr) {
		return err
	}
	if coded := (*exit.Error)(nil); errors.As(err, &coded) {
		return exit.Wrap(exit.Code(coded), Explain(coded.Unwrap()))
	}
	code := map[node.Kind]int{
		node.Invalid: exit.Usage, node.BadFile: exit.BadData, node.Busy: exit.Busy, node.Unwritable: exit.CannotWrite,
		node.Failed: exit.FailStop, node.Interrupted: exit.Interrupted,
	}[nodeErr.Kind]
	if flag := flagForField(nodeErr.Field); flag != "" {
		return exit.Errorf(code, "%s: %w", flag, nodeErr.Err)
	}
	return exit.Wrap(code, nodeErr.Err)
}
