package engine

// NodeID is which node of a cluster: 1 and up, for ever the same. 0 is a node that is alone.
type NodeID uint16
