package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tasard/tasard/engine"
)

// The two ways of answering: see newPostgres.
const (
	wayQuota     = "quota"
	wayReadsOnly = "reads-only"
)

const (
	// Connections of the pool. Reads keep the one core busy with a few; requests that are counted wait for the disk, and more of
	// them share one flush.
	readConnections  = 4
	quotaConnections = 16
	// Limits of an account: those of the node under load.
	accountDayLimit    = 100_000_000
	accountMinuteLimit = 60_000
)

// rankingQuery cuts a page in the order of the index; %[1]s is the side, %[2]s its direction.
const rankingQuery = `SELECT (SELECT count(*) FROM rates r WHERE ` + rankingCondition + `) AS total,
		r.institution_id, r.buy::text AS buy, r.sell::text AS sell, r.channel, r.effective_date, r.published_at, r.upstream_source,
		r.institution_name, r.institution_type, r.website, r.source_id, r.source_name, r.source_url,
		r.collected_at, r.last_checked_at, r.expires_at, r.priority, r.manual
	FROM rates r WHERE ` + rankingCondition + `
	ORDER BY r.%[1]s %[2]s, r.priority, r.collected_at DESC, r.institution_id, r.channel LIMIT $2 OFFSET $3`

const rankingCondition = `r.currency = $1 AND r.kind = 'commercial' AND r.%[1]s IS NOT NULL AND r.ranked AND r.expires_at > now()`

// countQuery counts a request in both windows. The minute is the clock's, which is less work than the node's exact sliding one. No
// row: the key is unknown, or a limit is reached.
const countQuery = `UPDATE accounts a SET
		day_spent = CASE WHEN a.day = t.day THEN a.day_spent + 1 ELSE 1 END, day = t.day,
		minute_spent = CASE WHEN a.minute = t.minute THEN a.minute_spent + 1 ELSE 1 END, minute = t.minute
	FROM api_keys k, (SELECT (now() AT TIME ZONE 'America/Santo_Domingo')::date AS day, date_trunc('minute', now()) AS minute) t
	WHERE k.digest = $1 AND k.revoked_at IS NULL AND a.id = k.account_id
		AND (a.day <> t.day OR a.day_spent < a.day_limit) AND (a.minute <> t.minute OR a.minute_spent < a.minute_limit)
	RETURNING a.minute_limit, least(a.day_limit - a.day_spent, a.minute_limit - a.minute_spent)`

// knownQuery tells why there was no row.
const knownQuery = `SELECT EXISTS (SELECT FROM api_keys WHERE digest = $1 AND revoked_at IS NULL)`

// postgresServer answers /v1/rates/best.
type postgresServer struct {
	pool  *pgxpool.Pool
	quota bool
	// queries by operation
	queries map[engine.Operation]string
}

// runPostgres is the subcommand: bench postgres DIRECTORY WAY. It says on out where it listens, and ends with the context.
func runPostgres(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 2 || args[1] != wayQuota && args[1] != wayReadsOnly {
		return fmt.Errorf("bench postgres: want a directory and %s or %s, found %q", wayQuota, wayReadsOnly, args)
	}
	s := &postgresServer{quota: args[1] == wayQuota, queries: map[engine.Operation]string{
		engine.Buy: fmt.Sprintf(rankingQuery, "sell", "ASC"), engine.Sell: fmt.Sprintf(rankingQuery, "buy", "DESC"),
	}}
	config, err := pgxpool.ParseConfig(connectionString(args[0]))
	if err != nil {
		return fmt.Errorf("configure the pool: %w", err)
	}
	config.MaxConns = readConnections
	if s.quota {
		config.MaxConns = quotaConnections
	}
	config.MinConns = config.MaxConns
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return fmt.Errorf("open the pool: %w", err)
	}
	defer s.pool.Close()
	return s.serve(ctx, out)
}

