package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
)

const (
	bodyMax   = 4 << 10 // bytes of what is sent
	typeJSON  = "application/json"
	typeLines = "application/x-ndjson"
)

// Codes of refusals beside the engine's.
const (
	CodeUnprepared engine.Code = "unprepared" // the settings of the node do not allow it
	CodeLeaving    engine.Code = "leaving"    // it takes longer than the node has, which is on its way down
)

// Longest texts that an operator may give, in characters.
const (
	ReasonMax = 200
	ByMax     = 80
	IDMax     = 80 // of an institution or a source
)

func writeJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // a caller that is gone needs no answer
}

// refuse writes an error. The causes of internal ones are for the operator too: there is nobody else here.
func refuse(w http.ResponseWriter, err error) {
	refusal := Refusal{Code: engine.CodeInternalError, Message: err.Error()}
	status := http.StatusInternalServerError
	var named *engine.Error
	if errors.As(err, &named) {
		refusal = Refusal{named.Code, named.Message}
		status = http.StatusConflict
		switch named.Code {
		case engine.CodeInvalidParameters:
			status = http.StatusBadRequest
		case engine.CodeNotFound:
			status = http.StatusNotFound
		case engine.CodeDataUnavailable, engine.CodeOverloaded, engine.CodeReadOnly, CodeLeaving:
			status = http.StatusServiceUnavailable
		}
	}
	writeJSON(w, status, refusalBody{refusal})
}

func badRequest(format string, args ...any) error {
	return &engine.Error{Code: engine.CodeInvalidParameters, Message: fmt.Sprintf(format, args...)}
}

// readBody reads one JSON object and nothing else, with an author that stays on its line; for None it reads nothing.
func readBody[T any](r *http.Request) (body T, err error) {
	if _, none := any(body).(None); none {
		return body, nil
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != typeJSON {
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
	if change, ok := any(body).(interface{ author() string }); ok {
		err = checkLine("the name of who does it", change.author(), ByMax)
	}
	return body, err
}

// checkLine wants text that stays on one line of a list or a log.
func checkLine(name, text string, runesMax int) error {
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > runesMax ||
		strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return badRequest("%s must be one line of at most %d characters", name, runesMax)
	}
	return nil
}
