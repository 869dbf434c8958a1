package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func servePages(items int, next func(cursor int) int) responder {
	return func(r *http.Request) (*http.Response, error) {
		var cursor, limit int
		_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &cursor) // 0 if it is missing
		if _, err := fmt.Sscan(r.URL.Query().Get("limit"), &limit); err != nil {
			return nil, err
		}
		var data []string
		for i := cursor; i < min(items, cursor+limit); i++ {
			data = append(data, fmt.Sprintf(`{"date":"2026-01-01","institutionId":"i%d","currency":"USD","buy":"1"}`, i))
		}
		following := "null"
		if cursor+limit < items && next(cursor+limit) >= 0 {
			following = fmt.Sprint(next(cursor + limit))
		}
		body := fmt.Sprintf(`{"data":[%s],"meta":{"total":%d,"nextCursor":%s,"generatedAt":"2026-01-01T00:00:00Z","quoteCurrency":"DOP"}}`, strings.Join(data, ","), items, following)
		return respondWith(200, body)(r)
	}
}

func sameCursor(cursor int) int { return cursor }

// TestIterate checks that every item comes once and in order, in as few requests as possible.
func TestIterate(t *testing.T) {
	for _, c := range []struct{ items, cursor, limit, take, want, requests int }{
		{0, 0, 0, 9999, 0, 1}, {450, 0, 0, 9999, 450, 3}, {400, 0, 0, 9999, 400, 2}, {450, 449, 0, 9999, 1, 1}, {10, 0, 3, 9999, 10, 4}, {10, 0, 3, 4, 4, 2}, {10, 0, 3, 3, 3, 1},
	} {
		s := &fakeTransport{responders: []responder{servePages(c.items, sameCursor)}}
		all := newTestClient(t, s).AllRates(t.Context(), Filter{Cursor: c.cursor, Limit: c.limit})
		for range 2 { // it can be repeated
			s.requests = nil
			seen := 0
			for entry, err := range all {
				if want := fmt.Sprintf("i%d", c.cursor+seen); err != nil || entry.InstitutionID != want {
					t.Fatalf("%+v: %v, %v, want %s", c, entry, err, want)
				}
				if seen++; seen == c.take {
					break
				}
			}
			if seen != c.want || len(s.requests) != c.requests {
				t.Errorf("%+v: %d items in %d requests", c, seen, len(s.requests))
			}
		}
	}
}

// TestIterate_Ends checks that a list that is too long and failures end an iteration with an error.
func TestIterate_Ends(t *testing.T) {
	for name, answers := range map[string][]responder{
		"no cursor after item 4": {servePages(10, func(int) int { return -1 })},
		"401":                    {servePages(10, sameCursor), refuseWith(401, CodeRevokedKey, "")},
	} {
		s := &fakeTransport{responders: answers}
		items, last := 0, error(nil)
		for _, err := range newTestClient(t, s).AllRates(t.Context(), Filter{Limit: 4}) {
			if last != nil {
				t.Errorf("%s: the walk goes on behind its error", name)
			}
			if last = err; err == nil {
				items++
			}
		}
		if items != 4 || last == nil || !strings.Contains(last.Error(), name) {
			t.Errorf("%s: %d items, %v", name, items, last)
		}
	}
}