// serve answers on a free port of the loopback interface until the context ends.
func (s *postgresServer) serve(ctx context.Context, out io.Writer) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/rates/best", s.best)
	server := &http.Server{Handler: mux, ReadTimeout: readTimeoutDefault, WriteTimeout: writeTimeoutDefault, IdleTimeout: idleTimeoutDefault}
	serve := func(listener net.Listener) error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}
	return serveUntil(ctx, out, serve, server.Shutdown)
}

// bestQuery is what is asked for.
type bestQuery struct {
	currency      string
	operation     engine.Operation
	limit, cursor int
}

func readBestQuery(values url.Values) (q bestQuery, err error) {
	q = bestQuery{currency: values.Get("currency"), operation: engine.Operation(values.Get("operation")), limit: 100}
	if len(q.currency) != 3 || q.operation != engine.Buy && q.operation != engine.Sell {
		return q, errors.New("currency is three capital letters, operation is buy or sell")
	}
	if text := values.Get("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 || q.limit > 200 {
			return q, errors.New("limit is a number from 1 to 200")
		}
	}
	if text := values.Get("cursor"); text != "" {
		if q.cursor, err = strconv.Atoi(text); err != nil || q.cursor < 0 || q.cursor > 100_000 {
			return q, errors.New("cursor is a number from 0 to 100000")
		}
	}
	return q, nil
}

// errRefused and errUnknownKey are why nobody is answered.
var (
	errRefused    = errors.New("a limit of the account is reached")
	errUnknownKey = errors.New("the key is missing, unknown or revoked")
)

func (s *postgresServer) best(w http.ResponseWriter, r *http.Request) {
	q, err := readBestQuery(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	page, err := s.page(r.Context(), w.Header(), &q, r.Header.Get("Authorization"))
	switch {
	case errors.Is(err, errUnknownKey):
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	case errors.Is(err, errRefused):
		http.Error(w, err.Error(), http.StatusTooManyRequests)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(page); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body.Truncate(body.Len() - 1) // the line's end
	header := w.Header()
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	header.Set("Cache-Control", "private, max-age=60")
	_, _ = w.Write(body.Bytes()) // a caller who is gone needs no answer
}

// page asks the database. With quota the count and the ranking go there together, and are one transaction: one way there and back.
func (s *postgresServer) page(ctx context.Context, header http.Header, q *bestQuery, authorization string) (*publishedPage, error) {
	if !s.quota {
		rows, err := s.pool.Query(ctx, s.queries[q.operation], q.currency, q.limit, q.cursor)
		if err != nil {
			return nil, err
		}
		return readPage(rows, q)
	}
	key, _ := strings.CutPrefix(authorization, "Bearer ")
	digest, known := engine.ReadKey([]byte(key))
	if !known {
		return nil, errUnknownKey
	}
	var both pgx.Batch
	both.Queue(countQuery, digest[:])
	both.Queue(s.queries[q.operation], q.currency, q.limit, q.cursor)
	results := s.pool.SendBatch(ctx, &both)
	page, err := readCounted(results, header, q)
	if err = errors.Join(err, results.Close()); errors.Is(err, errRefused) {
		err = s.refusal(ctx, digest)
	}
	return page, err
}

// readCounted reads what came of the count, writes the limits, and reads the page.
func readCounted(results pgx.BatchResults, header http.Header, q *bestQuery) (*publishedPage, error) {
	var limit, remaining int64
	switch err := results.QueryRow().Scan(&limit, &remaining); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, errRefused
	case err != nil:
		return nil, err
	}
	header.Set("X-RateLimit-Limit", strconv.FormatInt(limit, 10))
	header.Set("X-RateLimit-Remaining", strconv.FormatInt(remaining, 10))
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	return readPage(rows, q)
}

// refusal tells why a request was not counted.
func (s *postgresServer) refusal(ctx context.Context, digest engine.Digest) error {
	var known bool
	if err := s.pool.QueryRow(ctx, knownQuery, digest[:]).Scan(&known); err != nil {
		return err
	}
	if known {
		return errRefused
	}
	return errUnknownKey
}
