package cmd

import (
	"errors"
	"fmt"

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

// inFlags tells an error of a node in the names of the flags, with its exit code. An error of several is told one a line.
func inFlags(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok && len(all.Unwrap()) > 0 {
		var told []error
		for _, one := range all.Unwrap() {
			told = append(told, inFlags(one))
		}
		return errors.Join(told...)
	}
	var of *node.Error
	if !errors.As(err, &of) {
		return err
	}
	code := map[node.Kind]int{
		node.Invalid: exitUsage, node.BadFile: exitBadData, node.Busy: exitBusy, node.Unwritable: exitCannotWrite,
		node.Failed: exitFailStop, node.Interrupted: exitInterrupted,
	}[of.Kind]
	if known := (*failure)(nil); errors.As(err, &known) {
		return &failure{known.code, inFlags(known.err)}
	}
	told := of.Err
	if flag := flagOf(of.Field); flag != "" {
		told = fmt.Errorf("%s: %w", flag, of.Err)
	}
	return &failure{code, told}
}
