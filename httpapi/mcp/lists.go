package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tasard/tasard/httpapi/client"
)

// noInput is the input of a tool without parameters.
type noInput struct{}

// currencies is the result of list_currencies.
type currencies struct {
	provenance
	Currencies []client.Currency `json:"currencies" jsonschema:"quoteCount counts published rates, currentQuoteCount those that have not expired"`
}

func (s *Server) listCurrencies(ctx context.Context, _ noInput) (*currencies, error) {
	list, err := s.client.Currencies(ctx)
	if err != nil {
		return nil, err
	}
	return &currencies{s.provenance(nil), list}, nil
}

// text returns the currencies as text for people.
func (c *currencies) text() string { return c.summary() + "\n" + c.Attribution + "\n" }

// summary lists the currencies. Those without current rates come last.
func (c *currencies) summary() string {
	var current, notCurrent []string
	for i := range c.Currencies {
		currency := &c.Currencies[i]
		if currency.CurrentQuoteCount > 0 {
			current = append(current, fmt.Sprintf("%s %s (%d)", currency.Code, currency.Name, currency.CurrentQuoteCount))
		} else {
			notCurrent = append(notCurrent, currency.Code)
		}
	}
	text := "Currencies, with the number of current rates: " + enumerate(current) + "."
	if len(notCurrent) > 0 {
		text += "\nWithout: " + enumerate(notCurrent) + "."
	}
	return text
}

// institutionsInput is the input of list_institutions.
type institutionsInput struct {
	Currency string `json:"currency,omitempty" jsonschema:"only institutions that publish this currency, three capital letters"`
}

// institutions is the result of list_institutions.
type institutions struct {
	provenance
	Institutions []institution `json:"institutions"`
}

// institution has the data of an institution that is useful for a language model.
type institution struct {
	ID           string   `json:"id" jsonschema:"what the parameter institution of other tools takes"`
	Name         string   `json:"name"`
	Type         string   `json:"type" jsonschema:"bank, association, exchange, official or cooperative"`
	Website      string   `json:"website,omitempty"`
	Currencies   []string `json:"currencies"`
	CurrentRates int      `json:"currentRates"`
}

func (s *Server) listInstitutions(ctx context.Context, in institutionsInput) (*institutions, error) {
	result := &institutions{provenance: s.provenance(nil), Institutions: []institution{}}
	for i, err := range s.client.AllInstitutions(ctx, client.InstitutionsQuery{Currency: in.Currency}) {
		if err != nil {
			return nil, err
		}
		result.Institutions = append(result.Institutions, institution{i.ID, i.Name, i.Type, i.Website, i.Currencies, i.CurrentQuoteCount})
	}
	return result, nil
}

func (i *institutions) text() string {
	var names []string
	for _, institution := range i.Institutions {
		names = append(names, fmt.Sprintf("%s = %s", institution.ID, institution.Name))
	}
	return fmt.Sprintf("%d institutions: %s.\n%s\n", len(names), enumerate(names), i.Attribution)
}

// hintForEmpty says why a result is empty: what the node knows of the currency and the institution that were asked for.
func (s *Server) hintForEmpty(ctx context.Context, currency, institutionID string) (string, error) {
	var hint strings.Builder
	if currency == client.QuoteCurrency {
		hint.WriteString("All rates are in Dominican pesos (DOP) for one unit of a foreign currency: name the foreign one. ")
	}
	if institutionID != "" {
		var unknown *client.Error
		switch detail, err := s.client.Institution(ctx, institutionID); {
		case errors.As(err, &unknown) && unknown.Status == http.StatusNotFound:
			return strings.Replace(unknown.Message, "GET /v1/institutions lists them", "list_institutions lists them", 1) + ".", nil
		case err != nil:
			return "", err
		default:
			fmt.Fprintf(&hint, "%s publishes no current rate of %s. ", detail.Name, currency)
		}
	}
	list, err := s.client.Currencies(ctx)
	if err != nil {
		return "", err
	}
	hint.WriteString((&currencies{Currencies: list}).summary())
	return hint.String(), nil
}

func enumerate(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
