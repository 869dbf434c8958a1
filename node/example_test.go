package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/node"
)

// A node on a directory accepts a rate, which is asked for in memory and over HTTP.
func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "rates-")
	defer func() { _ = os.RemoveAll(dir) }()
	n, err := node.Open(ctx, node.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-n.Ready()
	_, err = n.System().Observe([]engine.Refresh{{SourceID: "manual", ObservedAt: time.Now(), Observations: []engine.Observation{
		{InstitutionID: "popular", Currency: "USD", Buy: "58.10", Sell: "59.30"},
	}}})
	fmt.Println(n.Rates(), err)
	res, err := http.Get(n.URL() + "/v1/rates/best?currency=USD&operation=buy")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	var best struct {
		Data []struct{ InstitutionID, Buy, Sell string }
	}
	_ = json.NewDecoder(res.Body).Decode(&best)
	fmt.Println(res.StatusCode, best.Data, n.Close(ctx))
	// Output:
	// 1 <nil>
	// 200 [{popular 58.10 59.30}] <nil>
}
