package apitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

func (w *daySimulation) sendRequests(c *dayClient, requests int) {
	for range requests {
		path := []string{best, "/v1/rates?currency=USD", "/v1/rates", "/v1/rates?institution=bhd"}[w.random.IntN(4)]
		status, body, header := w.get(c, path, c.key)
		w.counts["requests"]++
		at := w.srv.Clock.Now()
		switch status {
		case http.StatusOK:
			c.admitted = append(c.admitted, at)
			w.checkRates(path, body, at)
		case http.StatusTooManyRequests:
			w.counts["refused"]++
		default:
			w.fail("%s: %d %s", path, status, body)
			return
		}
		w.checkQuota(c, status == http.StatusOK, at, header)
	}
}

func (c *dayClient) charged(at time.Time) (day, minute int) {
	for _, one := range c.admitted {
		if engine.DateOf(one) == engine.DateOf(at) {
			day++
		}
		if at.Sub(one) < account.MinuteSpan {
			minute++
		}
	}
	return day, minute
}

// checkQuota compares an answer with the admissions before it: neither window is over-granted, the reported remainder
// is right and never rises within the day, and a client with quota left is not refused.
func (w *daySimulation) checkQuota(c *dayClient, admitted bool, at time.Time, header http.Header) {
	today := engine.DateOf(at)
	day, minute := c.charged(at)
	var limit, shown int
	var reset int64
	line := header.Get("X-RateLimit-Limit") + " " + header.Get("X-RateLimit-Remaining") + " " + header.Get("X-RateLimit-Reset")
	if _, err := fmt.Sscanf(line, "%d %d %d", &limit, &shown, &reset); err != nil {
		w.fail("X-RateLimit is %q: %v", line, err)
		return
	}
	showsDay := limit != dayMinute // the tighter window: the other has at least as much left
	if least, seen := c.lowestRemaining[today]; showsDay && seen && shown > least {
		w.fail("%s: remaining rose from %d to %d", c.email, least, shown)
	}
	if showsDay {
		c.lowestRemaining[today] = shown
	}
	young := at.Sub(w.startedAt) < account.MinuteSpan // after a start the minute counts leased requests
	switch {
	case day > dayQuota || minute > dayMinute:
		w.fail("%s: %d admitted today, %d within the minute", c.email, day, minute)
	case shown > dayQuota-day || shown > dayMinute-minute:
		w.fail("%s: %d remain after %d of the day and %d of the minute", c.email, shown, day, minute)
	case showsDay && shown < dayQuota-day-c.forfeited[today]:
		w.fail("%s: %d remain of the day after %d, a crash may have cost %d", c.email, shown, day, c.forfeited[today])
	case !showsDay && shown < dayMinute-minute && !young:
		w.fail("%s: %d remain of the minute after %d", c.email, shown, minute)
	case !admitted && shown > 0:
		w.fail("%s is refused with %d left", c.email, shown)
	case showsDay && reset != (today+1).Start().Unix():
		w.fail("%s: the day ends at %d", c.email, reset)
	}
}

// checkRates compares a list with what was acknowledged: nothing older is served, and expired rates are stale or not
// ranked.
func (w *daySimulation) checkRates(path, body string, at time.Time) {
	var list struct {
		Data []struct {
			InstitutionID, Sell string
			Stale               bool
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		w.fail("%v: %s", err, body)
		return
	}
	w.mu.Lock()
	quotes := maps.Clone(w.quotes)
	w.mu.Unlock()
	seen := map[string]bool{}
	for _, rate := range list.Data {
		seen[rate.InstitutionID] = true
		want, known := quotes[rate.InstitutionID]
		if !known {
			continue
		}
		expired := !want.expires.IsZero() && !at.Before(want.expires)
		if rate.Stale != expired || expired && path == best {
			w.fail("%s: %+v, expires %s", path, rate, want.expires)
		}
		if expired {
			w.counts["expiries seen"]++
		}
		if rate.Sell != want.sell {
			w.fail("%s shows %s of %s, acknowledged was %s", path, rate.Sell, rate.InstitutionID, want.sell)
		}
	}
	for id, q := range quotes {
		current := q.expires.IsZero() || at.Before(q.expires)
		if (path == best && current || path == "/v1/rates") && !seen[id] {
			w.fail("%s lacks %s: %s", path, id, body)
		}
	}
}
