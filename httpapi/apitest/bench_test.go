package apitest

import (
	"net/http"
	"testing"
)

// BenchmarkStart is from nothing to the first answer, and to the end, its check included.
func BenchmarkStart(b *testing.B) {
	for name, options := range map[string][]Option{"empty": nil, "standard": {Seed("standard")}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				node, err := Open(options...)
				if err != nil {
					b.Fatal(err)
				}
				if status, _, _ := get(b, node.Client, node.URL+"/v1/currencies"); status != http.StatusOK {
					b.Fatal(status)
				}
				b.StopTimer()
				if err := node.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
