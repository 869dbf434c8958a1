package admin

import (
	"context"
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
func (l Listing[Item]) Ask(ctx context.Context, c *Client, query url.Values) (*Items[Item], error) {
	path := l.path
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	answered, err := c.ask(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	return newItems[Item](answered), nil
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
