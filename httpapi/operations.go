package httpapi

import (
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/params"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// A data operation answers requests for currencies, institutions or rates. It gets a page of results from
// Config.Service and returns the page in encoded form. Only convert is different: it writes the response itself.

// dataPage is the result of a data operation.
type dataPage struct {
	rendered  *rendered.Page
	changesAt time.Time // engine.Page.ChangesAt: the next expiry of a rate in the page, or zero
}

func (s *Server) currencies(_ *params.Query, now requestTime) (dataPage, error) {
	page, err := s.config.Service.Currencies()
	if err != nil {
		return dataPage{}, err
	}
	return dataPage{renderedPage(&page.Rendered, formList, now, func() rendered.Encoded { return currenciesBody(page) }), page.ChangesAt}, nil
}

func (s *Server) institutions(q *params.Query, now requestTime) (dataPage, error) {
	page, err := s.config.Service.Institutions(engine.InstitutionsQuery{Currency: q.Currency, PageRequest: q.Page()})
	if err != nil {
		return dataPage{}, err
	}
	return dataPage{renderedPage(&page.Rendered, formList, now, func() rendered.Encoded { return institutionsBody(page, now) }), page.ChangesAt}, nil
}

func (s *Server) institution(q *params.Query, now requestTime) (dataPage, error) {
	detail, err := s.config.Service.Institution(q.ID)
	if err != nil {
		return dataPage{}, err
	}
	return dataPage{renderedPage(&detail.Rendered, formList, now, func() rendered.Encoded { return institutionBody(detail) }), detail.ChangesAt}, nil
}

func (s *Server) rates(q *params.Query, now requestTime) (dataPage, error) {
	page, err := s.config.Service.Rates(engine.RatesQuery{Filter: q.Filter(), PageRequest: q.Page()})
	if err != nil {
		return dataPage{}, err
	}
	return dataPage{renderedPage(&page.Rendered, formList, now, func() rendered.Encoded { return ratesBody(page, "", now) }), page.ChangesAt}, nil
}

func (s *Server) best(q *params.Query, now requestTime) (dataPage, error) {
	page, err := s.config.Service.Ranking(q.Ranking(now.nanos, false))
	if err != nil {
		return dataPage{}, err
	}
	return dataPage{renderedPage(&page.Rendered, bestForm(q.Operation), now, func() rendered.Encoded { return ratesBody(page, q.Operation, now) }), page.ChangesAt}, nil
}

func (s *Server) history(q *params.Query, now requestTime) (dataPage, error) {
	page, err := s.config.Service.History(engine.HistoryQuery{Filter: q.Filter(), PageRequest: q.Page(), From: q.From, To: q.To})
	if err != nil {
		return dataPage{}, err
	}
	return dataPage{renderedPage(&page.Rendered, formList, now, func() rendered.Encoded { return historyBody(page, now) }), page.ChangesAt}, nil
}

// convert answers a conversion. It does not keep the body, because few requests have the same amount.
func (s *Server) convert(ctx *fasthttp.RequestCtx, q *params.Query, a *requestState) {
	page, template, err := s.conversion(q, a.now)
	if err != nil {
		s.answerError(ctx, err)
		return
	}
	var room [len(`W/""`) + 2*fields.ETagDigestBytes]byte
	etag, unchangedFor := template.appendETag(room[:0], q.Amount), a.now.unchangedFor(page.ChangesAt)
	if s.notModified(ctx, a, etag, unchangedFor) {
		return
	}
	a.holes = a.holes[:0]
	a.body = template.appendBody(a.body[:0], page.Items, q, a.now, &a.holes)
	body, coding := ctx.Response.SwapBody(nil)[:0], ""
	if len(a.body) >= rendered.GzipBytesMin && a.acceptsGzip(ctx) {
		body, coding = template.appendPacked(body, a.body, a.holes), rendered.Gzip
	} else {
		body = append(body, a.body...)
	}
	ctx.Response.SwapBody(body)
	s.writeHead(ctx, a, etag, unchangedFor, coding)
}

// conversion returns the page of rates for a conversion, and the template of the response body: the body without
// amounts.
func (s *Server) conversion(q *params.Query, now requestTime) (*engine.Page[*engine.Rate], *conversionTemplate, error) {
	page, err := s.config.Service.Ranking(q.Ranking(now.nanos, true))
	if err != nil {
		return nil, nil, err
	}
	kept := &memoOf(&page.Rendered).conversions[operationIndex(q.Operation)]
	template := kept.Load()
	if template == nil {
		template = newConversionTemplate(page, q, s.config.FeeNotice, now)
		kept.Store(template)
	}
	return page, template, nil
}

// renderedPage returns a page in the encoded form f. kept is the field Rendered of the page. If kept does not have
// this form yet, renderedPage calls body and stores the result in kept.
func renderedPage(kept *atomic.Value, f bodyForm, now requestTime, body func() rendered.Encoded) *rendered.Page {
	form := &memoOf(kept).renderings[f]
	r := form.Load()
	if r == nil {
		r = rendered.New(body(), &now.Second)
		form.Store(r)
	}
	return r
}

// answerPage answers with the page of a route, with 304 if the client has it, or with an error of the service.
func (s *Server) answerPage(ctx *fasthttp.RequestCtx, r *route, q *params.Query, a *requestState) {
	page, err := r.page(s, q, a.now)
	if err != nil {
		s.answerError(ctx, err)
		return
	}
	unchangedFor := a.now.unchangedFor(page.changesAt)
	if s.notModified(ctx, a, page.rendered.ETag(), unchangedFor) {
		return
	}
	body, coding := page.rendered.Body(&a.now.Second, a.acceptsGzip(ctx))
	ctx.Response.SetBodyRaw(body)
	s.writeHead(ctx, a, page.rendered.ETag(), unchangedFor, coding)
}

// gzipError compresses the body of an error if it is long enough and the client accepts gzip.
func (s *Server) gzipError(ctx *fasthttp.RequestCtx) {
	if len(ctx.Response.Body()) < rendered.GzipBytesMin || !fields.AcceptsGzip(ctx.Request.Header.PeekAll(fasthttp.HeaderAcceptEncoding)) {
		return
	}
	s.gzipResponse(ctx)
	ctx.Response.Header.SetContentEncoding(rendered.Gzip)
}

// gzipResponse compresses the body of a response. Danger: the body must belong to this response only.
func (s *Server) gzipResponse(ctx *fasthttp.RequestCtx) {
	c := s.compressors.Get().(*rendered.Compressor)
	ctx.Response.SwapBody(c.Swap(ctx.Response.SwapBody(nil)))
	s.compressors.Put(c)
}
