package setting

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/input"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/node"
)

// CheckServe returns all errors that would prevent serve from starting, except errors of the data directory.
func CheckServe(p *process.Process, o *Serve) error {
	c := NodeConfig(p, &o.Node, slog.New(slog.DiscardHandler))
	return errors.Join(checkImport(p, o.ImportFile), Explain(c.Check()), checkListeners(&c), checkArchive(o))
}

// checkListeners returns an error if two listeners have the same address.
func checkListeners(c *node.Config) error {
	type listener struct{ flag, host, port string }
	var all []listener
	for _, l := range [][2]string{
		{"--listen", c.HTTP.Listen}, {"--https-redirect", c.HTTP.ACME.Redirect}, {"--metrics-listen", c.Admin.Metrics}, {"--cluster-listen", c.Cluster.Listen},
	} {
		host, port, err := net.SplitHostPort(l[1])
		if err != nil || port == "0" {
			continue // not set, or a free port
		}
		for _, other := range all {
			if same := host == other.host || isAnyHost(host) || isAnyHost(other.host); same && port == other.port {
				return exit.Errorf(exit.Usage, "%s: %s is the address of %s too; choose another port", l[0], l[1], other.flag)
			}
		}
		all = append(all, listener{l[0], host, port})
	}
	return nil
}

func isAnyHost(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }

// checkArchive returns an error if fetched documents can't be kept in the directory of --archive. It makes a directory
// in the nearest one that exists, and removes it.
func checkArchive(o *Serve) error {
	path := o.archive
	if path == "" || path == archiveOff || o.NoCollect {
		return nil // in the data directory, or none
	}
	for {
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			return exit.Errorf(exit.BadData, "--archive: %s is not a directory", path)
		}
		if err == nil || path == filepath.Dir(path) {
			break
		}
		path = filepath.Dir(path)
	}
	trial, err := os.MkdirTemp(path, ".tasard-*")
	if err != nil {
		return exit.Errorf(exit.BadData, "--archive: can't keep documents in %s: %w", o.archive, err)
	}
	return os.Remove(trial)
}

// checkImport checks that the file of --import can be opened. It does not open a pipe, because that would wait for a
// writer.
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

// flagForField returns the names of the flags that set a field of node.Config, or "" if no flag does.
func flagForField(field string) string {
	return map[string]string{
		"Dir": "--data", "Catalogue": "--catalogue", "Definitions": "--sources", "Collect.Secrets": "--source-secrets",
		"HTTP.Listen": "--listen", "HTTP.ACME": "--https", "HTTP.ACME.Name": "--https", "HTTP.ACME.Redirect": "--https-redirect",
		"HTTP.TLS": "--tls-cert and --tls-key", "HTTP.TLS.Certificate": "--tls-cert", "HTTP.TLS.Key": "--tls-key",
		"Mail.Method": "--mail", "Mail.CAFile": "--smtp-ca-file", "Mail.Server": "--smtp-addr", "Mail.From": "--mail-from", "Mail.TLS": "--smtp-tls",
		"Mail.User": "--smtp-user and --smtp-password-file", "Mail.PasswordFile": "--smtp-password-file",
		"Admin.Socket": "--admin-socket", "Admin.Metrics": "--metrics-listen",
		"Cluster": "--cluster", "Cluster.Name": "--cluster", "Cluster.Node": "--cluster-node", "Cluster.Members": "--cluster-members",
		"Cluster.Listen": "--cluster-listen", "Cluster.TLS.Key": "--cluster-key", "Cluster.SecretFile": "--cluster-secret-file", "Cluster.Leave": "--cluster-leave",
	}[field]
}

// Explain changes an error of package node: it adds an exit code, and the name of the flag that sets the wrong field of
// node.Config. If several errors are joined, it changes each of them.
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
	code := map[node.Kind]int{
		node.Invalid: exit.Usage, node.BadFile: exit.BadData, node.Busy: exit.Busy, node.Unwritable: exit.CannotWrite,
		node.Failed: exit.FailStop, node.Interrupted: exit.Interrupted,
	}[nodeErr.Kind]
	if coded := (*exit.Error)(nil); errors.As(err, &coded) {
		return exit.Wrap(exit.Code(coded), Explain(coded.Unwrap()))
	}
	explained := nodeErr.Err
	if flag := flagForField(nodeErr.Field); flag != "" {
		explained = fmt.Errorf("%s: %w", flag, nodeErr.Err)
	}
	return exit.Wrap(code, explained)
}
