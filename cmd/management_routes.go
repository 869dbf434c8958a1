package cmd

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
)

// Paths of the management listener. ACCOUNT is a number or an e-mail address.
const (
	accountsPath = "/accounts"
	accountPath  = "/accounts/{account}"
	suspendPath  = accountPath + "/suspend"
	restorePath  = accountPath + "/restore"
	limitPath    = accountPath + "/limit"
	requiredPath = "/keys-required"
	clusterPath  = "/cluster"
)

const (
	adminBodyMax   = 4 << 10
	reasonRunesMax = 200
	byRunesMax     = 80
	idRunesMax     = 80 // of an institution or a source
	typeJSON       = "application/json"
	typeLines      = "application/x-ndjson"
)

// What tasard admin sends.
type (
	suspendRequest struct {
		Reason string `json:"reason"`
		By     string `json:"by,omitempty"`
	}
	byRequest struct {
		By string `json:"by,omitempty"`
	}
	// limitRequest: nil leaves a limit as it is, 0 makes it the node's.
	limitRequest struct {
		Day    *int   `json:"day,omitempty"`
		Minute *int   `json:"minute,omitempty"`
		By     string `json:"by,omitempty"`
	}
	announceRequest struct {
		At time.Time `json:"at"`
		By string    `json:"by,omitempty"`
	}
)

// adminError is how the listener refuses.
type adminError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// adminRefusal is the body of every refusal.
type adminRefusal struct {
	Error adminError `json:"error"`
}

// routes are the operations of the listener.
func (m *management) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+accountsPath, m.listAccounts)
	mux.HandleFunc("GET "+accountPath, answering(m.showAccount))
	mux.HandleFunc("POST "+suspendPath, changing(m.suspend))
	mux.HandleFunc("POST "+restorePath, changing(m.restore))
	mux.HandleFunc("POST "+limitPath, changing(m.limit))
	mux.HandleFunc("GET "+requiredPath, answering(m.showRequired))
	mux.HandleFunc("POST "+requiredPath, changing(m.announce))
	mux.HandleFunc("DELETE "+requiredPath, changing(m.withdraw))
	m.quarantineRoutes(mux)
	m.rateRoutes(mux)
	m.sourceRoutes(mux)
	if m.health != nil {
		mux.HandleFunc("GET "+readyzPath, m.readiness)
	}
	mux.HandleFunc("GET "+backupPath, m.backup)
	mux.HandleFunc("GET "+clusterPath, answering(m.showCluster))
	profileRoutes(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuseAdmin(w, &engine.Error{Code: engine.CodeNotFound, Message: "this node does not know the operation; do node and command have the same version?"})
	})
	return mux
}

// lines is an answer of one JSON object a line, written as it comes.
type lines struct {
	out     *bufio.Writer
	encoder *json.Encoder
}

func linesTo(w http.ResponseWriter) *lines {
	w.Header().Set("Content-Type", typeLines)
	out := bufio.NewWriter(w)
	return &lines{out, json.NewEncoder(out)}
}

// write is false when the caller is gone.
func (l *lines) write(line any) bool { return l.encoder.Encode(line) == nil }

// end writes what is left; a caller that is gone needs no answer.
func (l *lines) end() { _ = l.out.Flush() }

// answering writes what a question gives as JSON.
func answering(ask func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := ask(r)
		if err != nil {
			refuseAdmin(w, err)
			return
		}
		w.Header().Set("Content-Type", typeJSON)
		_ = json.NewEncoder(w).Encode(answer) // a caller that is gone needs no answer
	}
}

// changing is answering for operations with a body.
func changing[T any](change func(r *http.Request, body T) (any, error)) http.HandlerFunc {
	return answering(func(r *http.Request) (any, error) {
		body, err := readAdminBody[T](r)
		if err != nil {
			return nil, err
		}
		return change(r, body)
	})
}

