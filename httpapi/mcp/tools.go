package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tasard/tasard/httpapi/client"
)

// arguments are the parameters of all tools.
type arguments struct {
	Currency    string
	Operation   client.Operation
	Amount      client.Decimal
	Institution string
	Channel     client.Channel
	Kind        client.Kind
	From, To    string
	Limit       int
}

// parameter is a parameter of tools. rule describes the valid values, in the schema and in errors.
type parameter struct {
	name, rule, pattern string
}

var parameters = []parameter{
	{"currency", "three capital letters, such as USD; list_currencies has all", `[A-Z]{3}`},
	{"operation", "what the user does with foreign currency: buy or sell", `buy|sell`},
	{"amount", "an amount of the foreign currency, not of pesos, as decimal text in quotes, such as \"250.00\"", `[0-9]{1,12}([.][0-9]{1,2})?`},
	{"institution", "an id from list_institutions, such as popular", `[a-z0-9-]{1,80}`},
	{"channel", "only one way of doing it: unspecified, branch, digital, cash or transfer", `unspecified|branch|digital|cash|transfer`},
	{"kind", "commercial (what institutions offer) or reference (the official rate)", `commercial|reference`},
	{"from", "first day, YYYY-MM-DD, such as 2026-01-31, at most 365 days before the last; without it the six days before the last", `[0-9]{4}-[0-9]{2}-[0-9]{2}`},
	{"to", "last day, YYYY-MM-DD, such as 2026-01-31; today if it is not given", `[0-9]{4}-[0-9]{2}-[0-9]{2}`},
	{"limit", "how many offers or rows, a number from 1 to 200", `[1-9][0-9]?|1[0-9][0-9]|200`},
}

// tool is a tool with the names of its parameters.
type tool struct {
	name, title, description string
	required, optional       string // names, separated by blanks
	call                     func(context.Context, *arguments) (result, error)
}

// result is the result of a tool, as text and as structured content.
type result struct {
	text string
	data map[string]any
}

func (s *Server) tools() []tool {
	return []tool{
		{
			"best_rate", "Best exchange rates", "Where foreign currency is bought or sold best now in the Dominican Republic, in Dominican pesos (DOP): current rates of banks, savings " +
				"associations and exchange houses, the best for the user first. operation is what the user does: buy = the user buys foreign currency and " +
				"the institution sells it. With an amount each offer says what it makes in pesos. Example: the best place to buy 500 dollars is " +
				`{"currency":"USD","operation":"buy","amount":"500"}.`, "currency operation", "amount institution channel limit", s.bestRate,
		},
		{
			"convert", "Convert an amount", "An amount of foreign currency in Dominican pesos (DOP) at each Dominican institution, the best for the user first; with kind=reference at " +
				"the official rate of the central bank. operation is what the user does with the foreign currency. Fees are not included. Example: what " +
				`250 euros bring is {"currency":"EUR","operation":"sell","amount":"250.00"}.`, "currency operation amount", "kind institution channel limit", s.convert,
		},
		{
			"rate_history", "History of exchange rates", "Daily rates of a foreign currency in Dominican pesos (DOP) over up to 365 days, by Dominican institution: the last rate of each day. " +
				`Without dates the last seven days. Example: {"currency":"USD","institution":"popular","from":"2026-01-01","to":"2026-03-31"}.`,
			"currency", "from to institution channel kind limit", s.history,
		},
		{
			"list_currencies", "Currencies", "Which foreign currencies have rates in Dominican pesos, and how many rates are published and current for each. Takes no parameters: {}.",
			"", "", s.currencies,
		},
		{
			"list_institutions", "Institutions", "Which Dominican banks, savings associations, exchange houses and official sources publish rates, with their ids, types and currencies. " +
				`Example: {"currency":"EUR"}.`, "", "currency", s.institutions,
		},
	}
}

// schema is the JSON schema of the tool's parameters.
func (t *tool) schema() map[string]any {
	properties := map[string]any{}
	for _, p := range parameters {
		switch {
		case !slices.Contains(strings.Fields(t.required+" "+t.optional), p.name):
		case p.name == "limit":
			properties[p.name] = map[string]any{"type": "integer", "minimum": 1, "maximum": 200, "description": p.rule}
		default:
			properties[p.name] = map[string]any{"type": "string", "pattern": "^(" + p.pattern + ")$", "description": p.rule}
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if t.required != "" {
		schema["required"] = strings.Fields(t.required)
	}
	return schema
}

// parse parses the arguments of a call. The error lists every invalid parameter, with the rule.
func (t *tool) parse(raw json.RawMessage) (*arguments, error) {
	in, given := new(arguments), map[string]any{}
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&given); err != nil {
		return nil, errors.New("the arguments must be a JSON object")
	}
	var problems []string
	for _, p := range parameters {
		value, ok := given[p.name]
		delete(given, p.name)
		switch known := slices.Contains(strings.Fields(t.required+" "+t.optional), p.name); {
		case !known && ok:
			problems = append(problems, p.name+": "+t.name+" has no such parameter")
		case !ok && slices.Contains(strings.Fields(t.required), p.name):
			problems = append(problems, p.name+" is missing: "+p.rule)
		case ok && !p.accepts(value):
			problems = append(problems, fmt.Sprintf("%s: %s; it is %v", p.name, p.rule, value))
		}
	}
	for name := range given {
		problems = append(problems, name+": "+t.name+" has no such parameter; it has "+cmp.Or(strings.TrimSpace(t.required+" "+t.optional), "none"))
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return nil, errors.New("correct the parameters and call again. " + strings.Join(problems, ". "))
	}
	return in, json.Unmarshal(raw, in)
}

// accepts reports whether a value has the type and form of the parameter.
func (p *parameter) accepts(value any) bool {
	text, ok := value.(string)
	if number, isNumber := value.(json.Number); p.name == "limit" {
		text, ok = number.String(), isNumber
	}
	return ok && regexp.MustCompile("^("+p.pattern+")$").MatchString(text)
}
