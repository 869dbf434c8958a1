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

// reloadedFiles holds the present contents of the files. All of them are used, or none.
type reloadedFiles struct {
	set      *source.Set      // nil: unchanged
	pair     *tls.Certificate // nil: none
	password *account.Secret  // nil: none
	changes  []string
}

// Reload reads the files again that may change while a node runs: certificate and key, the mail server's password,
// the definitions of sources. On any error nothing changes, and the error holds all problems. changes describes the
// changes in words.
func (n *Node) Reload() (changes []string, err error) {
	found := &reloadedFiles{}
	if err := errors.Join(n.readSources(found), n.readPair(found), n.readPassword(found)); err != nil {
		return nil, err
	}
	if found.pair != nil {
		n.certificate.pair.Store(found.pair)
		n.certificate.warn(n.config.Logger, n.config.Clock())
	}
	if found.password != nil {
		n.mailer.password = *found.password
		n.mailer.smtp.SetPassword(*found.password)
	}
	if found.set != nil {
		n.collector.replace(found.set)
	}
	return found.changes, nil
}

func (n *Node) readPair(found *reloadedFiles) error {
	c := n.certificate
	if c == nil {
		return nil
	}
	pair, err := c.read()
	if err != nil {
		return err
	}
	if found.pair = pair; !pair.Leaf.Equal(c.pair.Load().Leaf) {
		found.changes = append(found.changes, "the certificate, valid until "+formatInstant(pair.Leaf.NotAfter))
	}
	return nil
}

func (n *Node) readPassword(found *reloadedFiles) error {
	path := n.config.Mail.PasswordFile
	if n.mailer.smtp == nil || path == "" {
		return nil
	}
	password, err := ReadSecret(path, n.config.Credentials)
	if err != nil {
		return &Error{BadFile, "Mail.PasswordFile", err}
	}
	if found.password = &password; password != n.mailer.password {
		found.changes = append(found.changes, "the password for the mail server")
	}
	return nil
}

// readSources reads the definitions. Requests and extraction of a source may change; its description in rates and
// the set of sources may not, because they are part of the state in memory.
func (n *Node) readSources(found *reloadedFiles) error {
	if n.config.Reference != nil {
		return nil // not read from files
	}
	known, err := LoadReferenceData(n.config.Catalogue, n.config.Definitions)
	if err != nil {
		return err
	}
	running := n.reference.Catalogue
	if err := known.Sources.Check(running); err != nil {
		return fmt.Errorf("%w; institutions and currencies are read at a start: restart the node", err)
	}
	var problems []error
	for _, described := range known.Sources.Sources() {
		switch now := known.Catalogue.Source(described.ID); {
		case !running.HasSource(described.ID):
			problems = append(problems, fmt.Errorf("the source %s is new: restart the node", described.ID))
		case !reflect.DeepEqual(now, running.Source(described.ID)):
			problems = append(problems, fmt.Errorf("what rates say of the source %s (name, address, priority, lifetime, bounds) has changed: restart the node", described.ID))
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	if changed := changedDefinitions(n.collector.activeRun().set, known.Sources); len(changed) > 0 {
		found.set = known.Sources
		found.changes = append(found.changes, "definitions of "+strings.Join(changed, ", "))
	}
	return nil
}

// changedDefinitions returns the ids of definitions that differ between two sets.
func changedDefinitions(old, now *source.Set) []string {
	var ids []string
	for _, d := range now.Definitions() {
		if before, known := old.Find(d.ID); !known || !reflect.DeepEqual(before, d) {
			ids = append(ids, d.ID)
		}
	}
	for _, d := range old.Definitions() {
		if _, known := now.Find(d.ID); !known {
			ids = append(ids, d.ID)
		}
	}
	return ids
}
