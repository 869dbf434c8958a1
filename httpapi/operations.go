package httpapi

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/internal/encode"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/params"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// A data operation gets a page of results (currencies, institutions or rates) from Config.Service and returns the
// encoded page. Only convert differs, because the body depends on the amount.

// dataResponse is a 200 or 304 with data.
type dataResponse struct {
	status     int
	etag, body []byte
	coding     string    // "" or "gzip"
	changesAt  time.Time // the next expiry of a rate in the body, or zero
}

// setStatus sets the status: 304 if the client already has this ETag. It returns false for a 304.
func (r *dataResponse) setStatus(ifNoneMatch [][]byte) bool {
	r.status = fasthttp.StatusOK
	if fields.IfNoneMatchHits(ifNoneMatch, r.etag) {
		r.status = fasthttp.StatusNotModified
	}
	return r.status == fasthttp.StatusOK
}

// dataAPI answers the data operations.
type dataAPI struct {
	*responder
	params     params.Table
	dataRoutes map[string]*route // by pattern, for the express path
}

func newDataAPI(w *responder, table params.Table) *dataAPI {
	d := &dataAPI{responder: w, params: table, dataRoutes: map[string]*route{}}
	ids := routeIDs()
	for _, r := range routes() {
		r.id = ids[r.pattern]
		d.dataRoutes[r.pattern] = &r
	}
	return d
}

// answer checks the method of a request for a data operation and answers it.
func (d *dataAPI) answer(ctx *fasthttp.RequestCtx, r *route, a *requestState) {
	switch {
	case ctx.IsGet(), ctx.IsHead():
	case ctx.IsOptions():
		d.answerOptions(ctx)
		return
	default:
		d.rejectMethod(ctx, "operation", rendered.MethodsAllowed)
		return
	}
	d.admitAndAnswer(ctx, r, a)
}

// admitAndAnswer authenticates a request for a data operation, charges the caller, checks the limits and answers the
// request. finishAdmission refunds the charge after a 5xx.
func (d *dataAPI) admitAndAnswer(ctx *fasthttp.RequestCtx, r *route, a *requestState) {
	if !a.admitDone {
		a.repanic()
		a.setCaller(d.clientAddress(ctx), a.Authorization)
		d.admit(a)
	}
	d.countAdmission(a)
	if a.admitErr != nil {
		d.answerError(ctx, a.admitErr)
		return
	}
	if !a.limitsEnforced {
		d.answerData(ctx, r, a)
		return
	}
	defer d.finishAdmission(ctx, a)
	if a.admission.Admitted {
		d.answerData(ctx, r, a)
	} else {
		d.rejectOverLimit(ctx, r, &a.admission.QuotaResult)
	}
}

// admit calls Config.Admitter for a.caller, if limits are enforced or API keys are required. It sets the time of the
// response, unless the admitter returns an error.
func (d *dataAPI) admit(a *requestState) {
	admitter := d.config.Admitter
	a.limitsEnforced = admitter != nil && admitter.LimitsEnforced()
	if admitter == nil || !a.limitsEnforced && !admitter.KeyPolicy().Required(d.config.Clock()) {
		d.setTime(a, d.config.Clock())
		a.admitDone = true
		a.isShared = admitter == nil || admitter.KeyPolicy().RequiredAt.IsZero()
		return
	}
	a.asked = true
	a.admission, a.admitErr = admitter.Admit(a.caller)
	if a.admitDone = true; a.admitErr != nil {
		return
	}
	a.keyIgnored = (a.caller.HasKey || a.caller.HasMalformedKey) && a.admission.Account == 0
	if !a.limitsEnforced || a.admission.At.Wall.IsZero() {
		d.setTime(a, d.config.Clock())
	} else {
		d.setTime(a, a.admission.At.Wall) // saves a clock reading
	}
}

// countAdmission counts the result of admit in the metrics.
func (d *dataAPI) countAdmission(a *requestState) {
	switch {
	case a.admitErr != nil:
		d.counters.Admission(a.caller.HasKey, engine.CodeOf(a.admitErr))
	case a.asked:
		d.counters.Admission(a.admission.Account != 0, a.admission.DenyCode)
	}
}

