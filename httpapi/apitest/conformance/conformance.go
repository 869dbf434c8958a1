package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// Options configures a check. With zero Options, the check only reads data and sends no API key.
type Options struct {
	// Client sends the requests; nil = a new client. Redirects are not followed, because the API has none.
	Client *http.Client
	// Key is the API key for requests for data. "" = no key.
	Key string
	// Wait waits for a time. nil = real time. If the server has a test clock, Wait can advance that clock instead.
	Wait func(time.Duration)
	// Code returns the newest login code that was sent to an e-mail address. If it is nil, the rules about accounts and
	// keys are not checked.
	Code func(email string) (string, error)
	// Domain is the domain of the e-mail addresses that the check uses. "" = conformance.example.
	Domain string
	// Rules has the ids of the rules to check. nil = all rules.
	Rules []string
	// Exhaust adds a rule that uses up the minute quota. The server must enforce limits.
	Exhaust bool
}

// Finding is the result of checking one rule.
type Finding struct {
	Rule        string // id of the rule in docs/decisions.md, such as S2
	Description string
	Problems    []string // violations of the rule
	Notes       []string // parts of the rule that could not be checked
}

const problemsMax = 20 // maximum number of problems that are reported for one rule

// Run checks the rules and reports each as a subtest.
func Run(t *testing.T, baseURL string, options Options) {
	t.Helper()
	for _, finding := range Check(t.Context(), baseURL, options) {
		t.Run(finding.Rule, func(t *testing.T) {
			t.Log(finding.Description)
			for _, note := range finding.Notes {
				t.Log(note)
			}
			for _, problem := range finding.Problems {
				t.Error(problem)
			}
		})
	}
}

// Check checks the rules and returns the results. A rule that fails is checked a second time, because data may have
// changed during the first check.
func Check(ctx context.Context, baseURL string, options Options) []Finding {
	c := newRecordingClient(ctx, strings.TrimSuffix(baseURL, "/"), options)
	if err := c.reach(); err != nil {
		return []Finding{{Rule: "server", Description: "the server answers", Problems: []string{err.Error()}}}
	}
	var findings []Finding
	for _, r := range rules() {
		isExcluded := options.Rules != nil && !slices.Contains(options.Rules, r.id)
		if isExcluded || r.enabled != nil && !r.enabled(&options) {
			continue
		}
		finding := c.runRule(&r)
		if len(finding.Problems) > 0 && !r.afterOthers {
			finding = c.runRule(&r)
		}
		findings = append(findings, finding)
	}
	return findings
}

type rule struct {
	id, description string
	check           func(*ruleRun)
	enabled         func(*Options) bool // nil = always
	afterOthers     bool                // the rule sends no request, but checks all recorded responses
}

// runRule checks a rule once.
func (c *recordingClient) runRule(r *rule) (finding Finding) {
	k := &ruleRun{recordingClient: c}
	defer func() {
		if cause := recover(); cause != nil {
			if _, ok := cause.(abortRule); !ok {
				panic(cause)
			}
		}
		if omitted := len(k.problems) - problemsMax; omitted > 0 {
			k.problems = append(k.problems[:problemsMax], fmt.Sprintf("and %d more", omitted))
		}
		finding = Finding{r.id, r.description, k.problems, k.notes}
	}()
	if c.configErr != nil {
		k.fatalf("%v", c.configErr)
	}
	r.check(k)
	return finding
}

// ruleRun is one check of one rule. Its methods report problems and notes.
type ruleRun struct {
	*recordingClient
	problems, notes []string
}

// abortRule is the panic value with which fatalf ends the check of a rule.
type abortRule struct{}

func (k *ruleRun) errorf(format string, args ...any) {
	k.problems = append(k.problems, fmt.Sprintf(format, args...))
}

func (k *ruleRun) fatalf(format string, args ...any) {
	k.errorf(format, args...)
	panic(abortRule{})
}

func (k *ruleRun) notef(format string, args ...any) {
	k.notes = append(k.notes, fmt.Sprintf(format, args...))
}
