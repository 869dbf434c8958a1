package conformance_test

import (
	"context"
	"fmt"

	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/httpapi/apitest/conformance"
)

// Check works on any server, here on one in memory. In a test, Run makes a subtest of each rule.
func ExampleCheck() {
	node, err := apitest.Open(apitest.Seed("standard"))
	if err != nil {
		fmt.Println(err)
		return
	}
	options := conformance.Options{Client: node.Client, Wait: node.Clock.Advance, Rules: []string{"S2", "S8"}}
	for _, finding := range conformance.Check(context.Background(), node.URL, options) {
		fmt.Println(finding.Rule, finding.Description, len(finding.Problems))
	}
	fmt.Println(node.Close())
	// Output:
	// S2 the best for the caller comes first 0
	// S8 amountDop is the exact product, rounded half up once 0
	// <nil>
}
