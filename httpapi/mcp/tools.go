package mcp

import (
	"context"
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
			"Where foreign currency is bought or sold best now: current commercial rates, the best for the user first. With an amount each says what that makes in pesos.", s.bestRate),
		tool(s, "convert", "Convert an amount",
			"An amount of foreign currency in Dominican pesos at each institution, the best for the user first; with kind=reference at the official reference rate. Fees are not included.", s.convert),
		tool(s, "rate_history", "History of exchange rates",
			"Daily rates of a currency over up to 365 days, by institution: the last rate of each day. Without dates the last seven days.", s.history),
		tool(s, "list_currencies", "Currencies",
			"Which currencies there are, and how many rates are published and current for each.", s.listCurrencies),
		tool(s, "list_institutions", "Institutions",
			"Which institutions publish rates, with their ids, types and currencies.", s.listInstitutions),
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
		constrain(input)
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
// meaning in all tools.
func constrain(input *jsonschema.Schema) {
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
}

// provenance has the fields that all results have in common: currency, time, attribution and notice.
type provenance struct {
	QuoteCurrency string `json:"quoteCurrency" jsonschema:"the currency of all rates and amounts but the foreign ones"`
	AsOf          string `json:"asOf,omitempty" jsonschema:"when the node made the answer, in the time of Santo Domingo"`
	Attribution   string `json:"attribution" jsonschema:"to be shown with the rates"`
	Notice        string `json:"notice" jsonschema:"to be shown with the rates"`
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

// limitOrDefault returns limit if it is valid, and defaultLimit if it is 0.
func limitOrDefault(limit, defaultLimit, limitMax int) (int, error) {
	switch {
	case limit == 0:
		return defaultLimit, nil
	case limit < 0 || limit > limitMax:
		return 0, fmt.Errorf("limit is %d, want 1 to %d", limit, limitMax)
	}
	return limit, nil
}
