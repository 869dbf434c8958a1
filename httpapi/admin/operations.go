package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
)

// Operation is a call of the management API, with the types of the request and the answer.
type Operation[Body, Answer any] struct{ method, path string }

// List is a call whose answer has one JSON object per line.
type List[Item any] struct{ path string }

// NoBody is the request of an operation without a body.
type NoBody struct{}

// The operations. In paths an account is its number or its e-mail address.
var (
	ListAccounts   = List[ListedAccount]{"/accounts"}
	ShowAccount    = Operation[NoBody, Account]{http.MethodGet, "/accounts/{account}"}
	SuspendAccount = Operation[Suspension, Account]{http.MethodPost, "/accounts/{account}/suspend"}
	RestoreAccount = Operation[Author, Account]{http.MethodPost, "/accounts/{account}/restore"}
	LimitAccount   = Operation[LimitChange, Account]{http.MethodPost, "/accounts/{account}/limit"}

	ShowKeyPolicy        = Operation[NoBody, KeyPolicy]{http.MethodGet, "/keys-required"}
	Announce             = Operation[Announcement, KeyPolicy]{http.MethodPost, "/keys-required"}
	WithdrawAnnouncement = Operation[Author, KeyPolicy]{http.MethodDelete, "/keys-required"}

	ListQuarantine     = List[QuarantineEntry]{"/quarantine"} // the query may select currency and source
	ReleaseQuarantined = Operation[Author, QuarantineResult]{http.MethodPost, "/quarantine/{currency}/{number}/release"}
	RejectQuarantined  = Operation[Author, QuarantineResult]{http.MethodPost, "/quarantine/{currency}/{number}/reject"}

	SetRate      = Operation[ManualRate, RateChange]{http.MethodPost, "/rates"}
	WithdrawRate = Operation[Withdrawal, RateChange]{http.MethodDelete, "/rates"}

	ListSources = Operation[NoBody, Sources]{http.MethodGet, "/sources"}
	ShowCluster = Operation[NoBody, Cluster]{http.MethodGet, "/cluster"}
)

// Paths that do not answer one JSON object.
const (
	MetricsPath = "/metrics"
	ReadyzPath  = "/readyz"
	livezPath   = "/livez"
	backupPath  = "/backup"
	profilePath = "/debug/pprof/"
)

// register adds the operation to mux.
func (o Operation[Body, Answer]) register(mux *http.ServeMux, handle func(r *http.Request, body Body) (Answer, error)) {
	mux.HandleFunc(o.method+" "+o.path, func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody[Body](r)
		if err != nil {
			writeError(w, err)
			return
		}
		answer, err := handle(r, body)
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, answer)
	})
}

// register adds the list to mux. Items are written one by one, so that a long list is never in memory as a whole.
func (l List[Item]) register(mux *http.ServeMux, list func(r *http.Request) (iter.Seq[Item], error)) {
	mux.HandleFunc("GET "+l.path, func(w http.ResponseWriter, r *http.Request) {
		items, err := list(r)
		if err != nil {
			writeError(w, err)
			return
		}
		w.Header().Set("Content-Type", typeLines)
		out := bufio.NewWriter(w)
		defer func() { _ = out.Flush() }() // the client is gone
		encoder := json.NewEncoder(out)
		for item := range items {
			if encoder.Encode(item) != nil {
				return
			}
		}
	})
}

// Call calls the operation; values replace the names in braces of its path, in order.
func (o Operation[Body, Answer]) Call(ctx context.Context, c *Client, body Body, values ...string) (answer Answer, err error) {
	var request any = body
	if _, noBody := request.(NoBody); noBody {
		request = nil
	}
	stream, err := c.call(ctx, o.method, expandPath(o.path, values), request)
	if err != nil {
		return answer, err
	}
	return answer, decode(stream, &answer)
}

// Call returns the list as a stream, which the caller must close.
func (l List[Item]) Call(ctx context.Context, c *Client, query url.Values) (io.ReadCloser, error) {
	return c.call(ctx, http.MethodGet, l.path+"?"+query.Encode(), nil)
}

// ReadAll reads a list to its end.
func (l List[Item]) ReadAll(r io.Reader) (items []Item, err error) {
	for decoder := json.NewDecoder(r); ; {
		var item Item
		switch err := decoder.Decode(&item); {
		case errors.Is(err, io.EOF):
			return items, nil
		case err != nil:
			return nil, protocolErrorf("read the node's answer: %w", err)
		}
		items = append(items, item)
	}
}

// expandPath replaces the names in braces of a path.
func expandPath(path string, values []string) string {
	for _, value := range values {
		before, remaining, _ := strings.Cut(path, "{")
		_, after, _ := strings.Cut(remaining, "}")
		path = before + url.PathEscape(value) + after
	}
	return path
}

const (
	bodyMax   = 4 << 10 // bytes of a request
	typeJSON  = "application/json"
	typeLines = "application/x-ndjson"
)

// Error codes in addition to the engine's.
const (
	CodeNotConfigured engine.Code = "not_configured" // the node's settings do not allow it
	CodeStopping      engine.Code = "stopping"       // the node stops before the operation can end
)

// Limits of texts that an operator gives, in characters.
const (
	ReasonMax = 200
	ByMax     = 80
	IDMax     = 80 // of an institution or a source
)

func writeJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client is gone
}

// writeError writes an error response. It includes the causes of internal errors, because only the operator reads
// it.
func writeError(w http.ResponseWriter, err error) {
	response := Error{Code: engine.CodeInternalError, Message: err.Error()}
	status := http.StatusInternalServerError
	var engineErr *engine.Error
	if errors.As(err, &engineErr) {
		response = Error{engineErr.Code, engineErr.Message}
		status = http.StatusConflict
		switch engineErr.Code {
		case engine.CodeInvalidParameters:
			status = http.StatusBadRequest
		case engine.CodeNotFound:
			status = http.StatusNotFound
		case engine.CodeDataUnavailable, engine.CodeOverloaded, engine.CodeReadOnly, CodeStopping:
			status = http.StatusServiceUnavailable
		}
	}
	writeJSON(w, status, errorBody{response})
}

func badRequest(format string, args ...any) error {
	return &engine.Error{Code: engine.CodeInvalidParameters, Message: fmt.Sprintf(format, args...)}
}

// readBody reads a body of one JSON object and checks its author. For NoBody it reads nothing.
func readBody[T any](r *http.Request) (body T, err error) {
	if _, noBody := any(body).(NoBody); noBody {
		return body, nil
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != typeJSON {
		return body, badRequest("the body must be sent as Content-Type: %s", typeJSON)
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, bodyMax+1))
	if err != nil || len(text) > bodyMax {
		return body, badRequest("the body must be at most %d bytes long", bodyMax)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		return body, badRequest("the body is not what this operation takes: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return body, badRequest("the body must be one JSON object and nothing else")
	}
	if authored, ok := any(body).(interface{ author() string }); ok {
		err = checkLine("the author's name", authored.author(), ByMax)
	}
	return body, err
}

// checkLine returns an error unless text is one printable line of at most runesMax characters.
func checkLine(name, text string, runesMax int) error {
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > runesMax ||
		strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return badRequest("%s must be one line of at most %d characters", name, runesMax)
	}
	return nil
}