// rejectOverLimit answers 429, or 503 if the operation is not ready yet.
func (d *dataAPI) rejectOverLimit(ctx *fasthttp.RequestCtx, r *route, q *account.QuotaResult) {
	if err := d.notReadyError(r); err != nil {
		d.answerError(ctx, err)
		return
	}
	message := "The limit of " + strconv.Itoa(q.Minute.Limit) + " requests in 60 seconds is reached; Retry-After says how many seconds to wait."
	if q.DenyCode == engine.CodeQuotaExceeded {
		message = "The limit of " + strconv.Itoa(q.Day.Limit) + " requests a day is reached; the day ends at midnight in Santo Domingo, and Retry-After says in how many seconds."
	}
	d.answerError(ctx, &engine.Error{Code: q.DenyCode, Message: message, RetryAfter: q.RetryAfter})
}

// finishAdmission refunds the charge after a 5xx, and adds the rate-limit headers unless writeHead did. It must be
// deferred, because it also answers 500 after a panic.
func (d *dataAPI) finishAdmission(ctx *fasthttp.RequestCtx, a *requestState) {
	if cause := recover(); cause != nil {
		d.rejectPanic(ctx, cause)
	} else if a.headWritten {
		return
	}
	admission := &a.admission
	if admission.Admitted && ctx.Response.StatusCode() >= fasthttp.StatusInternalServerError {
		d.config.Admitter.Refund(*admission)
		admission.Day.Remaining = min(admission.Day.Limit, admission.Day.Remaining+1)
		admission.Minute.Remaining = min(admission.Minute.Limit, admission.Minute.Remaining+1)
	}
	var room [headBufferBytes]byte
	setHeaderLines(&ctx.Response.Header, d.appendLimits(room[:0], a))
}

// answerData parses the parameters of an admitted request and answers it.
func (d *dataAPI) answerData(ctx *fasthttp.RequestCtx, r *route, a *requestState) {
	a.repanic()
	path, text := splitTarget(ctx.Request.Header.RequestURI())
	acceptsGzip := fields.AcceptsGzip(ctx.Request.Header.PeekAll(fasthttp.HeaderAcceptEncoding)) // the next PeekAll reuses the slice
	problems, err := d.respond(a, r, path, text, ctx.Request.Header.PeekAll(fasthttp.HeaderIfNoneMatch), acceptsGzip)
	switch {
	case len(problems) > 0:
		d.rejectParameters(ctx, r, problems)
		return
	case err != nil:
		d.answerError(ctx, err)
		return
	case r.page == nil:
		ctx.Response.SetBody(a.response.body) // a copy, because the next request reuses a.body
	default:
		ctx.Response.SetBodyRaw(a.response.body)
	}
	ctx.SetStatusCode(a.response.status)
	d.writeHead(ctx, a)
}

// respond sets a.response for an admitted request. It returns the problems of the parameters, or an error of the
// service. path and text are the path and the query of the URL, still percent-encoded. ifNoneMatch lists the values of
// If-None-Match.
func (d *dataAPI) respond(a *requestState, r *route, path, text []byte, ifNoneMatch [][]byte, acceptsGzip bool) (problems []params.Problem, err error) {
	problems = d.params.Read(&a.query, r.operation, path, text, params.Options{
		Catalogue: d.config.Catalogue, Today: a.second.today, AllowUnknown: d.config.AllowUnknownParameters,
	})
	if len(problems) > 0 {
		return problems, nil
	}
	if r.page == nil {
		return nil, d.convert(a, ifNoneMatch, acceptsGzip)
	}
	body, err := r.page(d, a)
	if err != nil {
		return nil, err
	}
	response := &a.response
	response.etag = body.ETag()
	if response.setStatus(ifNoneMatch) {
		response.body, response.coding = body.At(&a.second.Second, acceptsGzip)
	}
	return nil, nil
}

// rejectParameters answers 400, or 503 if the operation is not ready yet.
func (d *dataAPI) rejectParameters(ctx *fasthttp.RequestCtx, r *route, problems []params.Problem) {
	if err := d.notReadyError(r); err != nil {
		d.answerError(ctx, err)
		return
	}
	d.rejectWithDetails(ctx, engine.CodeInvalidParameters, "The parameters are not valid; details has every problem.", problems)
}

// notReadyError returns an error if the service can't answer any request for an operation yet. It tries the smallest
// query for rates.
func (d *dataAPI) notReadyError(r *route) error {
	if r.fromCatalogue {
		return nil
	}
	_, err := d.config.Service.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 1}})
	return err
}

