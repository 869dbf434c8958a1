package admin

import (
	"net/http"
	"time"

	"github.com/tasard/tasard/engine"
)

// Cluster is a cluster as one of its nodes sees it.
type Cluster struct {
	Cluster  string        `json:"cluster"`
	Majority bool          `json:"majority"` // writes can be made durable
	Since    time.Time     `json:"since"`    // of majority
	Leader   string        `json:"leader,omitempty"`
	Nodes    []ClusterNode `json:"nodes"`
}

// ClusterNode is one node of it.
type ClusterNode struct {
	Name      string    `json:"name"`
	Address   string    `json:"address"`
	Version   string    `json:"version,omitempty"`
	Self      bool      `json:"self"`
	Member    bool      `json:"member"` // keeps the log
	Reachable bool      `json:"reachable"`
	SeenAt    time.Time `json:"seenAt,omitzero"`
	Leader    bool      `json:"leader"`  // writes go through it
	Current   bool      `json:"current"` // a member's part of the log is whole and up to date
	Record    uint64    `json:"record"`  // the newest that it has
	Lag       uint64    `json:"lag"`     // records that it lacks
	Snapshot  uint64    `json:"snapshot"`
}

func (s *Server) showCluster(*http.Request, None) (Cluster, error) {
	if s.config.Cluster == nil {
		return Cluster{}, &engine.Error{Code: engine.CodeNotFound, Message: "this node is alone: it was started without --cluster"}
	}
	return s.config.Cluster(), nil
}
