package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"contract-check/gen"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: contract-check URL")
		os.Exit(64)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := gen.NewClientWithResponses(os.Args[1])
	if err == nil {
		err = errors.Join(best(ctx, client), convert(ctx, client), detail(ctx, client), refused(ctx, client))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("the generated client has asked four operations and understood every answer")
}

func best(ctx context.Context, client *gen.ClientWithResponses) error {
	limit := 3
	got, err := client.ListBestRatesWithResponse(ctx, &gen.ListBestRatesParams{Currency: "USD", Operation: gen.Buy, Limit: &limit})
	if err != nil || got.JSON200 == nil {
		return fmt.Errorf("best: %v %s", err, status(got.HTTPResponse))
	}
	if page := got.JSON200; len(page.Data) != limit || page.Data[0].Sell == nil || page.Meta.NextCursor == nil || page.Operation != gen.Buy {
		return fmt.Errorf("best: %s", got.Body)
	}
	return nil
}

func convert(ctx context.Context, client *gen.ClientWithResponses) error {
	got, err := client.ConvertWithResponse(ctx, &gen.ConvertParams{Currency: "EUR", Operation: gen.Sell, Amount: "250.50"})
	if err != nil || got.JSON200 == nil {
		return fmt.Errorf("convert: %v %s", err, status(got.HTTPResponse))
	}
	if items := got.JSON200.Data; len(items) == 0 || items[0].AmountDop == "" || items[0].ForeignAmount != "250.50" {
		return fmt.Errorf("convert: %s", got.Body)
	}
	return nil
}

func detail(ctx context.Context, client *gen.ClientWithResponses) error {
	got, err := client.GetInstitutionWithResponse(ctx, "no-such", nil)
	if err != nil || got.JSON404 == nil || got.JSON404.Error.Code != gen.ErrorCodeInstitutionNotFound {
		return fmt.Errorf("institution: %v %s", err, status(got.HTTPResponse))
	}
	return nil
}

func refused(ctx context.Context, client *gen.ClientWithResponses) error {
	cursor := -1
	got, err := client.ListHistoryWithResponse(ctx, &gen.ListHistoryParams{Cursor: &cursor})
	if err != nil || got.JSON400 == nil || got.JSON400.Error.Details == nil {
		return fmt.Errorf("history: %v %s", err, status(got.HTTPResponse))
	}
	name, err := (*got.JSON400.Error.Details)[0].Path[0].AsErrorDetailPath0()
	if err != nil || name != "cursor" {
		return fmt.Errorf("history: path %q: %v", name, err)
	}
	return nil
}

func status(response *http.Response) string {
	if response == nil {
		return "no answer"
	}
	return response.Status
}