// convert sets a.response for a conversion. The body is in a buffer of a, because few requests have the same amount.
func (d *dataAPI) convert(a *requestState, ifNoneMatch [][]byte, acceptsGzip bool) error {
	q, response := &a.query, &a.response
	page, err := d.config.Service.Ranking(a.ranking(true))
	if err != nil {
		return err
	}
	template, ok := page.Rendered.Load().(*conversionTemplate)
	if !ok {
		template = newConversionTemplate(page, q, d.config.FeeNotice, a.second)
		page.Rendered.Store(template)
	}
	a.etag = template.appendETag(a.etag[:0], q.Amount)
	response.etag, response.changesAt = a.etag, page.ChangesAt
	if !response.setStatus(ifNoneMatch) {
		return nil
	}
	a.holes = a.holes[:0]
	a.body = template.appendBody(a.body[:0], page.Items, q, a.second, &a.holes)
	if response.body = a.body; acceptsGzip && len(a.body) >= rendered.GzipBytesMin {
		a.packed = template.appendPacked(a.packed[:0], a.body, a.holes)
		response.body, response.coding = a.packed, rendered.Gzip
	}
	return nil
}

// pageBody returns the body for a page, for route.page. err is the error of the query for the page. If the page has no
// body yet, pageBody calls encode and keeps the result in the page.
func pageBody[T any](a *requestState, page *engine.Page[T], err error, encode func() rendered.Encoded) (*rendered.Body, error) {
	if err != nil {
		return nil, err
	}
	a.response.changesAt = page.ChangesAt
	body, ok := page.Rendered.Load().(*rendered.Body)
	if !ok {
		body = rendered.New(encode(), &a.second.Second)
		page.Rendered.Store(body)
	}
	return body, nil
}

func (d *dataAPI) currencies(a *requestState) (*rendered.Body, error) {
	page, err := d.config.Service.Currencies()
	return pageBody(a, page, err, func() rendered.Encoded { return currenciesBody(page) })
}

func (d *dataAPI) institutions(a *requestState) (*rendered.Body, error) {
	page, err := d.config.Service.Institutions(engine.InstitutionsQuery{Currency: a.query.Currency, PageRequest: a.query.PageRequest})
	return pageBody(a, page, err, func() rendered.Encoded { return listBody(page, "", a.second, appendInstitutionItem) })
}

func (d *dataAPI) institution(a *requestState) (*rendered.Body, error) {
	detail, err := d.config.Service.Institution(a.query.ID)
	if err != nil {
		return nil, err
	}
	return pageBody(a, &detail.Page, nil, func() rendered.Encoded { return institutionBody(detail) })
}

func (d *dataAPI) rates(a *requestState) (*rendered.Body, error) {
	page, err := d.config.Service.Rates(engine.RatesQuery{Filter: a.query.Filter, PageRequest: a.query.PageRequest})
	return pageBody(a, page, err, func() rendered.Encoded { return listBody(page, "", a.second, encode.Rate) })
}

func (d *dataAPI) best(a *requestState) (*rendered.Body, error) {
	page, err := d.config.Service.Ranking(a.ranking(false))
	return pageBody(a, page, err, func() rendered.Encoded { return listBody(page, a.query.Operation, a.second, encode.Rate) })
}

func (d *dataAPI) history(a *requestState) (*rendered.Body, error) {
	q := &a.query
	page, err := d.config.Service.History(engine.HistoryQuery{Filter: q.Filter, PageRequest: q.PageRequest, From: q.From, To: q.To})
	return pageBody(a, page, err, func() rendered.Encoded { return listBody(page, "", a.second, appendHistoryEntry) })
}

// route is a data operation (all of /v1 except /v1/account): one row of routes.
type route struct {
	pattern   string
	operation params.Operation
	// page returns the body for a.query, and sets a.response.changesAt. For convert, page is nil.
	page func(d *dataAPI, a *requestState) (*rendered.Body, error)
	// fromCatalogue means that the operation needs only the catalogue (currencies and institutions), so it is ready
	// before rates are loaded.
	fromCatalogue bool
	id            int // for the counters: index of routeNames; set by newDataAPI
}

const institutionPattern = params.InstitutionPath + "{id}"

