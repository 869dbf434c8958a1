package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tasard/tasard/httpapi/client"
)

const (
	messageBytesMax = 64 << 10         // size of a message from a client
	callTimeout     = 45 * time.Second // of a tool call, with retries; MCP clients usually wait a minute
	drainTimeout    = 30 * time.Second // maximum wait for open requests at the end of the input
)

// instructions explain the tools to the model.
const instructions = `Exchange rates of the Dominican Republic, as banks, savings associations and exchange houses publish them, and the official reference rate.
All rates are Dominican pesos (DOP) for one unit of foreign currency. operation is what the user does: buy = the user buys foreign currency (the venta of the institution applies),
sell = the user sells it (the compra applies). Amounts are in foreign currency, as decimal text. Use the amounts as they are given and don't calculate them again.
Show with every rate its institution, its date and the attribution; rates are informational and may change. Days are those of Santo Domingo.`

// Server serves the tools to language models. It is safe for concurrent use.
type Server struct {
	client   *client.Client
	protocol *sdk.Server
}

// New returns a server with all tools. It requests data from a node with c.
func New(c *client.Client, version string) *Server {
	s := &Server{c, sdk.NewServer(
		&sdk.Implementation{Name: "tasard", Title: "Dominican exchange rates", Version: version, WebsiteURL: c.BaseURL()},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{}},
	)}
	for _, t := range s.tools() {
		s.addTool(&t)
	}
	return s
}

func (s *Server) addTool(t *tool) {
	no := false
	s.protocol.AddTool(&sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description, InputSchema: t.schema(),
		Annotations: &sdk.ToolAnnotations{Title: t.title, ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
	}, func(ctx context.Context, request *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		in, err := t.parse(request.Params.Arguments)
		var out result
		if err == nil {
			out, err = t.call(ctx, in)
		}
		if err != nil {
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: s.explain(err).Error()}}}, nil
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: out.text}}, StructuredContent: out.data}, nil
	})
}

// explain adds advice for the model or its user to an error.
func (s *Server) explain(err error) error {
	var refused *client.Error
	if errors.Is(err, client.ErrNoResponse) {
		return fmt.Errorf("the node at %s does not answer. Tell the user; the operator of this server should check the node and --url: %w", s.client.BaseURL(), err)
	}
	if !errors.As(err, &refused) {
		return err
	}
	switch {
	case refused.Status == http.StatusUnauthorized:
		return fmt.Errorf("the node requires a valid API key. The operator of this server sets one with --key-file; %s/account creates keys: %w", s.client.BaseURL(), err)
	case refused.Status == http.StatusTooManyRequests:
		return fmt.Errorf("the quota is used up. Wait %s before the next call, and tell the user: %w", refused.RetryAfter, err)
	case refused.Status == http.StatusBadRequest:
		return fmt.Errorf("the parameters are not valid. Correct them and call again; list_currencies and list_institutions have the valid values: %w", err)
	case refused.Status >= http.StatusInternalServerError:
		return fmt.Errorf("the node can't answer now. Call again in a minute; if that fails too, tell the user: %w", err)
	}
	return err
}

// Serve serves one client, with one message in each line of in. It answers a malformed line with an error and
// continues. Serve returns nil when in has ended and all requests are answered. If ctx ends first, Serve returns an
// error; a read from in may then continue in the background, because it cannot be interrupted.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	l := &lines{ctx: ctx, in: bufio.NewReaderSize(in, messageBytesMax), out: out, answered: make(chan struct{}, 1)}
	err := s.protocol.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(l), Writer: l, MaxLineLength: messageBytesMax})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// lines connects the SDK to standard input and output, and changes two behaviours of the SDK. The SDK would stop at the
