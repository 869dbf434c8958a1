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

// Options say what the kit may do, and what it should know. The zero value reads only, without a key.
type Options struct {
	// Client asks. Nil is one of the kit's own. Redirects, which the contract does not have, are not followed.
	Client *http.Client
	// Key is sent with every data request, behind "Bearer ".
	Key string
	// Wait waits until the server takes requests again. Nil is the time itself; a server with a clock of its own moves it.
	Wait func(time.Duration)
	// Code tells the newest login code that was sent to an address. With it the rules of accounts and keys are asked too.
	Code func(email string) (string, error)
	// Domain is behind the @ of the addresses that Code knows. "" = conformance.example.
	Domain string
	// Rules are the ids of the rules to ask for. Nil is all.
	Rules []string
	// Exhaust lets the kit use up a minute of the caller, to see the limit. It needs a server that enforces limits.
	Exhaust bool
}

// Finding is what became of one rule.
type Finding struct {
	Rule        string   // its id
	Description string   // what it says
	Problems    []string // none: it is kept
	Notes       []string // what could not be seen
}

// problemsMax is how many problems of a rule are told; the others are of the same kind.
const problemsMax = 20

// Run asks for all rules, each as a subtest.
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

// Check is Run without a test.
func Check(ctx context.Context, baseURL string, options Options) []Finding {
	c := newRecordingClient(ctx, strings.TrimSuffix(baseURL, "/"), options)
	var findings []Finding
	for _, r := range rules() {
		unwished := options.Rules != nil && !slices.Contains(options.Rules, r.id)
		if unwished || r.needs != nil && !r.needs(&options) {
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

// rule is one row of the table.
type rule struct {
	id, description string
	check           func(*ruleRun)
	needs           func(*Options) bool // nil: nothing
	afterOthers     bool                // it looks at the answers to the other rules
}

// changeRequest is one try of a rule.
func (c *recordingClient) runRule(r *rule) (finding Finding) {
	k := &ruleRun{recordingClient: c}
	defer func() {
		if cause := recover(); cause != nil {
			if _, ours := cause.(abortRule); !ours {
				panic(cause)
			}
		}
		if more := len(k.problems) - problemsMax; more > 0 {
			k.problems = append(k.problems[:problemsMax], fmt.Sprintf("and %d more", more))
		}
		finding = Finding{r.id, r.description, k.problems, k.notes}
	}()
	if c.configErr != nil {
		k.fatalf("%v", c.configErr)
	}
	r.check(k)
	return finding
}

// ruleRun is a rule being asked for.
type ruleRun struct {
	*recordingClient
	problems, notes []string
}

// abortRule ends a trial that can't go on: an answer is no answer.
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
