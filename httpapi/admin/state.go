package admin

import (
	"net/http"
	"time"

	"github.com/tasard/tasard/engine"
)

// What is answered about sources. What has not happened is left out.
type (
	// Sources are all sources of the node.
	Sources struct {
		Collecting bool     `json:"collecting"`
		Sources    []Source `json:"sources"`
	}
	// Source is one, with how it is.
	Source struct {
		ID             string        `json:"id"`
		Name           string        `json:"name"`
		Institution    string        `json:"institution,omitempty"`
		URL            string        `json:"url,omitempty"`
		Host           string        `json:"host"` // that is asked first
		Priority       int64         `json:"priority"`
		UpstreamSource string        `json:"upstreamSource,omitempty"`
		Methods        []string      `json:"methods"` // the extractors that read it
		State          string        `json:"state"`
		Disabled       string        `json:"disabled,omitempty"` // why
		Note           string        `json:"note,omitempty"`
		Health         *SourceHealth `json:"health,omitempty"`
	}
	// SourceHealth is what became of it since the start.
	SourceHealth struct {
		Running             time.Time      `json:"running,omitzero"`
		LastTry             time.Time      `json:"lastTry,omitzero"`
		LastSuccess         time.Time      `json:"lastSuccess,omitzero"`
		LastSlot            time.Time      `json:"lastSlot,omitzero"`
		NextRun             time.Time      `json:"nextRun,omitzero"`
		DurationMillis      int64          `json:"durationMillis"`
		Runs                uint64         `json:"runs"`
		ConsecutiveFailures int            `json:"consecutiveFailures"`
		Failure             *SourceFailure `json:"failure,omitempty"`
		Read                int            `json:"read"`
		Accepted            int            `json:"accepted"`
		Quarantined         int            `json:"held"`
		Repeated            int            `json:"repeated"`
		Digests             []string       `json:"digests,omitempty"`
		Notes               []string       `json:"notes,omitempty"`
		UnchangedSince      time.Time      `json:"unchangedSince,omitzero"`
		Frozen              bool           `json:"frozen"`
	}
	// SourceFailure is why the last answer gave nothing.
	SourceFailure struct {
		Kind   string    `json:"kind"`
		Page   string    `json:"page,omitempty"`
		Detail string    `json:"detail"`
		At     time.Time `json:"at,omitzero"`
	}
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

func (s *Server) showCluster(*http.Request, NoBody) (Cluster, error) {
	if s.config.Cluster == nil {
		return Cluster{}, &engine.Error{Code: engine.CodeNotFound, Message: "this node is alone: it was started without --cluster"}
	}
	return s.config.Cluster(), nil
}
