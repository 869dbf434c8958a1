package cmd

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
)

// readyzPath is where the management listener tells how the node is, with more than the public one.
const readyzPath = "/readyz"

// health gathers what those know who own the state.
type health struct {
	system     *actors.System
	post       *post
	collection *collection
}

// Conditions is engine.Health.
func (h *health) Conditions() []engine.Condition {
	return append(h.system.Conditions(), h.post.condition(), h.collection.condition())
}

// condition tells whether letters leave.
func (p *post) condition() engine.Condition {
	if p.smtp == nil {
		return engine.Well("mail")
	}
	return p.smtp.Condition()
}

// condition tells whether the sources give what they should.
func (c *collection) condition() engine.Condition {
	if collector := c.present().collector; collector != nil {
		return collector.Condition()
	}
	return engine.Well("sources")
}

// What the management listener answers about the node.
type (
	shownReadiness struct {
		Status     engine.Readiness `json:"status"`
		Conditions []shownCondition `json:"conditions"`
		Version    string           `json:"version"`
		Log        shownLog         `json:"log"`
		Mail       *mail.Stats      `json:"mail,omitempty"`
		Failing    []failingSource  `json:"failingSources,omitempty"`
	}
	shownCondition struct {
		Name   string    `json:"name"`
		State  string    `json:"state"`
		Down   bool      `json:"down"`
		Since  time.Time `json:"since,omitzero"`
		Detail string    `json:"detail,omitempty"`
	}
	// shownLog is what the start found.
	shownLog struct {
		LastRecord    uint64 `json:"lastRecord"`
		Snapshot      uint64 `json:"snapshot"`
		TornBytes     int64  `json:"tornBytes"`
		AmbiguousTail bool   `json:"ambiguousTail"`
		Failure       string `json:"failure,omitempty"` // why the node stops
	}
	failingSource struct {
		ID      string           `json:"id"`
		State   collectors.State `json:"state"`
		Failure string           `json:"failure"`
	}
)

// readiness is how the node is, for its operator alone: it names causes.
func (m *management) readiness(w http.ResponseWriter, r *http.Request) {
	conditions := m.health.Conditions()
	shown := shownReadiness{
		Status: engine.ReadinessOf(conditions), Conditions: []shownCondition{}, Version: buildVersion(), Log: m.health.log(),
		Mail: m.health.mail(), Failing: m.sources.failing(),
	}
	for _, c := range conditions {
		shown.Conditions = append(shown.Conditions, shownCondition(c))
	}
	if shown.Status == engine.Unavailable {
		w.Header().Set("Content-Type", typeJSON)
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	answering(func(*http.Request) (any, error) { return shown, nil })(w, r)
}

// watched is what the management listener asks about the node as a whole.
type watched interface {
	engine.Health
	log() shownLog
	mail() *mail.Stats
}

// wholeHealth is health with the conditions of the front end.
type wholeHealth struct {
	*health
	front engine.Health
}

// Conditions is engine.Health.
func (h *wholeHealth) Conditions() []engine.Condition { return h.front.Conditions() }

func (h *health) log() shownLog {
	found := h.system.Recovery()
	shown := shownLog{LastRecord: found.Last, Snapshot: found.SnapshotSequence, TornBytes: found.TornBytes, AmbiguousTail: found.AmbiguousTail}
	if err := h.system.Err(); err != nil {
		shown.Failure = err.Error()
	}
	return shown
}

// mail is what became of letters, nil without a mail server.
func (h *health) mail() *mail.Stats {
	if h.post.smtp == nil {
		return nil
	}
	stats := h.post.smtp.Stats()
	return &stats
}

// failing are the sources that gave nothing when they were asked last.
func (c *collection) failing() []failingSource {
	var failing []failingSource
	for _, h := range c.health() {
		switch h.State {
		case collectors.Failing, collectors.Resting, collectors.Held:
			failing = append(failing, failingSource{h.SourceID, h.State, h.Failure.Error()})
		}
	}
	return failing
}

// conditionMetrics turns conditions into numbers: 1 for the state that each is in.
type conditionMetrics struct {
	health           engine.Health
	condition, ready family
}

func newConditionMetrics(of engine.Health) *conditionMetrics {
	return &conditionMetrics{
		of,
		gaugeFamily("condition", "1 for the state that a condition of the node is in, as /readyz tells it.", "name", "state"),
		gaugeFamily("readiness", "1 for how the node is as a whole: ready, degraded or unavailable.", "status"),
	}
}

// Describe names what Collect gives.
func (m *conditionMetrics) Describe(all chan<- *prometheus.Desc) {
	describe(all, m.condition, m.ready)
}

// Collect gives the states of the moment.
func (m *conditionMetrics) Collect(all chan<- prometheus.Metric) {
	conditions := m.health.Conditions()
	for i := range conditions {
		give(all, m.condition, 1, conditions[i].Name, conditions[i].State)
	}
	give(all, m.ready, 1, string(engine.ReadinessOf(conditions)))
}
