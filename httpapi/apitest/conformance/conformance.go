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

// Options configures a check. With the zero value it only reads data, without a key.
type Options struct {
	// Client sends the requests; nil = a new client. Redirects are not followed, because the API has none.
	Client *http.Client
	// Key is sent with every data request, after "Bearer ".
	Key string
	// Wait waits; nil = in real time. If the server has a test clock, Wait can advance that clock instead.
	Wait func(time.Duration)
	// Code returns the newest login code that was sent to an e-mail address. nil = the rules of accounts and keys are
	// skipped.
	Code func(email string) (string, error)
	// Domain is the domain of the e-mail addresses that Code knows. "" = conformance.example.
	Domain string
	// Rules selects rules by id; nil = all.
	Rules []string
	// Exhaust adds a rule that uses up the minute quota. The server must enforce limits.
	Exhaust bool
}

// Finding is the result of a rule.
type Finding struct {
	Rule        string // id, such as S2
	Description string
	Problems    []string // violations of the rule
	Notes       []string // what could not be checked
}

// problemsMax is the maximum number of reported problems of a rule.
const problemsMax = 20

// Run checks the rules, each as a subtest.
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

// Check checks the rules and returns the results. A rule that fails is checked a second time, because the data may have
// changed during the first.
func Check(ctx context.Context, baseURL string, options Options) []Finding {
	c := newRecordingClient(ctx, strings.TrimSuffix(baseURL, "/"), options)
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

// rule is a rule of the API specification.
type rule struct {
	id, description string
	check           func(*ruleRun)
	enabled         func(*Options) bool // nil = always
	afterOthers     bool                // the rule checks all recorded responses
}

// runRule runs a rule once.
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

// ruleRun is one run of a rule.
type ruleRun struct {
	*recordingClient
	problems, notes []string
}

// abortRule is the panic value of fatalf.
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
