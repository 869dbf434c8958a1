package apitest

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func get(t testing.TB, client *http.Client, url string) (int, string, http.Header) {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body), res.Header
}

func TestX(t *testing.T) {
	for range 3 {
		t0 := time.Now()
		srv := Start(t, Seed("standard"))
		s, b, h := get(t, srv.Client, srv.URL+"/v1/rates/best?currency=USD&operation=buy")
		fmt.Println(time.Since(t0), s, len(b), h)
		t1 := time.Now()
		srv.Close()
		fmt.Println("close", time.Since(t1))
	}
}

func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t, Seed("standard"), Follow(time.Now))
		s, b, h := get(t, srv.Client, srv.URL+"/v1/rates?limit=1")
		fmt.Println(s, b, h)
		time.Sleep(48 * time.Hour)
		s, b, h = get(t, srv.Client, srv.URL+"/v1/rates?limit=1")
		fmt.Println(s, b, h)
	})
}
