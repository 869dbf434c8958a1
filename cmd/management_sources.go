package cmd

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
)

// Paths of what a node says of its sources.
const (
	sourcesPath = "/sources"
	metricsPath = "/metrics"
)

// stateOff is the state of sources that nobody collects: the node does not, or there is no node.
const stateOff collectors.State = "off"

// What tasard sources is answered. What has not happened is left out.
type (
	shownSources struct {
		Collecting bool          `json:"collecting"`
		Sources    []shownSource `json:"sources"`
	}
	shownSource struct {
		ID             string           `json:"id"`
		Name           string           `json:"name"`
		Institution    string           `json:"institution,omitempty"`
		URL            string           `json:"url,omitempty"`
		Host           string           `json:"host"`
		Priority       int64            `json:"priority"`
		UpstreamSource string           `json:"upstreamSource,omitempty"`
		Methods        []source.Method  `json:"methods"`
		State          collectors.State `json:"state"`
		Disabled       string           `json:"disabled,omitempty"`
		Note           string           `json:"note,omitempty"`
		Health         *shownHealth     `json:"health,omitempty"`
	}
	shownHealth struct {
		Running             time.Time     `json:"running,omitzero"`
		LastTry             time.Time     `json:"lastTry,omitzero"`
		LastSuccess         time.Time     `json:"lastSuccess,omitzero"`
		LastSlot            time.Time     `json:"lastSlot,omitzero"`
		NextRun             time.Time     `json:"nextRun,omitzero"`
		DurationMillis      int64         `json:"durationMillis"`
		Runs                uint64        `json:"runs"`
		ConsecutiveFailures int           `json:"consecutiveFailures"`
		Failure             *shownFailure `json:"failure,omitempty"`
		Read                int           `json:"read"`
		Accepted            int           `json:"accepted"`
		Held                int           `json:"held"`
		Repeated            int           `json:"repeated"`
		Digests             []string      `json:"digests,omitempty"`
		Notes               []string      `json:"notes,omitempty"`
		UnchangedSince      time.Time     `json:"unchangedSince,omitzero"`
		Frozen              bool          `json:"frozen"`
	}
	shownFailure struct {
		Kind   source.FailureKind `json:"kind"`
		Page   string             `json:"page,omitempty"`
		Detail string             `json:"detail"`
		At     time.Time          `json:"at,omitzero"`
	}
)

func (m *management) sourceRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+sourcesPath, answering(func(*http.Request) (any, error) { return m.sources.describe(), nil }))
	mux.Handle("GET "+metricsPath, m.metrics())
}

// health is how every source is, by id; nothing when the node collects nothing.
func (c *collection) health() []collectors.Health { return c.present().health() }

func (c *collecting) health() []collectors.Health {
	if c.collector == nil {
		return nil
	}
	return c.collector.Health()
}

// describe is every source of the node with its health.
func (c *collection) describe() shownSources {
	now := c.present()
	shown := describeSources(now.set)
	shown.Collecting = now.collector != nil
	health := now.health()
	for i := range health { // both are sorted by id, and have the same definitions
		shown.Sources[i].State, shown.Sources[i].Health = health[i].State, describeHealth(&health[i])
	}
	return shown
}

// describeSources is what definitions say, for which nobody collects.
func describeSources(set *source.Set) shownSources {
	shown := shownSources{Sources: []shownSource{}}
	for _, d := range set.Definitions() {
		one := shownSource{
			ID: d.ID, Name: d.Name, Institution: d.Institution, URL: d.URL, Host: hostOf(d), Priority: d.Priority,
			UpstreamSource: d.UpstreamSource, Methods: methodsOf(d), State: stateOff, Disabled: d.Disabled, Note: d.Note,
		}
		if d.Disabled != "" {
			one.State = collectors.Disabled
		}
		shown.Sources = append(shown.Sources, one)
	}
	return shown
}

// hostOf is the host that is asked first.
func hostOf(d *source.Definition) string {
	address, err := url.Parse(d.Pages[0].Requests[0].URL)
	if err != nil {
		return "" // the reader of definitions has refused it
	}
	return address.Hostname()
}

// methodsOf are the extractors that read the source.
func methodsOf(d *source.Definition) []source.Method {
	var methods []source.Method
	for i := range d.Pages {
		methods = append(methods, d.Pages[i].Extract.Method)
	}
	slices.Sort(methods)
	return slices.Compact(methods)
}

func describeHealth(h *collectors.Health) *shownHealth {
	shown := &shownHealth{
		Running: h.Running, LastTry: h.LastTry, LastSuccess: h.LastSuccess, LastSlot: h.LastSlot, NextRun: h.NextRun,
		DurationMillis: h.Duration.Milliseconds(), Runs: h.Runs, ConsecutiveFailures: h.ConsecutiveFailures,
		Read: h.Read, Accepted: h.Accepted, Held: h.Held, Repeated: h.Repeated, Digests: h.Digests, Notes: h.Notes,
		UnchangedSince: h.UnchangedSince, Frozen: h.Frozen,
	}
	if h.Failure.Kind != "" {
		shown.Failure = &shownFailure{h.Failure.Kind, h.Failure.Page, h.Failure.Detail, h.FailedAt}
	}
	return shown
}
