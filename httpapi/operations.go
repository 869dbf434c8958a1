package httpapi

import (
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// The data operations but convert: ask the service, take the page's encoded form or make it.

// dataPage is what an operation answers.
type dataPage struct {
	rendered  *renderedPage
	changesAt time.Time // without an event; zero: never
}

func (s *Server) currencies(_ *params.Query, now requestTime) (dataPage, error) {
	page, err := s.config.Service.Currencies()
	if err != nil {
		return dataPage{}, err
	}
	return dataPage{rendered(&page.Rendered, formList, now, func() encodedBody { return currenciesBody(page) }), page.ChangesAt}, nil
}

func (s *Server) institutions(q *params.Query, now requestTime) (dataPage, error) {
	page, err := s.config.Service.Institutions(engine.InstitutionsQuery{Currency: q.Currency, PageRequest: q.Page()})
	if err != nil {
		return dataPage{}, err
	}
	return dataPage{rendered(&page.Rendered, formList, now, func() encodedBody { return institutionsBody(page, now) }), page.ChangesAt}, nil
}

func (s *Server) institution(q *params.Query, now requestTime) (dataPage, error) {
	detail, err := s.config.Service.Institution(q.ID)
	if err != nil {
		return dataPage{}, err
	}
	return dataPage{rendered(&detail.Rendered, formList, now, func() encodedBody { return institutionBody(detail) }), detail.ChangesAt}, nil
}

func (s *Server) rates(q *params.Query, now requestTime) (dataPage, error) {
	page, err := s.config.Service.Rates(engine.RatesQuery{Filter: q.Filter(), PageRequest: q.Page()})
	if err != nil {
		return dataPage{}, err
	}
	return dataPage{rendered(&page.Rendered, formList, now, func() encodedBody { return ratesBody(page, "", now) }), page.ChangesAt}, nil
}

func (s *Server) best(q *params.Query, now requestTime) (dataPage, error) {
	page, err := s.config.Service.Ranking(q.Ranking(false))
	if err != nil {
		return dataPage{}, err
	}
	return dataPage{rendered(&page.Rendered, bestForm(q.Operation), now, func() encodedBody { return ratesBody(page, q.Operation, now) }), page.ChangesAt}, nil
}

func (s *Server) history(q *params.Query, now requestTime) (dataPage, error) {
	page, err := s.config.Service.History(engine.HistoryQuery{Filter: q.Filter(), PageRequest: q.Page(), From: q.From, To: q.To})
	if err != nil {
		return dataPage{}, err
	}
	return dataPage{rendered(&page.Rendered, formList, now, func() encodedBody { return historyBody(page, now) }), page.ChangesAt}, nil
}

// convert writes into the answer's own buffer: a body for an amount is never kept.
func (s *Server) convert(ctx *fasthttp.RequestCtx, q *params.Query, a *requestState) {
	page, err := s.config.Service.Ranking(q.Ranking(true))
	if err != nil {
		s.answerError(ctx, err)
		return
	}
	kept := &memoOf(&page.Rendered).conversions[operationIndex(q.Operation)]
	prepared := kept.Load()
	if prepared == nil {
		prepared = newConversionTemplate(page, q, s.config.FeeNotice, a.now)
		kept.Store(prepared)
	}
	var room [len(`W/""`) + 2*fields.ETagDigestBytes]byte
	etag, maxAge := prepared.etag(room[:0], q.Amount), a.now.maxAge(page.ChangesAt)
	if s.notModified(ctx, a, etag, maxAge) {
		return
	}
	body := ctx.Response.SwapBody(nil)[:0]
	ctx.Response.SwapBody(prepared.appendBody(body, page.Items, q, a.now))
	coding := ""
	if len(ctx.Response.Body()) >= gzipBytesMin && a.acceptsGzip(ctx) {
		coding = gzipCoding
		s.gzipResponse(ctx)
	}
	s.writeHead(ctx, a, etag, maxAge, coding)
	a.queueBody(ctx)
}

// rendered is the encoded form of a page, made at its first use. body is called for a page that has none in this form.
func rendered(kept *atomic.Value, f bodyForm, now requestTime, body func() encodedBody) *renderedPage {
	form := &memoOf(kept).renderings[f]
	r := form.Load()
	if r == nil {
		r = newRenderedPage(body(), now)
		form.Store(r)
	}
	return r
}

// answerPage answers 200 with the page of a route, or 304.
func (s *Server) answerPage(ctx *fasthttp.RequestCtx, r *route, q *params.Query, a *requestState) {
	page, err := r.page(s, q, a.now)
	if err != nil {
		s.answerError(ctx, err)
		return
	}
	maxAge := a.now.maxAge(page.changesAt)
	if s.notModified(ctx, a, page.rendered.etag, maxAge) {
		return
	}
	body, coding := page.rendered.body(a.now, a.acceptsGzip(ctx))
	ctx.Response.SetBodyRaw(body)
	s.writeHead(ctx, a, page.rendered.etag, maxAge, coding)
	s.keepHead(ctx, r, q, a)
	a.queueBody(ctx)
}

// gzipError compresses the body of an error, when it is long enough and the caller takes it.
func (s *Server) gzipError(ctx *fasthttp.RequestCtx) {
	if len(ctx.Response.Body()) < gzipBytesMin || !fields.AcceptsGzip(ctx.Request.Header.PeekAll(fasthttp.HeaderAcceptEncoding)) {
		return
	}
	s.gzipResponse(ctx)
	ctx.Response.Header.SetContentEncoding(gzipCoding)
}

// gzipResponse compresses a body that was made for this request.
func (s *Server) gzipResponse(ctx *fasthttp.RequestCtx) {
	p := s.gzippers.Get().(*gzipper)
	plain := ctx.Response.SwapBody(nil)
	ctx.Response.SwapBody(p.appendGzip(p.swapBuffer[:0], plain))
	p.swapBuffer = plain
	s.gzippers.Put(p)
}
