package simulated_test

import (
	"context"
	"errors"
	"log"
	"os"
	"time"

	"github.com/tasard/tasard/collectors/fetch"
	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/collectors/source"
)

// A made-up bank, asked over HTTPS at its real address.
func Example() {
	out := log.New(os.Stdout, "", 0)
	now := time.Date(2026, time.September, 21, 16, 0, 0, 0, time.UTC)
	market := simulated.NewMarket(1)
	market.Step(now)
	site := simulated.NewSite(market)
	if err := site.Start(); err != nil {
		out.Fatal(err)
	}
	client := fetch.New(fetch.Config{Clock: func() time.Time { return now }, Dial: site.Dial, Roots: site.Roots(), Pause: -1})
	definition, _ := simulated.Definitions(source.DefaultSet()).Find("demo-bhd-site")
	document, err := client.Fetch(context.Background(), definition, 0)
	if err != nil {
		out.Fatal(err)
	}
	result, err := definition.Parse(0, document)
	for _, o := range result.Observations {
		out.Println(o.InstitutionID, o.Currency, o.Buy, o.Sell)
	}
	faultErr := site.SetFault("demo-bhd-site", simulated.EmptyBody)
	_, fetchErr := client.Fetch(context.Background(), definition, 0)
	out.Println(fetchErr)
	client.Close()
	if err := errors.Join(err, faultErr, site.Close()); err != nil {
		out.Println(err)
	}
	// Output:
	// bhd USD 57.45 61.2
	// bhd EUR 65.9 71.5
	// empty: GET https://backend.bhd.com.do/api/modal-cambio-rate?populate=deep: a response without a body, found 200 OK
}