// first unreadable line; lines answers such lines itself. The SDK would cancel open requests at the end of the input;
// lines reports the end only when all requests are answered, so that a script can send requests from a file.
type lines struct {
	ctx      context.Context
	in       *bufio.Reader
	rest     []byte        // the part of the current line that Read has not returned yet
	answered chan struct{} // gets an element after each answer, for drain

	mu   sync.Mutex // guards out and open
	out  io.Writer
	open int // requests without an answer
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.in.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.in.ReadSlice('\n')
		}
		if line = bytes.TrimSpace(line); len(line) > 0 || tooLong {
			if code, problem := l.check(line, tooLong); code == 0 {
				l.rest = append(bytes.Clone(line), '\n')
				break
			} else if writeErr := l.refuse(code, problem); writeErr != nil {
				return 0, writeErr
			}
		}
		if err != nil {
			l.drain()
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// check returns the error code for a malformed line, or 0. It also counts open requests.
func (l *lines) check(line []byte, tooLong bool) (code int, problem string) {
	switch {
	case tooLong:
		return jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message has more than %d bytes", messageBytesMax)
	case !json.Valid(line):
		return jsonrpc.CodeParseError, "the line is not JSON; send one message on each line"
	}
	message, err := jsonrpc.DecodeMessage(line)
	var sent struct{ ID json.RawMessage }
	if err == nil {
		err = json.Unmarshal(line, &sent)
	}
	if len(sent.ID) > 0 && sent.ID[0] != '"' && bytes.ContainsAny(sent.ID, ".eE") { // the SDK would truncate the id to an integer
		err = fmt.Errorf("the id %s is not a whole number", sent.ID)
	}
	if err != nil {
		return jsonrpc.CodeInvalidRequest, "the line is not a message of JSON-RPC 2.0: " + err.Error()
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open++
	}
	return 0, ""
}

// refuse answers a malformed line with an error. The id of the request is unknown, so the answer has the id null.
func (l *lines) refuse(code int, problem string) error {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": problem}})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.out.Write(append(text, '\n'))
	return err
}

// Write implements io.Writer. The SDK writes each message with one call.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if message, err := jsonrpc.DecodeMessage(bytes.TrimSpace(p)); err == nil {
		if _, ok := message.(*jsonrpc.Response); ok {
			l.open--
			select {
			case l.answered <- struct{}{}:
			default:
			}
		}
	}
	return l.out.Write(p)
}

// Close implements io.Closer. It does nothing, because the caller of Serve closes the writer.
func (l *lines) Close() error { return nil }

// drain waits until all requests are answered, drainTimeout has passed or ctx ends.
func (l *lines) drain() {
	ctx, cancel := context.WithTimeout(l.ctx, drainTimeout)
	defer cancel()
	for ctx.Err() == nil {
		l.mu.Lock()
		open := l.open
		l.mu.Unlock()
		if open <= 0 {
			return
		}
		select {
		case <-l.answered:
		case <-ctx.Done():
		}
	}
}

// arguments are the parameters of all tools.
type arguments struct {
	Currency    string
	Operation   client.Operation
	Amount      client.Decimal
	Institution string
	Channel     client.Channel
	Kind        client.Kind
	From, To    string
	Limit       int
}

// parameter is a parameter of tools. rule describes the valid values, in the schema and in errors.
type parameter struct {
	name, rule, pattern string
}

var parameters = []parameter{
	{"currency", "three capital letters, such as USD; list_currencies has all", `[A-Z]{3}`},
	{"operation", "what the user does with foreign currency: buy or sell", `buy|sell`},
	{"amount", "an amount of the foreign currency, not of pesos, as decimal text in quotes, such as \"250.00\"", `[0-9]{1,12}([.][0-9]{1,2})?`},
	{"institution", "an id from list_institutions, such as popular", `[a-z0-9-]{1,80}`},
	{"channel", "only one way of doing it: unspecified, branch, digital, cash or transfer", `unspecified|branch|digital|cash|transfer`},
	{"kind", "commercial (what institutions offer) or reference (the official rate)", `commercial|reference`},
	{"from", "first day, YYYY-MM-DD, such as 2026-01-31, at most 365 days before the last; without it the six days before the last", `[0-9]{4}-[0-9]{2}-[0-9]{2}`},
	{"to", "last day, YYYY-MM-DD, such as 2026-01-31; today if it is not given", `[0-9]{4}-[0-9]{2}-[0-9]{2}`},
	{"limit", "how many offers or rows, a number from 1 to 200", `[1-9][0-9]?|1[0-9][0-9]|200`},
}

// tool is a tool with the names of its parameters.
type tool struct {
	name, title, description string
	required, optional       string // names, separated by blanks
	call                     func(context.Context, *arguments) (result, error)
}

// result is the result of a tool, as text and as structured content.
type result struct {
	text string
	data map[string]any
}