// routes returns the table of data operations. A new operation also needs a params.Operation and rows for its
// parameters in package params.
func routes() []route {
	return []route{
		{pattern: "/v1/currencies", operation: params.Currencies, page: (*dataAPI).currencies, fromCatalogue: true},
		{pattern: "/v1/institutions", operation: params.Institutions, page: (*dataAPI).institutions, fromCatalogue: true},
		{pattern: institutionPattern, operation: params.Institution, page: (*dataAPI).institution, fromCatalogue: true},
		{pattern: "/v1/rates", operation: params.Rates, page: (*dataAPI).rates},
		{pattern: "/v1/rates/best", operation: params.Best, page: (*dataAPI).best},
		{pattern: "/v1/rates/history", operation: params.History, page: (*dataAPI).history},
		{pattern: "/v1/convert", operation: params.Convert},
	}
}

// Routes returns the method and path of every operation, such as "GET /v1/rates/best", and of the health endpoints. GET
// includes HEAD, and every path also accepts OPTIONS. A final {id} stands for any path segment.
func Routes() []string {
	var all []string
	for _, r := range routes() {
		all = append(all, "GET "+r.pattern)
	}
	for _, op := range accountOperations() {
		all = append(all, op.method+" "+op.pattern)
	}
	return append(all, "GET "+livezPath, "GET "+healthzPath, "GET "+readyzPath)
}

// Indexes of routeNames for requests without an operation.
const (
	routeRefused   = iota // malformed: rejected before the path was looked up
	routeUnmatched        // neither an operation nor a page has the path
	routeAsterisk         // OPTIONS *
	routeSite             // pages and documents
)

// routeNames returns the values of the label "route" in the metrics.
func routeNames() []string {
	names := []string{"refused", "none", "*", "site"}
	for _, r := range routes() {
		names = append(names, r.pattern)
	}
	for _, op := range accountOperations() {
		if !slices.Contains(names, op.pattern) {
			names = append(names, op.pattern)
		}
	}
	return append(names, livezPath, healthzPath, readyzPath)
}

// routeIDs is the inverse of routeNames.
func routeIDs() map[string]int {
	ids := map[string]int{}
	for i, name := range routeNames() {
		ids[name] = i
	}
	return ids
}

// endpoint answers all requests for a path, with any method.
type endpoint struct {
	routeID int // for the counters: index of routeNames
	answer  func(ctx *fasthttp.RequestCtx, a *requestState)
}

// byPath returns the entry for a path. The keys of entries are patterns, in which a final {id} stands for any segment.
func byPath[T any](entries map[string]T, path []byte) (found T, ok bool) {
	if found, ok = entries[string(path)]; ok {
		return found, true
	}
	for _, pattern := range [...]string{institutionPattern, keyPath} {
		id, isBelow := bytes.CutPrefix(path, bytesOf(pattern[:len(pattern)-len("{id}")]))
		if isBelow && len(id) > 0 && bytes.IndexByte(id, '/') < 0 {
			found, ok = entries[pattern]
			return found, ok
		}
	}
	return found, false
}

// splitTarget returns the undecoded path and query of a request target. conn.Malformed has checked that the target is
// "*" or begins with "/" or "scheme://host".
func splitTarget(target []byte) (path, query []byte) {
	if len(target) > 0 && target[0] != '/' {
		if _, afterScheme, isAbsolute := bytes.Cut(target, []byte("://")); isAbsolute {
			target = afterScheme
			if end := bytes.IndexAny(target, "/?"); end >= 0 {
				target = target[end:]
			} else {
				target = nil
			}
		}
	}
	path, query, _ = bytes.Cut(target, []byte("?"))
	return path, query
}

// The append functions append objects of the API (rate, institution, ...) as JSON, with all fields in the order of the
// API specification (contract/openapi.yaml). A field without a value is null, never missing.

func appendList[T any](dst []byte, items []T, appendItem func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for _, item := range items {
		dst = appendItem(encode.Comma(dst), item)
	}
	return append(dst, ']')
}

