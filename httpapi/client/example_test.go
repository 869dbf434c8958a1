package client_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/tasard/tasard/httpapi/client"
)

// recorded is an http.RoundTripper that answers with a recorded response. In a test of your own program, use a node of
// package apitest instead, which needs more modules.
type recorded string

func (file recorded) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := os.ReadFile("../testdata/golden/" + string(file))
	if err != nil {
		return nil, err
	}
	_, response, _ := bytes.Cut(text, []byte("\n")) // the first line is the request
	return http.ReadResponse(bufio.NewReader(bytes.NewReader(response)), r)
}

// newClient returns a client of a recorded node. For a real node BaseURL and Key are enough.
func newClient(file string) *client.Client {
	c, err := client.New(client.Config{BaseURL: "https://node.example", HTTPClient: &http.Client{Transport: recorded(file)}})
	if err != nil {
		panic(err)
	}
	return c
}

// The best rates to buy dollars.
func Example() {
	c := newClient("best-200.http")
	best, err := c.Best(context.Background(), client.BestQuery{Operation: client.Buy, Filter: client.Filter{Currency: "USD", Limit: 2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, rate := range best.Data {
		fmt.Println(rate.InstitutionName, *rate.Side(best.Operation), rate.LastCheckedAt.Format("2006-01-02 15:04"))
	}
	// Output:
	// Banco BHD 59.25 2025-11-21 12:00
	// Banco de Reservas 59.30 2025-11-21 12:00
}

// An error says what was wrong.
func ExampleError() {
	c := newClient("convert-400.http")
	_, err := c.Convert(context.Background(), client.ConvertQuery{Filter: client.Filter{Currency: "USD"}, Operation: client.Sell, Amount: "250.50"})
	var refused *client.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Status, refused.Code, refused.Details[0].Path)
	}
	// Output:
	// 400 invalid_parameters [limit 1]
}
