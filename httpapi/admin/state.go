package admin

import (
	"net/http"
	"time"

	"github.com/tasard/tasard/engine"
)

// Responses about sources. Zero times are omitted.
type (
	// Sources lists all sources of rates of the node. Collecting is false on a node that does not collect rates.
	Sources struct {
		Collecting bool     `json:"collecting"`
		Sources    []Source `json:"sources"`
	}
	// Source describes a source of rates.
	Source struct {
		ID             string        `json:"id"`
		Name           string        `json:"name"`
		Institution    string        `json:"institution,omitempty"`
		URL            string        `json:"url,omitempty"`
		Host           string        `json:"host"` // host of the first request
		Priority       int64         `json:"priority"`
		UpstreamSource string        `json:"upstreamSource,omitempty"`
		Methods        []string      `json:"methods"` // methods of extracting rates from the pages
		State          string        `json:"state"`
		Disabled       string        `json:"disabled,omitempty"` // why the source is disabled
		Evidence       *Evidence     `json:"evidence,omitempty"`
		Note           string        `json:"note,omitempty"`
		Health         *SourceHealth `json:"health,omitempty"`
	}
	// Evidence names other programs that read the same site in the same way, as evidence for the definition.
	Evidence struct {
		Grade  string `json:"grade"` // confirmed, reported or old
		Seen   string `json:"seen"`  // a day, a month or a year
		By     string `json:"by"`
		Sample string `json:"sample,omitempty"` // a real answer that the definition parses
	}
	// SourceHealth is the health of a source since the node's start.
	SourceHealth struct {
		Running             time.Time      `json:"running,omitzero"`     // start of the try in progress
		LastTry             time.Time      `json:"lastTry,omitzero"`     // start of the newest try
		LastSuccess         time.Time      `json:"lastSuccess,omitzero"` // end of the newest try with a published rate
		LastSlot            time.Time      `json:"lastSlot,omitzero"`    // newest scheduled time with a published rate
		NextRun             time.Time      `json:"nextRun,omitzero"`     // when the next try begins
		DurationMillis      int64          `json:"durationMillis"`       // duration of the newest try
		Runs                uint64         `json:"runs"`                 // number of tries
		ConsecutiveFailures int            `json:"consecutiveFailures"`  // scheduled times without a rate, in a row
		Failure             *SourceFailure `json:"failure,omitempty"`
		Confirmed           bool           `json:"confirmed"`               // a real answer is known to parse, by Evidence or on this node
		Read                int            `json:"read"`                    // rates read for the newest scheduled time
		Accepted            int            `json:"accepted"`                // of Read: accepted by the engine
		Quarantined         int            `json:"quarantined"`             // of Read: rejected as implausible; most are in quarantine
		Repeated            int            `json:"repeated"`                // of Read: already published
		Digests             []string       `json:"digests,omitempty"`       // digest of the newest document of each page
		Notes               []string       `json:"notes,omitempty"`         // notes of the newest try
		UnchangedSince      time.Time      `json:"unchangedSince,omitzero"` // last change of a price
		// Frozen means that at the newest try no price had changed for longer than UnchangedLimitHours.
		Frozen              bool         `json:"frozen"`
		UnchangedLimitHours int64        `json:"unchangedLimitHours,omitempty"`
		Missing             []string     `json:"missing,omitempty"` // rates that the source no longer publishes
		Quotes              []UsualQuote `json:"quotes,omitempty"`  // the usual sides of each rate, sorted by rate
	}
	// UsualQuote is the history of one rate at a source. It survives a restart of the node.
	UsualQuote struct {
		Rate           string    `json:"rate"` // id of the rate, as in the API
		UnchangedSince time.Time `json:"unchangedSince,omitzero"`
		Buy            UsualSide `json:"buy"`
		Sell           UsualSide `json:"sell"`
	}
	// UsualSide counts runs with and without a side (buy or sell) of a rate. Each scheduled time is one run.
	UsualSide struct {
		Usual       bool `json:"usual"`
		Runs        int  `json:"runs"`                  // runs with the side since it last counted as missing; at most 64
		MissingRuns int  `json:"missingRuns,omitempty"` // newest runs in a row without the side
	}
	// SourceFailure describes the newest failure of a source.
	SourceFailure struct {
		Kind   string    `json:"kind"`
		Page   string    `json:"page,omitempty"`
		Detail string    `json:"detail"`
		At     time.Time `json:"at,omitzero"`
	}
)

func (s *Server) showCluster(*http.Request, NoBody) (engine.Cluster, error) {
	if s.config.Cluster == nil {
		return engine.Cluster{}, &engine.Error{Code: engine.CodeNotFound, Message: "this node is not in a cluster: it was started without --cluster"}
	}
	return s.config.Cluster(), nil
}

// SourceRun is the result of fetching a source once for an operator.
type SourceRun struct {
	Source         string         `json:"source"`
	DurationMillis int64          `json:"durationMillis"`
	Pages          []SourcePage   `json:"pages"`
	Rates          []SourceRate   `json:"rates"`
	HistoryDays    int            `json:"historyDays"`       // past days that were read
	Failure        *SourceFailure `json:"failure,omitempty"` // a page failed, or no rate could be published
}

// SourcePage is the result of reading a page.
type SourcePage struct {
	Name    string         `json:"name,omitempty"`
	Digest  string         `json:"digest,omitempty"` // SHA-256 of the document; "" = not fetched
	Notes   []string       `json:"notes,omitempty"`  // skipped parts of the document, and why
	Failure *SourceFailure `json:"failure,omitempty"`
}

// SourceRate is a rate read from a page. Reason is "" if it was accepted.
type SourceRate struct {
	InstitutionID string         `json:"institutionId"`
	Currency      string         `json:"currency"`
	Channel       engine.Channel `json:"channel"`
	Kind          engine.Kind    `json:"kind"`
	Buy           string         `json:"buy,omitempty"`
	Sell          string         `json:"sell,omitempty"`
	EffectiveDate string         `json:"effectiveDate,omitempty"`
	Reason        engine.Reason  `json:"reason,omitempty"` // why the rate was not published
	Detail        string         `json:"detail,omitempty"`
	Quarantined   string         `json:"quarantined,omitempty"` // number of the value in quarantine, such as USD/1
}

func (s *Server) runSource(r *http.Request, body Author) (SourceRun, error) {
	id, by := r.PathValue("source"), authorName(r.Context(), body)
	if s.config.RunSource == nil {
		return SourceRun{}, &engine.Error{Code: CodeNotConfigured, Message: "this node has no sources"}
	}
	run, err := s.config.RunSource(r.Context(), id)
	if err == nil {
		s.config.Logger.Info("changed by an operator", "operation", "run source", "source", id, "rates", len(run.Rates), "by", by)
	}
	return run, err
}
