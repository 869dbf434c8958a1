package httpapi

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// The seven data operations: ask the service, take the page's rendering or make it, write it.

func (s *Server) currencies(ctx *fasthttp.RequestCtx, _ *params.Query, a *requestState) {
	page, err := s.config.Service.Currencies()
	if err != nil {
		s.answerError(ctx, err)
		return
	}
	s.render(ctx, memoOf(&page.Rendered), formList, page.ChangesAt, a, func() encodedBody { return currenciesBody(page) })
}

func (s *Server) institutions(ctx *fasthttp.RequestCtx, q *params.Query, a *requestState) {
	page, err := s.config.Service.Institutions(engine.InstitutionsQuery{Currency: q.Currency, PageRequest: q.Page()})
	if err != nil {
		s.answerError(ctx, err)
		return
	}
	s.render(ctx, memoOf(&page.Rendered), formList, page.ChangesAt, a, func() encodedBody { return institutionsBody(page, a.now) })
}

func (s *Server) institution(ctx *fasthttp.RequestCtx, q *params.Query, a *requestState) {
	detail, err := s.config.Service.Institution(q.ID)
	if err != nil {
		s.answerError(ctx, err)
		return
	}
	s.render(ctx, memoOf(&detail.Rendered), formList, detail.ChangesAt, a, func() encodedBody { return institutionBody(detail) })
}

func (s *Server) rates(ctx *fasthttp.RequestCtx, q *params.Query, a *requestState) {
	page, err := s.config.Service.Rates(engine.RatesQuery{Filter: q.Filter(), PageRequest: q.Page()})
	if err != nil {
		s.answerError(ctx, err)
		return
	}
	s.render(ctx, memoOf(&page.Rendered), formList, page.ChangesAt, a, func() encodedBody { return ratesBody(page, "", a.now) })
}

func (s *Server) best(ctx *fasthttp.RequestCtx, q *params.Query, a *requestState) {
	page, err := s.config.Service.Ranking(q.Ranking(false))
	if err != nil {
		s.answerError(ctx, err)
		return
	}
	s.render(ctx, memoOf(&page.Rendered), bestForm(q.Operation), page.ChangesAt, a, func() encodedBody { return ratesBody(page, q.Operation, a.now) })
}

func (s *Server) history(ctx *fasthttp.RequestCtx, q *params.Query, a *requestState) {
	page, err := s.config.Service.History(engine.HistoryQuery{Filter: q.Filter(), PageRequest: q.Page(), From: q.From, To: q.To})
	if err != nil {
		s.answerError(ctx, err)
		return
	}
	s.render(ctx, memoOf(&page.Rendered), formList, page.ChangesAt, a, func() encodedBody { return historyBody(page, a.now) })
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
	coding := a.coding(ctx, len(ctx.Response.Body()))
	if coding != "" {
		s.gzipResponse(ctx)
	}
	s.writeHead(ctx, a, etag, maxAge, coding)
	a.queueBody(ctx)
}

// render answers with the page's kept rendering, or makes it. body is called for a page that has none in this form.
func (s *Server) render(ctx *fasthttp.RequestCtx, m *pageMemo, f bodyForm, changesAt time.Time, a *requestState, body func() encodedBody) {
	r := m.renderings[f].Load()
	if r == nil {
		r = newRenderedPage(body(), a.now)
		m.renderings[f].Store(r)
	}
	s.write(ctx, r, changesAt, a)
}

// write answers 200 with a kept rendering, or 304.
func (s *Server) write(ctx *fasthttp.RequestCtx, r *renderedPage, changesAt time.Time, a *requestState) {
	maxAge := a.now.maxAge(changesAt)
	if s.notModified(ctx, a, r.etag, maxAge) {
		return
	}
	body := r.plainBody(a.now)
	coding := a.coding(ctx, len(body))
	if coding != "" {
		body = r.gzipBody(a.now)
	}
	ctx.Response.SetBodyRaw(body)
	s.writeHead(ctx, a, r.etag, maxAge, coding)
	a.queueBody(ctx)
}

// gzipError compresses the body of an error, when it is long enough and the caller takes it (Q11).
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
