package node

// Reload reads the files that may change while a node runs: the certificate for clients and its key. All other files
// are read at a start. After an error the node keeps the certificate that it has. changes describes the changes for the
// log.
func (n *Node) Reload() (changes []string, err error) {
	defer func() { n.reloads.record(err == nil, n.config.Clock()) }()
	c := n.certificate
	if c == nil || c.managed() {
		return nil, nil
	}
	pair, err := c.read()
	if err != nil {
		return nil, err
	}
	if !pair.Leaf.Equal(c.pair.Load().Leaf) {
		changes = append(changes, "the certificate, valid until "+formatInstant(pair.Leaf.NotAfter))
	}
	c.pair.Store(pair)
	c.warn(n.config.Logger, n.config.Clock())
	return changes, nil
}