func appendHistoryEntry(dst []byte, h engine.HistoryEntry) []byte {
	dst = append(dst, '{')
	dst = encode.Date(dst, "date", h.Date)
	dst = encode.Field(dst, "institutionId", h.InstitutionID)
	dst = encode.Field(dst, "currency", h.Currency)
	dst = encode.Field(dst, "channel", string(h.Channel))
	dst = encode.Field(dst, "kind", string(h.Kind))
	dst = encode.Decimal(dst, "buy", h.Buy)
	dst = encode.Decimal(dst, "sell", h.Sell)
	dst = encode.Field(dst, "sourceId", h.SourceID)
	dst = encode.Field(dst, "datePrecision", string(h.DatePrecision))
	return append(dst, '}')
}

func appendCurrency(dst []byte, c engine.CurrencyItem) []byte {
	dst = append(dst, '{')
	dst = encode.Field(dst, "code", c.Code)
	dst = encode.Field(dst, "name", c.Name)
	dst = encode.Field(dst, "symbol", c.Symbol)
	dst = encode.Int(dst, "quoteCount", int64(c.QuoteCount))
	dst = encode.Int(dst, "currentQuoteCount", int64(c.CurrentQuoteCount))
	return append(dst, '}')
}

// appendInstitution appends an institution without the closing brace, so that callers can append more fields.
func appendInstitution(dst []byte, i *engine.Institution) []byte {
	dst = append(dst, '{')
	dst = encode.Field(dst, "id", i.ID)
	dst = encode.Field(dst, "name", i.Name)
	dst = encode.Field(dst, "type", string(i.Type))
	dst = encode.Field(dst, "website", i.Website)
	dst = encode.Field(dst, "description", i.Description)
	dst = encode.Field(dst, "contact", i.Contact)
	return encode.Bool(dst, "active", i.Active)
}

func appendInstitutionItem(dst []byte, item engine.InstitutionItem) []byte {
	dst = appendInstitution(dst, item.Institution)
	dst = appendList(encode.Name(dst, "currencies"), item.Currencies, encode.Text)
	dst = encode.Int(dst, "currentQuoteCount", int64(item.CurrentQuoteCount))
	return append(dst, '}')
}

// appendMeta appends the field meta of a list. It returns the extended slice and the offset in it of generatedAt's
// value.
func appendMeta(dst []byte, total, next int, generatedAt []byte) (longer []byte, offset int) {
	dst = append(encode.Name(dst, "meta"), '{')
	dst = encode.Int(dst, "total", int64(total))
	dst = encode.Name(dst, "nextCursor")
	if next == engine.NoNextCursor {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, int64(next), 10)
	}
	dst = append(encode.Name(dst, "generatedAt"), '"')
	offset = len(dst)
	dst = append(dst, generatedAt...)
	dst = append(dst, '"')
	dst = encode.Field(dst, "quoteCurrency", engine.QuoteCurrency)
	return append(dst, '}'), offset
}

// listBody returns the body for a page of a list. operation is repeated in the body if it is not "".
func listBody[T any](page *engine.Page[T], operation engine.Operation, second *currentSecond, appendItem func([]byte, T) []byte) rendered.Encoded {
	body := append(make([]byte, 0, rateBytesGuess*(len(page.Items)+1)), `{"data":`...)
	body, offset := appendMeta(appendList(body, page.Items, appendItem), page.Total, page.NextCursor, second.Text[:])
	if operation != "" {
		body = encode.Field(body, "operation", string(operation))
	}
	return rendered.Encoded{Body: append(body, '}'), GeneratedAt: offset}
}

func currenciesBody(page *engine.Page[engine.CurrencyItem]) rendered.Encoded {
	body := appendList([]byte(`{"data":`), page.Items, appendCurrency)
	return rendered.Encoded{Body: append(body, '}'), GeneratedAt: rendered.NoGeneratedAt}
}

func institutionBody(detail *engine.InstitutionDetail) rendered.Encoded {
	body := appendInstitution([]byte(`{"data":`), detail.Institution)
	body = appendList(encode.Name(body, "rates"), detail.Items, encode.Rate)
	return rendered.Encoded{Body: append(body, `}}`...), GeneratedAt: rendered.NoGeneratedAt}
}

// conversionTemplate is the body of a response of /v1/convert without the amounts. appendBody inserts the amounts: it
// copies text, and multiplies once for each rate.
type conversionTemplate struct {
	tag         []byte // ETag of text, without the value of generatedAt
	text        []byte // the body without the amounts
	items       []amountOffsets
	generatedAt int                                           // offset in text of the value of generatedAt, the time of the response
	packed      [packedSlots]atomic.Pointer[packedConversion] // a hash table by holes
}

