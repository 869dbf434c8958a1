package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// pages answers a list of a number of items by the parameters, as the contract says (P1).
func pages(items int, next func(cursor int) int) reply {
	return func(r *http.Request) (*http.Response, error) {
		var cursor, limit int
		_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &cursor) // none is 0
		if _, err := fmt.Sscan(r.URL.Query().Get("limit"), &limit); err != nil {
			return nil, err
		}
		var data []string
		for i := cursor; i < min(items, cursor+limit); i++ {
			data = append(data, fmt.Sprintf(`{"date":"2026-01-01","institutionId":"i%d","currency":"USD","buy":"1"}`, i))
		}
		following := "null"
		if cursor+limit < items {
			following = fmt.Sprint(next(cursor + limit))
		}
		body := fmt.Sprintf(`{"data":[%s],"meta":{"total":%d,"nextCursor":%s,"generatedAt":"2026-01-01T00:00:00Z","quoteCurrency":"DOP"}}`, strings.Join(data, ","), items, following)
		return says(200, body)(r)
	}
}

func straight(cursor int) int { return cursor }

// TestWalk: P1, every item once and in order, in as few requests as there can be, and none behind the last that is wanted.
func TestWalk(t *testing.T) {
	for _, c := range []struct{ items, cursor, limit, take, want, requests int }{
		{0, 0, 0, 9999, 0, 1}, {450, 0, 0, 9999, 450, 3}, {400, 0, 0, 9999, 400, 2}, {450, 449, 0, 9999, 1, 1}, {10, 0, 3, 9999, 10, 4}, {10, 0, 3, 4, 4, 2}, {10, 0, 3, 3, 3, 1},
	} {
		s := &script{answers: []reply{pages(c.items, straight)}}
		all := playing(t, s).AllHistory(t.Context(), HistoryQuery{Filter: Filter{Cursor: c.cursor, Limit: c.limit}})
		for range 2 { // it can be walked again
			s.asked = nil
			seen := 0
			for entry, err := range all {
				if want := fmt.Sprintf("i%d", c.cursor+seen); err != nil || entry.InstitutionID != want {
					t.Fatalf("%+v: %v, %v, want %s", c, entry, err, want)
				}
				if seen++; seen == c.take {
					break
				}
			}
			if seen != c.want || len(s.asked) != c.requests {
				t.Errorf("%+v: %d items in %d requests", c, seen, len(s.asked))
			}
		}
	}
}

// TestWalk_Ends: a server that leads in a circle, back or ahead is told, and so is one that fails under way.
func TestWalk_Ends(t *testing.T) {
	for name, answers := range map[string][]reply{
		"cursor": {pages(10, func(int) int { return 0 })},
		"next":   {pages(10, func(cursor int) int { return cursor + 1 })},
		"401":    {pages(10, straight), refuses(401, CodeRevokedKey, "")},
	} {
		s := &script{answers: answers}
		items, told := 0, error(nil)
		for _, err := range playing(t, s).AllHistory(t.Context(), HistoryQuery{Filter: Filter{Limit: 4}}) {
			if told != nil {
				t.Errorf("%s: the walk goes on behind its error", name)
			}
			if told = err; err == nil {
				items++
			}
		}
		if items != 4 || told == nil || !strings.Contains(told.Error(), name) {
			t.Errorf("%s: %d items, %v", name, items, told)
		}
	}
}
