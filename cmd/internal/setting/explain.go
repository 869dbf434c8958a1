package setting

import (
	"errors"
	"fmt"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/node"
)

// flagOf is the flag that sets a field of node.Config.
func flagOf(field string) string {
	return map[string]string{
		"Dir": "--data", "Catalogue": "--catalogue", "Definitions": "--sources",
		"HTTP.Listen": "--listen", "HTTP.TLS": "--tls-cert and --tls-key", "HTTP.TLS.Certificate": "--tls-cert", "HTTP.TLS.Key": "--tls-key",
		"Mail.Way": "--mail", "Mail.CAFile": "--smtp-ca-file", "Mail.Server": "--smtp-addr", "Mail.From": "--mail-from", "Mail.TLS": "--smtp-tls",
		"Mail.User": "--smtp-user and --smtp-password-file", "Mail.PasswordFile": "--smtp-password-file",
		"Admin.Socket": "--admin-socket", "Admin.Metrics": "--metrics-listen",
		"Cluster": "--cluster", "Cluster.Name": "--cluster", "Cluster.Node": "--cluster-node", "Cluster.Members": "--cluster-members",
		"Cluster.Listen": "--cluster-listen", "Cluster.TLS.Key": "--cluster-key",
	}[field]
}

// Explain tells an error of a node in the names of the flags, with its exit code. An error of several is told one a line.
func Explain(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok && len(all.Unwrap()) > 0 {
		var told []error
		for _, one := range all.Unwrap() {
			told = append(told, Explain(one))
		}
		return errors.Join(told...)
	}
	var of *node.Error
	if !errors.As(err, &of) {
		return err
	}
	code := map[node.Kind]int{
		node.Invalid: exit.Usage, node.BadFile: exit.BadData, node.Busy: exit.Busy, node.Unwritable: exit.CannotWrite,
		node.Failed: exit.FailStop, node.Interrupted: exit.Interrupted,
	}[of.Kind]
	if known := (*exit.Failure)(nil); errors.As(err, &known) {
		return exit.Wrap(exit.Code(known), Explain(known.Unwrap()))
	}
	told := of.Err
	if flag := flagOf(of.Field); flag != "" {
		told = fmt.Errorf("%s: %w", flag, of.Err)
	}
	return exit.Wrap(code, told)
}