// packedSlots is the maximum number of cached packedConversions of a template. It is a power of two.
const packedSlots = 16

// packedConversion is a template compressed for amounts that have certain lengths.
type packedConversion struct {
	holes   []rendered.Span       // where the amounts and generatedAt are in the body
	spliced *rendered.SplicedGzip // the body compressed without them
}

// appendPacked appends the compressed body to dst. body and holes are results of appendBody.
func (t *conversionTemplate) appendPacked(dst, body []byte, holes []rendered.Span) []byte {
	hash := 0
	for _, hole := range holes {
		hash = hash*31 + hole.End
	}
	slot := &t.packed[hash&(packedSlots-1)]
	p := slot.Load()
	if p == nil || !slices.Equal(p.holes, holes) {
		p = &packedConversion{slices.Clone(holes), rendered.NewSplicedGzip(body, holes)}
		slot.Store(p)
	}
	return p.spliced.Append(dst, body, holes)
}

// amountOffsets are the offsets in conversionTemplate.text at which the two amounts of one item are inserted.
type amountOffsets struct{ foreignAmount, amountDOP int }

func newConversionTemplate(page *engine.Page[*engine.Rate], q *params.Query, feeNotice string, second *currentSecond) *conversionTemplate {
	t := &conversionTemplate{items: make([]amountOffsets, 0, len(page.Items))}
	text := append(make([]byte, 0, (rateBytesGuess+2*len(feeNotice))*(len(page.Items)+1)), `{"data":[`...)
	for _, rate := range page.Items {
		var offsets amountOffsets
		text = append(encode.Comma(text), '{')
		text = encode.Rate(encode.Name(text, "quote"), rate)
		text = encode.Field(text, "operation", string(q.Operation))
		text = append(encode.Name(text, "foreignAmount"), '"')
		offsets.foreignAmount = len(text)
		text = append(text, '"')
		text = encode.Field(text, "currency", rate.Currency)
		text = append(encode.Name(text, "amountDop"), '"')
		offsets.amountDOP = len(text)
		text = append(text, '"')
		text = encode.Field(text, "rate", rate.Side(q.Operation).String())
		text = encode.Bool(text, "feesIncluded", false)
		text = encode.Field(text, "feeNotice", feeNotice)
		text = append(text, '}')
		t.items = append(t.items, offsets)
	}
	text, t.generatedAt = appendMeta(append(text, ']'), page.Total, page.NextCursor, second.Text[:])
	t.text = append(text, '}')
	t.tag = rendered.Encoded{Body: t.text, GeneratedAt: t.generatedAt}.ETag()
	return t
}

// appendBody appends the body for the amount of q and the second now. items must be the rates of the template. It also
// appends the positions of the inserted texts in dst to holes.
func (t *conversionTemplate) appendBody(dst []byte, items []*engine.Rate, q *params.Query, now *currentSecond, holes *[]rendered.Span) []byte {
	copied := 0 // number of bytes of t.text that are in dst
	for i, offsets := range t.items {
		dst = append(dst, t.text[copied:offsets.foreignAmount]...)
		start := len(dst)
		dst = append(dst, q.Amount.String()...)
		dst = append(dst, t.text[offsets.foreignAmount:offsets.amountDOP]...)
		conversion := engine.Conversion{Quote: items[i], Operation: q.Operation, Amount: q.Amount}
		dst = conversion.AppendAmountDOP(dst)
		copied = offsets.amountDOP
		*holes = append(*holes, rendered.Span{Start: start, End: len(dst)})
	}
	dst = append(dst, t.text[copied:t.generatedAt]...)
	*holes = append(*holes, rendered.Span{Start: len(dst), End: len(dst) + len(now.Text)})
	dst = append(dst, now.Text[:]...)
	return append(dst, t.text[t.generatedAt+len(now.Text):]...)
}

// appendETag appends the ETag of the body for an amount: a digest of the template's ETag and the amount.
func (t *conversionTemplate) appendETag(dst []byte, amount engine.Amount) []byte {
	var room [64]byte
	digest := sha256.Sum256(append(append(room[:0], t.tag...), amount.String()...))
	return fields.AppendETag(dst, digest[:])
}

// rateBytesGuess is the approximate length of a rate as JSON.
const rateBytesGuess = 720