func (s *Server) tools() []tool {
	return []tool{
		{
			"best_rate", "Best exchange rates", "Where foreign currency is bought or sold best now in the Dominican Republic, in Dominican pesos (DOP): current rates of banks, savings " +
				"associations and exchange houses, the best for the user first. operation is what the user does: buy = the user buys foreign currency and " +
				"the institution sells it. With an amount each offer says what it makes in pesos. Example: the best place to buy 500 dollars is " +
				`{"currency":"USD","operation":"buy","amount":"500"}.`, "currency operation", "amount institution channel limit", s.bestRate,
		},
		{
			"convert", "Convert an amount", "An amount of foreign currency in Dominican pesos (DOP) at each Dominican institution, the best for the user first; with kind=reference at " +
				"the official rate of the central bank. operation is what the user does with the foreign currency. Fees are not included. Example: what " +
				`250 euros bring is {"currency":"EUR","operation":"sell","amount":"250.00"}.`, "currency operation amount", "kind institution channel limit", s.convert,
		},
		{
			"rate_history", "History of exchange rates", "Daily rates of a foreign currency in Dominican pesos (DOP) over up to 365 days, by Dominican institution: the last rate of each day. " +
				`Without dates the last seven days. Example: {"currency":"USD","institution":"popular","from":"2026-01-01","to":"2026-03-31"}.`,
			"currency", "from to institution channel kind limit", s.history,
		},
		{
			"list_currencies", "Currencies", "Which foreign currencies have rates in Dominican pesos, and how many rates are published and current for each. Takes no parameters: {}.",
			"", "", s.currencies,
		},
		{
			"list_institutions", "Institutions", "Which Dominican banks, savings associations, exchange houses and official sources publish rates, with their ids, types and currencies. " +
				`Example: {"currency":"EUR"}.`, "", "currency", s.institutions,
		},
	}
}

