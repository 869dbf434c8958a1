package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
)

// Operation is a question or a change that a node takes from its operator: Body is what is sent, Answer what comes back.
type Operation[Body, Answer any] struct{ method, path string }

// Listing is a question whose answer is one JSON object a line, however many.
type Listing[Item any] struct{ path string }

// None is the body of an operation that sends nothing.
type None struct{}

// The operations. In their paths an account is its number or its e-mail address.
var (
	ListAccounts   = Listing[ListedAccount]{"/accounts"}
	ShowAccount    = Operation[None, Account]{http.MethodGet, "/accounts/{account}"}
	SuspendAccount = Operation[Suspension, Account]{http.MethodPost, "/accounts/{account}/suspend"}
	RestoreAccount = Operation[By, Account]{http.MethodPost, "/accounts/{account}/restore"}
	LimitAccount   = Operation[LimitChange, Account]{http.MethodPost, "/accounts/{account}/limit"}

	ShowTransition       = Operation[None, Transition]{http.MethodGet, "/keys-required"}
	Announce             = Operation[Announcement, Transition]{http.MethodPost, "/keys-required"}
	WithdrawAnnouncement = Operation[By, Transition]{http.MethodDelete, "/keys-required"}

	ListHeld    = Listing[Held]{"/quarantine"} // currency and source in the query keep the others out
	ReleaseHeld = Operation[By, Verdict]{http.MethodPost, "/quarantine/{currency}/{number}/release"}
	RejectHeld  = Operation[By, Verdict]{http.MethodPost, "/quarantine/{currency}/{number}/reject"}

	SetRate      = Operation[ManualRate, RateChange]{http.MethodPost, "/rates"}
	WithdrawRate = Operation[Withdrawal, RateChange]{http.MethodDelete, "/rates"}

	ListSources = Operation[None, Sources]{http.MethodGet, "/sources"}
	ShowCluster = Operation[None, Cluster]{http.MethodGet, "/cluster"}
)

// Paths that answer something else than one JSON object.
const (
	MetricsPath = "/metrics"
	ReadyzPath  = "/readyz"
	livezPath   = "/livez"
	backupPath  = "/backup"
	profilePath = "/debug/pprof/"
)

// handle has the mux answer the operation with what do gives.
func (o Operation[Body, Answer]) handle(mux *http.ServeMux, do func(r *http.Request, body Body) (Answer, error)) {
	mux.HandleFunc(o.method+" "+o.path, func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody[Body](r)
		if err != nil {
			refuse(w, err)
			return
		}
		answer, err := do(r, body)
		if err != nil {
			refuse(w, err)
			return
		}
		writeJSON(w, http.StatusOK, answer)
	})
}

// handle has the mux answer with what list gives, as it comes, so that a long list is never whole in memory.
func (l Listing[Item]) handle(mux *http.ServeMux, list func(r *http.Request) (iter.Seq[Item], error)) {
	mux.HandleFunc("GET "+l.path, func(w http.ResponseWriter, r *http.Request) {
		items, err := list(r)
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", typeLines)
		out := bufio.NewWriter(w)
		defer func() { _ = out.Flush() }() // a caller that is gone needs no answer
		encoder := json.NewEncoder(out)
		for item := range items {
			if encoder.Encode(item) != nil {
				return
			}
		}
	})
}

// Ask has the node carry the operation out; values stand for the names in braces of its path, in their order.
func (o Operation[Body, Answer]) Ask(ctx context.Context, c *Client, body Body, values ...string) (answer Answer, err error) {
	var sent any = body
	if _, none := sent.(None); none {
		sent = nil
	}
	answered, err := c.ask(ctx, o.method, fill(o.path, values), sent)
	if err != nil {
		return answer, err
	}
	return answer, decode(answered, &answer)
}

// Ask is the list as it comes, to be closed by the caller.
func (l Listing[Item]) Ask(ctx context.Context, c *Client, query url.Values) (io.ReadCloser, error) {
	return c.ask(ctx, http.MethodGet, l.path+"?"+query.Encode(), nil)
}

// All reads a list to its end.
func (l Listing[Item]) All(answered io.Reader) (all []Item, err error) {
	for decoder := json.NewDecoder(answered); ; {
		var item Item
		switch err := decoder.Decode(&item); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, strange("read the node's answer: %w", err)
		}
		all = append(all, item)
	}
}

// fill puts values into the braces of a path.
func fill(path string, values []string) string {
	for _, value := range values {
		before, rest, _ := strings.Cut(path, "{")
		_, after, _ := strings.Cut(rest, "}")
		path = before + url.PathEscape(value) + after
	}
	return path
}
