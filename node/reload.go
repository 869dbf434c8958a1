package node

import (
	"crypto/tls"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine/account"
)

// reloadedFiles has the contents of the files that Reload has read.
type reloadedFiles struct {
	set      *source.Set      // nil if neither the definitions nor their secrets have changed
	secrets  SourceSecrets    // for the definitions in set
	pair     *tls.Certificate // nil without a certificate
	cluster  *tls.Config      // nil without certificates of a cluster
	password *account.Secret  // nil without a mail server
	changes  []string         // descriptions of the changes, which Reload returns
}

// Reload reads the files that may change while a node runs: the certificates for clients and for other nodes with their
// keys and authority, the password for the mail server, the definitions of sources, which say how their rates are
// fetched and read, and the secrets that they name. If one of them is invalid, Reload uses none, and the error has all
// problems. changes describes for the log what has changed.
func (n *Node) Reload() (changes []string, err error) {
	defer func() { n.reloads.record(err == nil, n.config.Clock()) }()
	files := &reloadedFiles{}
	if err := errors.Join(n.readSources(files), n.readPair(files), n.readClusterTLS(files), n.readPassword(files)); err != nil {
		return nil, err
	}
	if files.pair != nil {
		n.certificate.pair.Store(files.pair)
		n.certificate.warn(n.config.Logger, n.config.Clock())
	}
	if files.cluster != nil {
		if err := n.cluster.SetTLS(files.cluster); err != nil {
			return nil, err
		}
		n.config.Cluster.warn(&n.config)
	}
	if files.password != nil {
		n.mailer.password = *files.password
		n.mailer.smtp.SetPassword(*files.password)
	}
	if files.set != nil {
		n.collector.replace(files.set, files.secrets)
	}
	return files.changes, nil
}

func (n *Node) readPair(files *reloadedFiles) error {
	c := n.certificate
	if c == nil || c.managed() {
		return nil
	}
	pair, err := c.read()
	if err != nil {
		return err
	}
	if files.pair = pair; !pair.Leaf.Equal(c.pair.Load().Leaf) {
		files.changes = append(files.changes, "the certificate, valid until "+formatInstant(pair.Leaf.NotAfter))
	}
	return nil
}

func (n *Node) readClusterTLS(files *reloadedFiles) error {
	o := &n.config.Cluster
	if n.cluster == nil || o.TLS.Key == "" {
		return nil
	}
	if err := checkKeyFile(o.TLS.Key, n.config.Credentials, "Cluster.TLS.Key"); err != nil {
		return err
	}
	var err error
	if files.cluster, err = o.TLS.Load(); err != nil {
		return errorf(BadFile, "Cluster", "%w", err)
	}
	if leaf := files.cluster.Certificates[0].Leaf; !leaf.Equal(n.cluster.Certificate()) {
		files.changes = append(files.changes, "the certificate for other nodes, valid until "+formatInstant(leaf.NotAfter))
	}
	return nil
}

func (n *Node) readPassword(files *reloadedFiles) error {
	path := n.config.Mail.PasswordFile
	if n.mailer.smtp == nil || path == "" {
		return nil
	}
	password, err := ReadSecret(path, n.config.Credentials)
	if err != nil {
		return &Error{BadFile, "Mail.PasswordFile", err}
	}
	if files.password = &password; password.Reveal() != n.mailer.password.Reveal() {
		files.changes = append(files.changes, "the password for the mail server")
	}
	return nil
}

// readSources reads the definitions of sources. A definition may change only in how the rates of its source are fetched
// and read. The list of sources, and the data about a source that rates contain, may not change, because the running
// system uses them too.
func (n *Node) readSources(files *reloadedFiles) error {
	if n.config.Reference != nil {
		return nil // Config.Reference has the definitions, so they do not come from files
	}
	loaded, err := LoadReferenceData(n.config.Catalogue, n.config.Definitions)
	if err != nil {
		return err
	}
	running := n.reference.Catalogue
	if err := loaded.Sources.Check(running); err != nil {
		return fmt.Errorf("%w; institutions and currencies are read at a start: restart the node", err)
	}
	var problems []error
	for _, src := range loaded.Sources.Sources() {
		switch updated := loaded.Catalogue.Source(src.ID); {
		case !running.HasSource(src.ID):
			problems = append(problems, fmt.Errorf("the source %s is new: restart the node", src.ID))
		case !reflect.DeepEqual(updated, running.Source(src.ID)):
			problems = append(problems, fmt.Errorf("the source %s has another name, address, priority, lifetime or bounds: restart the node", src.ID))
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	run := n.collector.activeRun()
	secrets, err := n.config.ReadSourceSecrets(loaded.Sources)
	if err != nil {
		return err
	}
	if changed := changedDefinitions(run.set, run.secrets.Apply(loaded.Sources)); len(changed) > 0 {
		files.set, files.secrets = loaded.Sources, secrets
		files.changes = append(files.changes, "definitions of "+strings.Join(changed, ", "))
	}
	if changed := run.secrets.changed(secrets); len(changed) > 0 {
		files.set, files.secrets = loaded.Sources, secrets
		files.changes = append(files.changes, "secrets "+strings.Join(changed, ", "))
	}
	return nil
}

// changedDefinitions returns the ids of the sources whose definitions differ between two sets.
func changedDefinitions(old, updated *source.Set) []string {
	var ids []string
	for _, d := range updated.Definitions() {
		if previous, ok := old.Find(d.ID); !ok || !reflect.DeepEqual(previous, d) {
			ids = append(ids, d.ID)
		}
	}
	for _, d := range old.Definitions() {
		if _, ok := updated.Find(d.ID); !ok {
			ids = append(ids, d.ID)
		}
	}
	return ids
}