// schema is the JSON schema of the tool's parameters.
func (t *tool) schema() map[string]any {
	properties := map[string]any{}
	for _, p := range parameters {
		switch {
		case !slices.Contains(strings.Fields(t.required+" "+t.optional), p.name):
		case p.name == "limit":
			properties[p.name] = map[string]any{"type": "integer", "minimum": 1, "maximum": 200, "description": p.rule}
		default:
			properties[p.name] = map[string]any{"type": "string", "pattern": "^(" + p.pattern + ")$", "description": p.rule}
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if t.required != "" {
		schema["required"] = strings.Fields(t.required)
	}
	return schema
}

// parse parses the arguments of a call. The error lists every invalid parameter, with the rule.
func (t *tool) parse(raw json.RawMessage) (*arguments, error) {
	in, given := new(arguments), map[string]any{}
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&given); err != nil {
		return nil, errors.New("the arguments must be a JSON object")
	}
	var problems []string
	for _, p := range parameters {
		value, ok := given[p.name]
		delete(given, p.name)
		switch known := slices.Contains(strings.Fields(t.required+" "+t.optional), p.name); {
		case !known && ok:
			problems = append(problems, p.name+": "+t.name+" has no such parameter")
		case !ok && slices.Contains(strings.Fields(t.required), p.name):
			problems = append(problems, p.name+" is missing: "+p.rule)
		case ok && !p.accepts(value):
			problems = append(problems, fmt.Sprintf("%s: %s; it is %v", p.name, p.rule, value))
		}
	}
	for name := range given {
		problems = append(problems, name+": "+t.name+" has no such parameter; it has "+cmp.Or(strings.TrimSpace(t.required+" "+t.optional), "none"))
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return nil, errors.New("correct the parameters and call again. " + strings.Join(problems, ". "))
	}
	return in, json.Unmarshal(raw, in)
}

// accepts reports whether a value has the type and form of the parameter.
func (p *parameter) accepts(value any) bool {
	text, ok := value.(string)
	if number, isNumber := value.(json.Number); p.name == "limit" {
		text, ok = number.String(), isNumber
	}
	return ok && regexp.MustCompile("^("+p.pattern+")$").MatchString(text)
}

const (
	offersDefault = 5
	rowsDefault   = 100
	notice        = "Rates are informational and may change." // a sentence of the terms of use
)

// finish adds the notices that every result must have.
func (s *Server) finish(text *strings.Builder, data map[string]any) result {
	attribution := "Source: tasard, " + s.client.BaseURL()
	data["quoteCurrency"], data["attribution"], data["notice"] = client.QuoteCurrency, attribution, notice
	return result{text.String() + notice + "\n" + attribution + "\n", data}
}

// localTime formats a time in Santo Domingo, which has no daylight saving time.
func localTime(t time.Time) string {
	return t.In(time.FixedZone("America/Santo_Domingo", -4*60*60)).Format("2006-01-02 15:04")
}

func (in *arguments) filter(limit int) client.Filter {
	return client.Filter{Currency: in.Currency, Institution: in.Institution, Channel: in.Channel, Kind: in.Kind, Limit: cmp.Or(in.Limit, limit)}
}

// offer is one rate of one institution, perhaps with a converted amount.
type offer struct {
	Institution   string          `json:"institution"`
	InstitutionID string          `json:"institutionId"`
	Channel       client.Channel  `json:"channel"`
	Kind          client.Kind     `json:"kind"`
	Rate          client.Decimal  `json:"rate"` // compra or venta, according to the operation
	AmountDOP     client.Decimal  `json:"amountDop,omitempty"`
	Compra        *client.Decimal `json:"compra"`
	Venta         *client.Decimal `json:"venta"`
	EffectiveDate *string         `json:"effectiveDate,omitempty"`
	CheckedAt     string          `json:"checkedAt"`
	Source        string          `json:"source"`
	SourceURL     string          `json:"sourceUrl,omitempty"`
}

func (s *Server) bestRate(ctx context.Context, in *arguments) (result, error) {
	if in.Amount != "" {
		return s.convert(ctx, in)
	}
	ranking, err := s.client.Best(ctx, client.BestQuery{Filter: in.filter(offersDefault), Operation: in.Operation})
	if err != nil {
		return result{}, err
	}
	var items []client.Conversion
	for i := range ranking.Data {
		if side := ranking.Data[i].Side(in.Operation); side != nil {
			items = append(items, client.Conversion{Quote: ranking.Data[i], Rate: *side})
		}
	}
	return s.offers(ctx, in, items, &ranking.Meta)
}

func (s *Server) convert(ctx context.Context, in *arguments) (result, error) {
	page, err := s.client.Convert(ctx, client.ConvertQuery{Filter: in.filter(offersDefault), Operation: in.Operation, Amount: in.Amount})
	if err != nil {
		return result{}, err
	}
	return s.offers(ctx, in, page.Data, &page.Meta)
}

func (s *Server) offers(ctx context.Context, in *arguments, items []client.Conversion, meta *client.Meta) (result, error) {
	var text strings.Builder
	subject, asOf, list := strings.TrimSpace(string(in.Amount)+" "+in.Currency), localTime(meta.GeneratedAt), []offer{}
	data := map[string]any{"currency": in.Currency, "operation": in.Operation, "amount": in.Amount, "asOf": asOf, "total": meta.Total}
	if len(items) == 0 {
		hint, err := s.hint(ctx, in)
		if err != nil {
			return result{}, err
		}
		fmt.Fprintf(&text, "No current rate to %s %s, as of %s in Santo Domingo. %s\n", in.Operation, subject, asOf, hint)
		data["hint"] = hint
	} else {
		fmt.Fprintf(&text, "To %s %s, best first, %d of %d offers, as of %s in Santo Domingo:\n", in.Operation, subject, len(items), meta.Total, asOf)
	}
	for i := range items {
		item, r := &items[i], &items[i].Quote
		list = append(list, offer{
			r.InstitutionName, r.InstitutionID, r.Channel, r.Kind, item.Rate, item.AmountDOP, r.Buy, r.Sell, r.EffectiveDate, localTime(r.LastCheckedAt), r.SourceName, r.SourceURL,
		})
		fmt.Fprintf(&text, "%d. %s: %s DOP for 1 %s", i+1, r.InstitutionName, item.Rate, in.Currency)
		if item.AmountDOP != "" {
			fmt.Fprintf(&text, ", %s DOP in all", item.AmountDOP)
		}
		if r.Channel != client.Unspecified {
			fmt.Fprintf(&text, ", %s", r.Channel)
		}
		if r.Kind == client.Reference {
			text.WriteString(", official reference")
		}
		fmt.Fprintf(&text, " (seen %s)\n", localTime(r.LastCheckedAt))
	}
	if data["offers"] = list; len(items) > 0 && items[0].FeeNotice != "" {
		data["feeNotice"] = items[0].FeeNotice
		text.WriteString(items[0].FeeNotice + "\n")
	}
	return s.finish(&text, data), nil
}

// row is the last rate of a day.
type row struct {
	Date          string          `json:"date"`
	InstitutionID string          `json:"institutionId"`
	Channel       client.Channel  `json:"channel"`
	Kind          client.Kind     `json:"kind"`
	Compra        *client.Decimal `json:"compra"`
	Venta         *client.Decimal `json:"venta"`
}

func (s *Server) history(ctx context.Context, in *arguments) (result, error) {
	q := client.HistoryQuery{Filter: in.filter(rowsDefault), From: in.From, To: in.To}
	page, err := s.client.History(ctx, q)
	if err == nil && page.Meta.Total > q.Limit { // rows are sorted by date, so the newest are on the last page
		q.Cursor = page.Meta.Total - q.Limit
		page, err = s.client.History(ctx, q)
	}
	if err != nil {
		return result{}, err
	}
	var text strings.Builder
	rows := []row{}
	for i := range page.Data {
		r := &page.Data[i]
		rows = append(rows, row{r.Date, r.InstitutionID, r.Channel, r.Kind, r.Buy, r.Sell})
	}
	data := map[string]any{"currency": in.Currency, "asOf": localTime(page.Meta.GeneratedAt), "total": page.Meta.Total, "rows": rows}
	if len(page.Data) == 0 {
		hint, err := s.hint(ctx, in)
		if err != nil {
			return result{}, err
		}
		fmt.Fprintf(&text, "No rates of %s in these days. %s\n", in.Currency, hint)
		data["hint"] = hint
		return s.finish(&text, data), nil
	}
	fmt.Fprintf(&text, "%s in DOP, %d of %d daily rates, oldest first (compra: what the institution pays; venta: what it charges):\n", in.Currency, len(page.Data), page.Meta.Total)
	if page.Meta.Total > len(page.Data) {
		text.WriteString("The oldest are left out: ask for an institution, or for fewer days.\n")
	}
	side := func(d *client.Decimal) client.Decimal {
		if d == nil {
			return "none"
		}
		return *d
	}
	for _, r := range rows {
		fmt.Fprintf(&text, "%s %s %s %s: compra %s, venta %s\n", r.Date, r.InstitutionID, r.Channel, r.Kind, side(r.Compra), side(r.Venta))
	}
	return s.finish(&text, data), nil
}

func (s *Server) currencies(ctx context.Context, _ *arguments) (result, error) {
	list, err := s.client.Currencies(ctx)
	if err != nil {
		return result{}, err
	}
	var text strings.Builder
	text.WriteString(summary(list) + "\n")
	return s.finish(&text, map[string]any{"currencies": list}), nil
}

// summary lists currencies, those without current rates last.
func summary(list []client.Currency) string {
	var current, others []string
	for _, c := range list {
		if c.CurrentQuoteCount > 0 {
			current = append(current, fmt.Sprintf("%s %s (%d)", c.Code, c.Name, c.CurrentQuoteCount))
		} else {
			others = append(others, c.Code)
		}
	}
	text := "Currencies, with the number of current rates: " + cmp.Or(strings.Join(current, ", "), "none") + "."
	if len(others) > 0 {
		text += "\nWithout: " + strings.Join(others, ", ") + "."
	}
	return text
}

func (s *Server) institutions(ctx context.Context, in *arguments) (result, error) {
	var text strings.Builder
	list := []client.Institution{}
	for i, err := range client.All(client.Filter{Currency: in.Currency}, func(f client.Filter) (*client.Page[client.Institution], error) {
		return s.client.Institutions(ctx, f)
	}) {
		if err != nil {
			return result{}, err
		}
		list = append(list, i)
		fmt.Fprintf(&text, "%s = %s (%s)\n", i.ID, i.Name, strings.Join(i.Currencies, " "))
	}
	fmt.Fprintf(&text, "%d institutions.\n", len(list))
	return s.finish(&text, map[string]any{"institutions": list}), nil
}

// hint explains an empty result: it says which data the node has about the requested currency and institution.
func (s *Server) hint(ctx context.Context, in *arguments) (string, error) {
	text := ""
	if in.Currency == client.QuoteCurrency {
		text = "All rates are in Dominican pesos (DOP) for one unit of a foreign currency: name the foreign one. "
	}
	if in.Institution != "" {
		var unknown *client.Error
		switch detail, err := s.client.Institution(ctx, in.Institution); {
		case errors.As(err, &unknown) && unknown.Status == http.StatusNotFound:
			return strings.Replace(unknown.Message, "GET /v1/institutions lists them", "list_institutions lists them", 1) + ".", nil
		case err != nil:
			return "", err
		default:
			text += fmt.Sprintf("%s publishes no current rate of %s. ", detail.Name, in.Currency)
		}
	}
	list, err := s.client.Currencies(ctx)
	return text + summary(list), err
}
