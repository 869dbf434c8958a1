package setting

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/input"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/node"
)

// CheckServe returns all errors that would prevent serve from starting, except errors of the data directory, and those
// about settings in flags whose values are unknown, because the ones that were given are wrong.
func CheckServe(p *process.Process, flags *pflag.FlagSet, o *Serve) error {
	problems := []error{checkImport(p, o.ImportFile)}
	for _, problem := range flatten(NodeConfig(p, &o.Node, slog.New(slog.DiscardHandler)).Check()) {
		if !dependsOnUnknown(flags, problem) {
			problems = append(problems, Explain(problem))
		}
	}
	return errors.Join(problems...)
}

// flatten returns the errors that err joins.
func flatten(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, item := range joined.Unwrap() {
		all = append(all, flatten(item)...)
	}
	return all
}

// dependsOnUnknown reports whether an error of package node is about a flag whose value is unknown, or about a flag of
// the same group, such as --cluster and --cluster-node.
func dependsOnUnknown(flags *pflag.FlagSet, err error) (depends bool) {
	var nodeErr *node.Error
	if !errors.As(err, &nodeErr) {
		return false
	}
	for name := range strings.FieldsSeq(flagForField(nodeErr.Field)) {
		if name, isFlag := strings.CutPrefix(name, "--"); isFlag {
			flags.VisitAll(func(flag *pflag.Flag) {
				depends = depends || isUnknown(flag) && (flag.Name == name || strings.HasPrefix(flag.Name, name+"-"))
			})
		}
	}
	return depends
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
