package data

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/file"
)

// Config configures the files. All fields but PublicURL are required.
type Config struct {
	Service   engine.Service
	Catalogue *engine.Catalogue
	Clock     func() time.Time
	Logger    *slog.Logger
	// PublicURL is the origin of the site, such as https://tasas.example.do. The ids of feeds begin with it. If it is "",
	// they are URNs.
	PublicURL string
	// Admit counts a request for its client. If it returns false, the client is at a limit and must wait.
	Admit func(*http.Request) (wait time.Duration, ok bool)
}

// How long a file is served before it is made again, and how long caches may keep it.
const (
	latestKept        = time.Second
	latestCache       = "public, max-age=60"
	historyKept       = time.Minute
	pastYearKept      = time.Hour // imports and corrections change past years
	historyCache      = "public, max-age=300"
	firstYear         = 1990 // the central bank publishes no older rates of the dollar
	typeCSV           = "text/csv; charset=utf-8"
	typeJSON          = "application/json"
	queryItemPagesMax = 500 // most result pages read for one query, far more than a day has
)

// Register adds the files to a mux.
func Register(mux *http.ServeMux, c Config) {
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	mux.Handle("/data/latest.json", c.file(typeJSON, latestCache, latestKept, c.latestJSON))
	mux.Handle("/data/latest.csv", c.file(typeCSV, latestCache, latestKept, c.latestCSV))
	mux.Handle("/data/history.csv", c.file(typeCSV, historyCache, historyKept, c.recentHistory))
	mux.Handle("/data/history/{name}", c.named(newFiles(c.year)))
	for _, w := range words() {
		mux.Handle(w.root+"/feeds/{name}", c.named(newFiles(func(name string) http.Handler { return c.feed(name, w) })))
	}
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
	return c.file(typeCSV, historyCache, kept, func() ([]byte, error) { return c.yearHistory(year) })
}

// file returns the handler of a file that build makes. Its content is made again when it is older than kept.
func (c *Config) file(mediaType, cacheControl string, kept time.Duration, build func() ([]byte, error)) *file.File {
	g := &generated{clock: c.Clock, logger: c.Logger, kept: kept, build: build}
	return &file.File{MediaType: mediaType, CacheControl: cacheControl, Admit: c.Admit, Content: g.content}
}

// named returns a handler for the files of a folder.
func (c *Config) named(f *files) http.Handler {
	notFound := c.file(typeJSON, latestCache, latestKept, func() ([]byte, error) {
		return nil, &engine.Error{Code: engine.CodeNotFound, Message: "There is no such file; /docs lists the files."}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler := f.get(r.PathValue("name")); handler != nil {
			handler.ServeHTTP(w, r)
			return
		}
		notFound.ServeHTTP(w, r)
	})
}

// files are the files of a folder. find returns nil for a name without a file, so that the map is bounded.
type files struct {
	find func(name string) http.Handler
	mu   sync.Mutex
	made map[string]http.Handler
}

func newFiles(find func(name string) http.Handler) *files {
	return &files{find: find, made: map[string]http.Handler{}}
}

func (f *files) get(name string) http.Handler {
	f.mu.Lock()
	defer f.mu.Unlock()
	handler := f.made[name]
	if handler == nil {
		if handler = f.find(name); handler != nil {
			f.made[name] = handler
		}
	}
	return handler
}

// generated is the content of a file. mu is locked while it is made, so that concurrent requests make it once.
type generated struct {
	clock  func() time.Time
	logger *slog.Logger
	kept   time.Duration
	build  func() ([]byte, error)

	mu     sync.Mutex
	newest *file.Content
	madeAt time.Time // if the present time is earlier, the clock was set back and the content is made again
}

func (g *generated) content() (*file.Content, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock()
	if g.newest != nil && !now.Before(g.madeAt) && now.Sub(g.madeAt) < g.kept {
		return g.newest, nil
	}
	body, err := g.build()
	if err != nil {
		if known := new(engine.Error); !errors.As(err, &known) {
			g.logger.Error("a file of rates could not be made", "cause", err)
		}
		return nil, err
	}
	if g.newest == nil || g.newest.ETag() != file.ETag(body) {
		g.newest = file.New(body)
	}
	g.madeAt = now
	return g.newest, nil
}

// rates returns the published rates that match a filter.
func (c *Config) rates(filter engine.Filter) ([]*engine.Rate, error) {
	return engine.AllItems(queryItemPagesMax, func(page engine.PageRequest) (*engine.Page[*engine.Rate], error) {
		return c.Service.Rates(engine.RatesQuery{Filter: filter, PageRequest: page})
	})
}