// refuseAdmin writes an error. The causes of internal ones are for the operator too: there is nobody else here.
func refuseAdmin(w http.ResponseWriter, err error) {
	refusal := adminError{Code: string(engine.CodeInternalError), Message: err.Error()}
	status := http.StatusInternalServerError
	var named *engine.Error
	if errors.As(err, &named) {
		refusal = adminError{string(named.Code), named.Message}
		status = http.StatusConflict
		switch named.Code {
		case engine.CodeInvalidParameters:
			status = http.StatusBadRequest
		case engine.CodeNotFound:
			status = http.StatusNotFound
		case engine.CodeDataUnavailable, engine.CodeOverloaded, engine.CodeReadOnly, codeLeaving:
			status = http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(adminRefusal{refusal}) // a caller that is gone needs no answer
}

func badRequest(format string, args ...any) error {
	return &engine.Error{Code: engine.CodeInvalidParameters, Message: fmt.Sprintf(format, args...)}
}

// readAdminBody reads one JSON object and nothing else.
func readAdminBody[T any](r *http.Request) (body T, err error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != typeJSON {
		return body, badRequest("the body must be sent as Content-Type: %s", typeJSON)
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, adminBodyMax+1))
	if err != nil || len(text) > adminBodyMax {
		return body, badRequest("the body must be at most %d bytes long", adminBodyMax)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		return body, badRequest("the body is not what this operation takes: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return body, badRequest("the body must be one JSON object and nothing else")
	}
	return body, nil
}

// checkLine wants text that stays on one line of a list or a log.
func checkLine(name, text string, runesMax int) error {
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > runesMax ||
		strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return badRequest("%s must be one line of at most %d characters", name, runesMax)
	}
	return nil
}

// checkBy wants the name of who makes a change on one line.
func checkBy(by string) error { return checkLine("the name of who does it", by, byRunesMax) }

// account is the number of the account that the path names.
func (m *management) account(r *http.Request) (uint64, error) {
	text := r.PathValue("account")
	if id, err := strconv.ParseUint(text, 10, 64); err == nil {
		return id, nil
	}
	email, err := engine.ParseEmail(text)
	if err != nil {
		return 0, badRequest("%q is neither the number of an account nor an e-mail address", text)
	}
	accounts, err := m.node.ListAccounts()
	if err != nil {
		return 0, err
	}
	for i := range accounts {
		if accounts[i].Email == email.ID() {
			return accounts[i].ID, nil
		}
	}
	return 0, &engine.Error{Code: engine.CodeNotFound, Message: "no account has this e-mail address"}
}

// changed writes a change down and answers with what the account is now.
func (m *management) changed(operation string, id uint64, by string) (any, error) {
	m.log.Info("changed by an operator", "operation", operation, "account", id, "by", by)
	return m.describe(id)
}

func (m *management) suspend(r *http.Request, body suspendRequest) (any, error) {
	id, by, err := m.target(r, body.By)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(body.Reason) == "" {
		return nil, badRequest("a suspension needs a reason")
	}
	if err := checkLine("the reason", body.Reason, reasonRunesMax); err != nil {
		return nil, err
	}
	if err := m.node.SuspendAccount(id, body.Reason, by); err != nil {
		return nil, err
	}
	return m.changed("suspend", id, by)
}

func (m *management) restore(r *http.Request, body byRequest) (any, error) {
	id, by, err := m.target(r, body.By)
	if err != nil {
		return nil, err
	}
	if err := m.node.RestoreAccount(id, by); err != nil {
		return nil, err
	}
	return m.changed("restore", id, by)
}

func (m *management) limit(r *http.Request, body limitRequest) (any, error) {
	id, by, err := m.target(r, body.By)
	if err != nil {
		return nil, err
	}
	record, _, err := m.node.ShowAccount(id)
	if err != nil {
		return nil, err
	}
	allowance := record.Allowance
	for _, limit := range []struct {
		name  string
		given *int
		into  *int
		most  int
	}{{"day", body.Day, &allowance.Day, quotaDayMax}, {"minute", body.Minute, &allowance.Minute, quotaMinuteMax}} {
		switch {
		case limit.given == nil:
		case *limit.given < 0 || *limit.given > limit.most:
			return nil, badRequest("the limit of the %s must be from 1 to %d, or 0 for the node's", limit.name, limit.most)
		default:
			*limit.into = *limit.given
		}
	}
	if err := m.node.LimitAccount(id, allowance, by); err != nil {
		return nil, err
	}
	return m.changed("limit", id, by)
}

// target is the account of a change, and who makes it.
func (m *management) target(r *http.Request, by string) (uint64, string, error) {
	if err := checkBy(by); err != nil {
		return 0, "", err
	}
	id, err := m.account(r)
	return id, who(r.Context(), by), err
}

func (m *management) showRequired(*http.Request) (any, error) {
	return m.describeTransition(), nil
}

func (m *management) announce(r *http.Request, body announceRequest) (any, error) {
	if err := checkBy(body.By); err != nil {
		return nil, err
	}
	if m.mail == mailLog {
		return nil, &engine.Error{Code: codeUnprepared, Message: unsafeMail}
	}
	by := who(r.Context(), body.By)
	transition, err := m.node.Announce(body.At, by)
	if err != nil {
		return nil, err
	}
	m.log.Info("changed by an operator", "operation", "announce", "requiredAt", transition.RequiredAt, "by", by)
	return m.describeTransition(), nil
}

func (m *management) withdraw(r *http.Request, body byRequest) (any, error) {
	if err := checkBy(body.By); err != nil {
		return nil, err
	}
	by := who(r.Context(), body.By)
	if err := m.node.WithdrawAnnouncement(by); err != nil {
		return nil, err
	}
	m.log.Info("changed by an operator", "operation", "withdraw", "by", by)
	return m.describeTransition(), nil
}
