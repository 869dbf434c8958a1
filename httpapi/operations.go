package httpapi

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
)

// The seven data operations: ask the service, take the page's rendering or make it, write it.

func (s *Server) currencies(ctx *fasthttp.RequestCtx, _ query, now instant) {
	page, err := s.service.Currencies()
	if err != nil {
		s.fail(ctx, err)
		return
	}
	s.render(ctx, memoOf(&page.Memo), formList, page.ChangesAt, now, func() draft { return currenciesBody(page) })
}

func (s *Server) institutions(ctx *fasthttp.RequestCtx, q query, now instant) {
	page, err := s.service.Institutions(engine.InstitutionsQuery{Currency: q.currency, Cut: q.cut()})
	if err != nil {
		s.fail(ctx, err)
		return
	}
	s.render(ctx, memoOf(&page.Memo), formList, page.ChangesAt, now, func() draft { return institutionsBody(page, now) })
}

func (s *Server) institution(ctx *fasthttp.RequestCtx, q query, now instant) {
	detail, err := s.service.Institution(q.id)
	if err != nil {
		s.fail(ctx, err)
		return
	}
	s.render(ctx, memoOf(&detail.Memo), formList, detail.ChangesAt, now, func() draft { return institutionBody(detail) })
}

func (s *Server) rates(ctx *fasthttp.RequestCtx, q query, now instant) {
	page, err := s.service.Rates(engine.RatesQuery{Filter: q.filter(), Cut: q.cut()})
	if err != nil {
		s.fail(ctx, err)
		return
	}
	s.render(ctx, memoOf(&page.Memo), formList, page.ChangesAt, now, func() draft { return ratesBody(page, "", now) })
}

func (s *Server) best(ctx *fasthttp.RequestCtx, q query, now instant) {
	page, err := s.service.Ranking(q.ranking(false))
	if err != nil {
		s.fail(ctx, err)
		return
	}
	s.render(ctx, memoOf(&page.Memo), bestForm(q.operation), page.ChangesAt, now, func() draft { return ratesBody(page, q.operation, now) })
}

func (s *Server) history(ctx *fasthttp.RequestCtx, q query, now instant) {
	page, err := s.service.History(engine.HistoryQuery{Filter: q.filter(), Cut: q.cut(), From: q.from, To: q.to})
	if err != nil {
		s.fail(ctx, err)
		return
	}
	s.render(ctx, memoOf(&page.Memo), formList, page.ChangesAt, now, func() draft { return historyBody(page, now) })
}

// convert writes into the answer's own buffer: a body for an amount is never kept.
func (s *Server) convert(ctx *fasthttp.RequestCtx, q query, now instant) {
	page, err := s.service.Ranking(q.ranking(true))
	if err != nil {
		s.fail(ctx, err)
		return
	}
	kept := &memoOf(&page.Memo).sheets[operationIndex(q.operation)]
	prepared := kept.Load()
	if prepared == nil {
		prepared = newSheet(page, q, s.feeNotice, now)
		kept.Store(prepared)
	}
	var room [len(`W/""`) + 2*tagBytes]byte
	if s.writeHead(ctx, prepared.etag(room[:0], q.amount), now.maxAge(page.ChangesAt)) {
		return
	}
	body := ctx.Response.SwapBody(nil)[:0]
	ctx.Response.SwapBody(prepared.appendBody(body, page.Items, q, now))
	s.packOnce(ctx)
}

// render answers with the page's kept rendering, or makes it. body is called for a page that has none in this form.
func (s *Server) render(ctx *fasthttp.RequestCtx, m *memo, f form, changesAt time.Time, now instant, body func() draft) {
	r := m.renderings[f].Load()
	if r == nil {
		r = newRendering(body(), now)
		m.renderings[f].Store(r)
	}
	s.write(ctx, r, changesAt, now)
}

// write answers 200 with a kept rendering, or 304.
func (s *Server) write(ctx *fasthttp.RequestCtx, r *rendering, changesAt time.Time, now instant) {
	if s.writeHead(ctx, r.etag, now.maxAge(changesAt)) {
		return
	}
	body := r.plainBody(now)
	if len(body) >= gzipBytesMin && s.wantsGzip(ctx) {
		ctx.Response.Header.SetCanonical(s.names.contentEncoding, bytesOf(gzipCoding))
		body = r.gzipBody(now)
	}
	ctx.Response.SetBodyRaw(body)
}

// writeHead sets ETag and Cache-Control, and ends the answer with 304 when the caller has it already (Q12).
func (s *Server) writeHead(ctx *fasthttp.RequestCtx, etag []byte, maxAge int) (done bool) {
	header := &ctx.Response.Header
	header.SetCanonical(s.names.cacheControl, s.maxAges[maxAge])
	header.SetCanonical(s.names.etag, etag)
	if ctx.Request.Header.PeekCanonical(s.names.ifNoneMatch) == nil {
		return false
	}
	if !noneMatches(ctx.Request.Header.PeekAll(fasthttp.HeaderIfNoneMatch), etag) {
		return false
	}
	s.answerEmpty(ctx, fasthttp.StatusNotModified)
	return true
}

func (s *Server) wantsGzip(ctx *fasthttp.RequestCtx) bool {
	if ctx.Request.Header.PeekCanonical(s.names.acceptEncoding) == nil {
		return false
	}
	return acceptsGzip(ctx.Request.Header.PeekAll(fasthttp.HeaderAcceptEncoding))
}

// packOnce compresses a body that was made for this request, when it is long enough and the caller takes it (Q11).
func (s *Server) packOnce(ctx *fasthttp.RequestCtx) {
	if len(ctx.Response.Body()) < gzipBytesMin || !s.wantsGzip(ctx) {
		return
	}
	p := s.packers.Get().(*packer)
	plain := ctx.Response.SwapBody(nil)
	ctx.Response.SwapBody(p.appendGzip(p.spare[:0], plain))
	p.spare = plain
	s.packers.Put(p)
	ctx.Response.Header.SetCanonical(s.names.contentEncoding, bytesOf(gzipCoding))
}
