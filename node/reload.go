package node

import (
	"crypto/tls"
	"errors"
)

// reloadedFiles is the contents of the files read by Reload.
type reloadedFiles struct {
	pair    *tls.Certificate // nil without a certificate
	cluster *tls.Config      // nil without certificates of a cluster
	changes []string         // descriptions of the changes, for Reload's result
}

// Reload reads the files that may change while a node runs: certificates, keys and authority, for clients and for other
// nodes. All other files are read at a start. If one file is invalid, Reload uses none, and the error lists all
// problems. changes describes the changes for the log.
func (n *Node) Reload() (changes []string, err error) {
	defer func() { n.reloads.record(err == nil, n.config.Clock()) }()
	files := &reloadedFiles{}
	if err := errors.Join(n.readPair(files), n.readClusterTLS(files)); err != nil {
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
	if n.cluster == nil || o.insecure() {
		return nil
	}
	var err error
	if files.cluster, err = o.loadTLS(&n.config); err != nil {
		return err
	}
	if leaf := files.cluster.Certificates[0].Leaf; !leaf.Equal(n.cluster.Certificate()) {
		files.changes = append(files.changes, "the certificate for other nodes, valid until "+formatInstant(leaf.NotAfter))
	}
	return nil
}
