package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/httpapi/client"
)

// open returns a node in memory and a client for it. For a real node BaseURL and Key are enough.
func open() (*apitest.Node, *client.Client) {
	node, err := apitest.Open(apitest.Seed("standard"))
	if err != nil {
		panic(err)
	}
	c, err := client.New(client.Config{BaseURL: node.URL, HTTPClient: node.Client})
	if err != nil {
		panic(err)
	}
	return node, c
}

// The best rates to buy dollars.
func Example() {
	node, c := open()
	best, err := c.Best(context.Background(), client.BestQuery{Operation: client.Buy, Filter: client.Filter{Currency: "USD", Limit: 2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, rate := range best.Data {
		fmt.Println(rate.InstitutionName, *rate.Side(best.Operation), rate.LastCheckedAt.Format("2006-01-02 15:04"))
	}
	fmt.Println(node.Close())
	// Output:
	// Cooperativa del Sur 58.90 2026-03-02 15:00
	// Cambio Colonial 59.05 2026-03-02 12:02
	// <nil>
}

// An error says what was wrong.
func ExampleError() {
	node, c := open()
	_, err := c.Convert(context.Background(), client.ConvertQuery{Filter: client.Filter{Currency: "USD"}, Operation: client.Sell, Amount: "1,000"})
	var refused *client.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Status, refused.Code, refused.Details[0].Path)
	}
	fmt.Println(node.Close())
	// Output:
	// 400 invalid_parameters [amount]
	// <nil>
}
