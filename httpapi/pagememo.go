package httpapi

import (
	"sync/atomic"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// rateBytesGuess is the approximate length of a rate as JSON.
const rateBytesGuess = 720

// pageMemo is the value of engine.Page.Rendered: the encoded forms of a page. A page may have several forms, because
// requests for several paths can share it, and only the body of /v1/rates/best includes the parameter operation (buy or
// sell).
type pageMemo struct {
	renderings  [formCount]atomic.Pointer[rendered.Body]
	conversions [operationCount]atomic.Pointer[conversionTemplate]
}

// bodyForm is an index of pageMemo.renderings.
type bodyForm uint8

const (
	formList bodyForm = iota // for all paths except /v1/rates/best
	formBestBuy
	formBestSell
	formCount
)

// operationCount is the number of values of engine.Operation: buy and sell.
const operationCount = 2

// memoOf returns the pageMemo of a page. The first call creates it.
func memoOf(kept *atomic.Value) *pageMemo {
	if m, ok := kept.Load().(*pageMemo); ok {
		return m
	}
	kept.CompareAndSwap(nil, new(pageMemo))
	return kept.Load().(*pageMemo)
}

func bestForm(operation engine.Operation) bodyForm {
	return [...]bodyForm{formBestBuy, formBestSell}[operationIndex(operation)]
}
