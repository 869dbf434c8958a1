package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
)

// Operation is a call of the management API. Body and Response are the JSON types of request and response.
type Operation[Body, Response any] struct{ method, path string }

// NoBody is the Body of an operation without a request body.
type NoBody struct{}

// The operations. The path parameter account is an account's number or e-mail address.
var (
	ListAccounts   = Operation[NoBody, []ListedAccount]{http.MethodGet, "/accounts"}
	ShowAccount    = Operation[NoBody, Account]{http.MethodGet, "/accounts/{account}"}
	SuspendAccount = Operation[Suspension, Account]{http.MethodPost, "/accounts/{account}/suspend"}
	RestoreAccount = Operation[Author, Account]{http.MethodPost, "/accounts/{account}/restore"}
	UnlockLogin    = Operation[Author, Unlocked]{http.MethodPost, "/accounts/{account}/unlock"}
	LimitAccount   = Operation[LimitChange, Account]{http.MethodPost, "/accounts/{account}/limit"}

	ShowKeyPolicy        = Operation[NoBody, KeyPolicy]{http.MethodGet, "/keys-required"}
	Announce             = Operation[Announcement, KeyPolicy]{http.MethodPost, "/keys-required"}
	WithdrawAnnouncement = Operation[Author, KeyPolicy]{http.MethodDelete, "/keys-required"}

	ListQuarantine     = Operation[NoBody, []QuarantineEntry]{http.MethodGet, "/quarantine?currency={currency}&source={source}"} // "" selects all
	ReleaseQuarantined = Operation[Author, QuarantineResult]{http.MethodPost, "/quarantine/{currency}/{number}/release"}
	RejectQuarantined  = Operation[Author, QuarantineResult]{http.MethodPost, "/quarantine/{currency}/{number}/reject"}

	SetRate      = Operation[ManualRate, RateChange]{http.MethodPost, "/rates"}
	WithdrawRate = Operation[Withdrawal, RateChange]{http.MethodDelete, "/rates"}

	ImportObservations = Operation[Observations, engine.Receipt]{http.MethodPost, "/observations"}

	ListSources = Operation[NoBody, Sources]{http.MethodGet, "/sources"}
	RunSource   = Operation[Author, SourceRun]{http.MethodPost, "/sources/{source}/run"} // fetches the source and publishes the rates
	ShowCluster = Operation[NoBody, engine.Cluster]{http.MethodGet, "/cluster"}
)

// Paths that are not in the table.
const (
	MetricsPath = "/metrics"
	ReadyzPath  = "/readyz"
	livezPath   = "/livez"
	backupPath  = "/backup"
	profilePath = "/debug/pprof/"
)

func (o Operation[Body, Response]) register(mux *http.ServeMux, handle func(r *http.Request, body Body) (Response, error)) {
	path, _, _ := strings.Cut(o.path, "?")
	mux.HandleFunc(o.method+" "+path, func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody[Body](r)
		if err != nil {
			writeError(w, err)
			return
		}
		response, err := handle(r, body)
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, response)
	})
}

// Call calls the operation. values replace the parameters of the path, in order.
func (o Operation[Body, Response]) Call(ctx context.Context, c *Client, body Body, values ...string) (response Response, err error) {
	var request any = body
	if _, noBody := request.(NoBody); noBody {
		request = nil
	}
	stream, err := c.call(ctx, o.method, expandPath(o.path, values), request)
	if err != nil {
		return response, err
	}
	return response, decode(stream, &response)
}

// expandPath replaces the parameters of a path or query, such as {account}, in order.
func expandPath(path string, values []string) string {
	for _, value := range values {
		before, remaining, _ := strings.Cut(path, "{")
		_, after, _ := strings.Cut(remaining, "}")
		path = before + strings.ReplaceAll(url.QueryEscape(value), "+", "%20") + after
	}
	return path
}

const (
	bodyMax  = 64 << 20 // maximum size of a request body in bytes; tasard import sends 2 to 3 MB
	typeJSON = "application/json"
)

// Error codes besides those of package engine.
const (
	CodeNotConfigured engine.Code = "not_configured" // the node's settings do not allow the operation
	CodeStopping      engine.Code = "stopping"       // the node stopped during the operation
)

// Limits of texts in requests, in characters.
const (
	ReasonMax = 200
	ByMax     = 80
	IDMax     = 80 // of an institution or a source
)

func writeJSON(w http.ResponseWriter, status int, response any) {
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(response) // fails only if the client has disconnected
}

// writeError writes an error response, with the causes of internal errors, because only operators read it.
func writeError(w http.ResponseWriter, err error) {
	response := Error{Code: engine.CodeInternalError, Message: err.Error()}
	status := http.StatusInternalServerError
	var engineErr *engine.Error
	if errors.As(err, &engineErr) {
		response = Error{engineErr.Code, engineErr.Message}
		status = http.StatusConflict
		switch engineErr.Code {
		case engine.CodeInternalError:
			status = http.StatusInternalServerError
		case engine.CodeInvalidParameters:
			status = http.StatusBadRequest
		case engine.CodeNotFound:
			status = http.StatusNotFound
		case engine.CodeDataUnavailable, engine.CodeOverloaded, engine.CodeReadOnly, engine.CodeNoMajority, CodeStopping:
			status = http.StatusServiceUnavailable
		}
	}
	writeJSON(w, status, errorBody{response})
}

func badRequest(format string, args ...any) error {
	return &engine.Error{Code: engine.CodeInvalidParameters, Message: fmt.Sprintf(format, args...)}
}

// readBody reads a body, which must be exactly one JSON object. It also checks the author's name if the body has one.
// For NoBody it reads nothing.
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
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		return body, badRequest("the body does not fit this operation: %v", err)
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
