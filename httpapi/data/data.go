package data

import (
	"bytes"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// Config configures the files. All fields but PublicURL are required.
type Config struct {
	Service   engine.Service
	Catalogue *engine.Catalogue
	Clock     func() time.Time
	Logger    *slog.Logger
	PublicURL string // origin of the site, such as https://tasas.example.do; links in feeds begin with it

	// Admit counts a request for its client. At the client's limit it returns false, and how long to wait.
	Admit func(*http.Request) (wait time.Duration, ok bool)

	bodies *rendered.Cache[string, *rendered.Body] // by file name
}

// How long a file is served before it is generated again (…Kept), and the Cache-Control headers (…Cache).
const (
	latestKept        = time.Second
	latestCache       = "public, max-age=60"
	historyKept       = time.Minute
	pastYearKept      = time.Hour // imports and corrections change past years
	historyCache      = "public, max-age=300"
	firstYear         = 1990 // the central bank publishes no older dollar rates
	typeCSV           = "text/csv; charset=utf-8"
	typeJSON          = "application/json"
	queryItemPagesMax = 500 // maximum number of result pages for one query, far more than a day has

	// Limits of the file cache. There are few files: one for each currency, institution and year.
	filesMax = 1024
	bytesMax = 64 << 20 // not compressed
)

// Register adds the files to a mux.
func Register(mux *http.ServeMux, c Config) {
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	c.bodies = rendered.NewCache[string, *rendered.Body](filesMax, bytesMax)
	mux.Handle("/data/latest.json", c.file("latest.json", typeJSON, latestCache, latestKept, c.latestJSON))
	mux.Handle("/data/latest.csv", c.file("latest.csv", typeCSV, latestCache, latestKept, c.latestCSV))
	mux.Handle("/data/history.csv", c.file("history.csv", typeCSV, historyCache, historyKept, c.recentHistory))
	mux.Handle("/data/history/{name}", c.named(c.year))
	mux.Handle("/feeds/{name}", c.named(c.feed))
}

// year returns the handler of a file such as 2025.csv, or nil.
func (c *Config) year(name string) http.Handler {
	number, isCSV := strings.CutSuffix(name, ".csv")
	year, err := strconv.Atoi(number)
	thisYear := c.Clock().In(engine.Location()).Year()
	if !isCSV || err != nil || number != strconv.Itoa(year) || year < firstYear || year > thisYear {
		return nil
	}
	kept := pastYearKept
	if year == thisYear {
		kept = historyKept
	}
	return c.file(name, typeCSV, historyCache, kept, func() ([]byte, error) { return c.yearHistory(year) })
}

// named returns a handler for the files of a folder. find returns the handler of a file, or nil for an unknown name.
func (c *Config) named(find func(name string) http.Handler) http.Handler {
	notFound := &rendered.File{MediaType: typeJSON, CacheControl: latestCache, Admit: c.Admit, Content: func() (*rendered.Body, error) {
		return nil, &engine.Error{Code: engine.CodeNotFound, Message: "There is no such file; /docs lists the files."}
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler := find(r.PathValue("name")); handler != nil {
			handler.ServeHTTP(w, r)
			return
		}
		notFound.ServeHTTP(w, r)
	})
}

// file returns the handler of a generated file. build generates the content, and is called again when the content is
// older than kept. name is the key in the cache.
func (c *Config) file(name, mediaType, cacheControl string, kept time.Duration, build func() ([]byte, error)) *rendered.File {
	return &rendered.File{MediaType: mediaType, CacheControl: cacheControl, Admit: c.Admit, Content: func() (*rendered.Body, error) {
		now := c.Clock()
		return c.bodies.Get(name, now, func(last *rendered.Body) (rendered.Kept[*rendered.Body], error) {
			text, err := build()
			if err != nil && engine.CodeOf(err) == "" {
				c.Logger.Error("a file of rates could not be made", "file", name, "cause", err)
			}
			if err != nil {
				return rendered.Kept[*rendered.Body]{}, err
			}
			body := last
			if last == nil || !bytes.Equal(last.Plain(), text) { // the same text is not compressed again
				body = rendered.Undated(text)
			}
			return rendered.Kept[*rendered.Body]{Value: body, Until: now.Add(kept), Bytes: len(text)}, nil
		})
	}}
}

// rates returns the published rates selected by a filter.
func (c *Config) rates(filter engine.Filter) ([]*engine.Rate, error) {
	return engine.AllItems(queryItemPagesMax, func(page engine.PageRequest) (*engine.Page[*engine.Rate], error) {
		return c.Service.Rates(engine.RatesQuery{Filter: filter, PageRequest: page})
	})
}
