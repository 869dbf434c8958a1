package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tasard/tasard/httpapi/client"
)

func (s *Server) addTools() error {
	for _, add := range []func() error{
		tool(s, "best_rate", "Best exchange rates",
			"Where foreign currency is bought or sold best now in the Dominican Republic, in Dominican pesos (DOP): current rates of banks, savings "+
				"associations and exchange houses, the best for the user first. operation is what the user does: buy = the user buys foreign currency and "+
				"the institution sells it. With an amount each offer says what it makes in pesos. Example: the best place to buy 500 dollars is "+
				`{"currency":"USD","operation":"buy","amount":"500"}.`, s.bestRate),
		tool(s, "convert", "Convert an amount",
			"An amount of foreign currency in Dominican pesos (DOP) at each Dominican institution, the best for the user first; with kind=reference at "+
				"the official rate of the central bank. operation is what the user does with the foreign currency. Fees are not included. Example: what "+
				`250 euros bring is {"currency":"EUR","operation":"sell","amount":"250.00"}.`, s.convert),
		tool(s, "rate_history", "History of exchange rates",
			"Daily rates of a foreign currency in Dominican pesos (DOP) over up to 365 days, by Dominican institution: the last rate of each day. "+
				`Without dates the last seven days. Example: {"currency":"USD","institution":"popular","from":"2026-01-01","to":"2026-03-31"}.`, s.history),
		tool(s, "list_currencies", "Currencies",
			"Which foreign currencies have rates in Dominican pesos, and how many rates are published and current for each. Takes no parameters: {}.", s.listCurrencies),
		tool(s, "list_institutions", "Institutions",
			"Which Dominican banks, savings associations, exchange houses and official sources publish rates, with their ids, types and currencies. "+
				`Example: {"currency":"EUR"}.`, s.listInstitutions),
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

// toolResult is the result of a tool, as structured content. text returns the same as text for people.
type toolResult interface{ text() string }

// tool returns a function that registers a tool. The schemas of its input and output are derived from In and Out.
func tool[In any, Out toolResult](s *Server, name, title, description string, call func(context.Context, In) (Out, error)) func() error {
	return func() error {
		input, err := jsonschema.For[In](nil)
		if err != nil {
			return fmt.Errorf("mcp: input of %s: %w", name, err)
		}
		if err := constrain(name, input); err != nil {
			return fmt.Errorf("mcp: input of %s: %w", name, err)
		}
		openWorld, destructive := false, false
		sdk.AddTool(s.session, &sdk.Tool{
			Name: name, Title: title, Description: description, InputSchema: input,
			Annotations: &sdk.ToolAnnotations{Title: title, ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &destructive, OpenWorldHint: &openWorld},
		}, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, Out, error) {
			ctx, cancel := context.WithTimeout(ctx, s.callTimeout)
			defer cancel()
			out, err := call(ctx, in)
			if err != nil {
				s.logger.LogAttrs(ctx, slog.LevelWarn, "a tool gave an error", slog.String("tool", name), slog.String("error", err.Error()))
				var zero Out
				return nil, zero, s.explain(err)
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: out.text()}}}, out, nil
		})
		return nil
	}
}

// constrain adds patterns and enumerations to the schema of an input. Parameters with the same name have the same
// meaning in all tools, but the limit of rate_history is larger.
func constrain(tool string, input *jsonschema.Schema) error {
	if limit := input.Properties["limit"]; limit != nil {
		highest := offersMax
		if tool == "rate_history" {
			highest = rowsMax
		}
		var bounds jsonschema.Schema
		if err := json.Unmarshal(fmt.Appendf(nil, `{"minimum":1,"maximum":%d}`, highest), &bounds); err != nil {
			return err
		}
		limit.Minimum, limit.Maximum = bounds.Minimum, bounds.Maximum
	}
	for name, rule := range map[string]jsonschema.Schema{
		"currency":    {Pattern: `^[A-Z]{3}$`},
		"institution": {Pattern: `^[a-z0-9-]+$`},
		"amount":      {Pattern: `^[0-9]{1,12}([.][0-9]{1,2})?$`},
		"from":        {Pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}$`},
		"to":          {Pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}$`},
		"operation":   {Enum: []any{client.Buy, client.Sell}},
		"kind":        {Enum: []any{client.Commercial, client.Reference}},
		"channel":     {Enum: []any{client.Unspecified, client.Branch, client.Digital, client.Cash, client.Transfer}},
	} {
		if property := input.Properties[name]; property != nil {
			property.Pattern, property.Enum = rule.Pattern, rule.Enum
		}
	}
	return nil
}

// provenance has the fields that all results have in common: currency, time, attribution and notice.
type provenance struct {
	QuoteCurrency string `json:"quoteCurrency" jsonschema:"the currency of all rates and amounts but the foreign ones"`
	AsOf          string `json:"asOf,omitempty" jsonschema:"when the node made the answer, in the time of Santo Domingo"`
	Attribution   string `json:"attribution" jsonschema:"to be shown with the rates"`
	Notice        string `json:"notice" jsonschema:"to be shown with the rates"`
	Hint          string `json:"hint,omitempty" jsonschema:"why there is no rate, and what is known"`
}

// notice is a sentence of the terms of use.
const notice = "Rates are informational and may change."

func (s *Server) provenance(meta *client.Meta) provenance {
	p := provenance{QuoteCurrency: client.QuoteCurrency, Attribution: fmt.Sprintf("Source: %s, %s", Name, s.site), Notice: notice}
	if meta != nil {
		p.AsOf = localTime(meta.GeneratedAt)
	}
	return p
}

// footer returns the end of a text for people.
func (p *provenance) footer() string { return p.Notice + "\n" + p.Attribution + "\n" }

// localTime formats a time in Santo Domingo, which has no daylight saving time.
func localTime(t time.Time) string {
	return t.In(time.FixedZone("America/Santo_Domingo", -4*60*60)).Format("2006-01-02 15:04")
}
